/* Tiles of bf16 variables, converted to f32 for an update and back after it. */
#include "backend/cpu/kernels/update_tiles.h"

static bool is_bf16(const KilnCall *call, int i)
{
    return !call->inputs[i].absent && call->inputs[i].dtype == KILN_BF16;
}

KilnUpdateSpan kiln_update_span_at(const KilnCall *call, int64_t at, int64_t end)
{
    for (int i = 0; i < call->n_inputs && end - at > KILN_UPDATE_TILE; i++)
        if (is_bf16(call, i))
            return (KilnUpdateSpan) { at, KILN_UPDATE_TILE };
    return (KilnUpdateSpan) { at, end - at };
}

float *kiln_variable_at(const KilnCall *call, int i, int64_t begin)
{
    return call->inputs[i].absent ? NULL : (float *)call->inputs[i].data + begin;
}

float *kiln_variable_f32(const KilnCall *call, int i, KilnUpdateSpan s, KilnUpdateTiles *tiles)
{
    if (!is_bf16(call, i))
        return kiln_variable_at(call, i, s.at);
    kiln_cpu(call)->loops->from_bf16(tiles->of[i], (const uint16_t *)call->inputs[i].data + s.at,
                                     s.n);
    return tiles->of[i];
}

void kiln_variables_store(const KilnCall *call, KilnUpdateSpan s, const KilnUpdateTiles *tiles)
{
    for (int i = 0; i < call->n_inputs; i++)
        if (is_bf16(call, i) && (call->op->updates >> i & 1) != 0)
            kiln_cpu(call)->loops->to_bf16((uint16_t *)call->inputs[i].data + s.at, tiles->of[i],
                                           s.n);
}

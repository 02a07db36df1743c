/* Stretches of the variables of updates, widened and narrowed. */
#include "backend/cpu/kernels/variables.h"

static bool is_narrow(const KilnCall *call, int i)
{
    return !call->inputs[i].absent && call->inputs[i].dtype == KILN_BF16;
}

KilnFlatSpan kiln_flat_span_at(const KilnCall *call, int64_t at, int64_t end)
{
    for (int i = 0; i < call->n_inputs && end - at > KILN_UPDATE_TILE; i++)
        if (is_narrow(call, i))
            return (KilnFlatSpan) { at, KILN_UPDATE_TILE };
    return (KilnFlatSpan) { at, end - at };
}

float *kiln_variable_at(const KilnCall *call, int i, int64_t begin)
{
    return call->inputs[i].absent ? NULL : (float *)call->inputs[i].data + begin;
}

float *kiln_variable_widened(const KilnCall *call, int i, KilnFlatSpan s, KilnTiles *tiles)
{
    if (!is_narrow(call, i))
        return kiln_variable_at(call, i, s.at);
    kiln_cpu(call)->loops->widen(tiles->of[i], (const uint16_t *)call->inputs[i].data + s.at, s.n);
    return tiles->of[i];
}

void kiln_variables_put_back(const KilnCall *call, KilnFlatSpan s, const KilnTiles *tiles)
{
    for (int i = 0; i < call->n_inputs; i++)
        if (is_narrow(call, i) && (call->op->updates >> i & 1) != 0)
            kiln_cpu(call)->loops->narrow((uint16_t *)call->inputs[i].data + s.at, tiles->of[i],
                                          s.n);
}

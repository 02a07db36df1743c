/* Adapters of linear layers, and fixing everything else. */
#include "nn/lora.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ALIGNMENT = 64, LONGEST_NAME = 256 };

/* ---- Declaring ------------------------------------------------------------------------------- */

const char *kiln_lora_layer(const KilnParam *weight, char *buf, size_t size)
{
    static const char *const endings[] = { "in_proj_weight", "weight" };
    size_t length = strlen(weight->name);

    for (size_t i = 0; i < KILN_COUNT(endings); i++) {
        const size_t n = strlen(endings[i]);

        if (length < n || strcmp(weight->name + length - n, endings[i]) != 0)
            continue;
        length -= n;
        length -= length > 0; /* the dot, or the _ of q_proj_weight */
        break;
    }
    snprintf(buf, size, "%.*s", (int)length, weight->name);
    return buf;
}

static KilnStatus declare(const KilnParam *weight, const char *part, KilnShape shape, KilnInit init,
                          KilnParam **ret, KilnError *err)
{
    const KilnScope root = kiln_params_root(weight->store);
    char layer[LONGEST_NAME], name[LONGEST_NAME + 16];

    kiln_lora_layer(weight, layer, sizeof(layer));
    snprintf(name, sizeof(name), "%s%s%s.weight", layer, layer[0] != '\0' ? "." : "", part);
    KilnStatus status = kiln_param_new(&root, name, shape, init, ret, err);
    if (status >= 0)
        (*ret)->is_adapter = true;
    return status;
}

KilnStatus kiln_lora_declare(KilnParam *weight, KilnLoraSpec spec, KilnError *err)
{
    const int64_t out = weight->shape.dim[0], in = weight->shape.dim[1];
    const KilnInit uniform = { .kind = KILN_INIT_UNIFORM, .a = 1.0 / sqrt((double)in) };
    const KilnInit zero = { .kind = KILN_INIT_CONSTANT };
    KilnLora *lora = kiln_arena_alloc(&weight->store->arena, sizeof(*lora));

    if (lora == NULL)
        return kiln_error_nomem(err, sizeof(*lora));
    *lora = (KilnLora) { .scale = spec.scale, .dropout = spec.dropout };
    KilnStatus status = declare(weight, "lora_A", KILN_SHAPE(spec.r, in), uniform, &lora->a, err);
    if (status >= 0)
        status = declare(weight, "lora_B", KILN_SHAPE(out, spec.r), zero, &lora->b, err);
    if (status >= 0)
        weight->lora = lora;
    return status;
}

void kiln_params_fix(KilnParams *params, KilnParamTest *trains, void *ctx)
{
    /* Floats may be stored as bf16. */
    const int64_t align = ALIGNMENT / (int64_t)sizeof(uint16_t);

    params->size = params->n_fixed = 0;
    for (size_t i = 0; i < params->count; i++) {
        KilnParam *param = params->items[i];

        if (!param->trained)
            continue;
        param->fixed = !param->is_adapter && !trains(ctx, param);
        param->trained = !param->fixed;
        param->offset = param->fixed ? params->n_fixed : params->size;
        if (param->fixed)
            params->n_fixed += (param->count + align - 1) / align * align;
        else
            params->size += param->count;
    }
}

/* ---- Recording ------------------------------------------------------------------------------- */

bool kiln_lora_drops(const KilnParams *params)
{
    for (size_t i = 0; i < params->count; i++)
        if (params->items[i]->lora != NULL && params->items[i]->lora->dropout > 0.0)
            return true;
    return false;
}

void kiln_lora_set_dropout(KilnParams *params, KilnDropoutState dropout)
{
    params->lora_dropout = dropout;
}

KilnTensor *kiln_lora_add(KilnParam *weight, int64_t row, int64_t rows, KilnTensor *x,
                          KilnTensor *y)
{
    KilnGraph *graph = kiln_tensor_graph(x);
    KilnLora *lora = weight->lora;

    if (lora == NULL)
        return y;
    KilnDropoutState *dropout = &weight->store->lora_dropout;
    KilnTensor *b = kiln_param_tensor(lora->b, graph);
    lora->used = true;
    x = kiln_nn_dropout(x, lora->dropout, dropout->key != NULL ? dropout : NULL);
    x = kiln_scale(kiln_linear(x, kiln_param_tensor(lora->a, graph), NULL), lora->scale);
    if (rows < weight->shape.dim[0])
        b = kiln_narrow(b, 0, row, rows);
    return kiln_add(y, kiln_linear(x, b, NULL));
}

KilnTensor *kiln_nn_linear_rows(KilnParam *weight, KilnParam *bias, int64_t row, int64_t rows,
                                KilnTensor *x)
{
    KilnGraph *graph = kiln_tensor_graph(x);
    KilnTensor *w = kiln_param_tensor(weight, graph);
    KilnTensor *b = bias != NULL ? kiln_param_tensor(bias, graph) : NULL;

    if (rows < weight->shape.dim[0]) {
        w = kiln_narrow(w, 0, row, rows);
        b = b != NULL ? kiln_narrow(b, 0, row, rows) : NULL;
    }
    return kiln_lora_add(weight, row, rows, x, kiln_linear(x, w, b));
}

/* Low-rank adapters (Hu et al., "LoRA: Low-rank adaptation of large language models", 2021; peft's
 * definition): the weight W of a linear layer stays as it is, and the layer computes
 * x W^T + scale * (dropout(x) A^T) B^T. */
#ifndef KILN_NN_LORA_H
#define KILN_NN_LORA_H

#include "nn/params.h"

typedef struct KilnLoraSpec {
    int64_t r; /* rank */
    double scale, dropout;
} KilnLoraSpec;

/* The layer of a linear weight, which names its adapters: "X" of X.weight and, as in peft, of
 * X.in_proj_weight; "X.q_proj" of X.q_proj_weight. Returns buf. */
const char *kiln_lora_layer(const KilnParam *weight, char *buf, size_t size);
/* Declares X.lora_A.weight [r, in], uniform in +-1/sqrt(in), and X.lora_B.weight [out, r], zero,
 * before the store is allocated. */
KILN_NODISCARD KilnStatus kiln_lora_declare(KilnParam *weight, KilnLoraSpec spec, KilnError *err);

typedef bool KilnParamTest(void *ctx, const KilnParam *param);
/* Fixes all trained parameters but adapters and those for which `trains` returns true: they have no
 * gradient and no optimizer state. Before the store is allocated. */
void kiln_params_fix(KilnParams *params, KilnParamTest *trains, void *ctx);

/* Whether an adapter has dropout. */
bool kiln_lora_drops(const KilnParams *params);
/* Adapters take their dropout from here in the steps that are recorded next; key NULL: none. */
void kiln_lora_set_dropout(KilnParams *params, KilnDropoutState dropout);
/* Adds to y what the weight's adapter, if it has one, gives of rows [row, row + rows) for x. */
KilnTensor *kiln_lora_add(KilnParam *weight, int64_t row, int64_t rows, KilnTensor *x,
                          KilnTensor *y);

#endif

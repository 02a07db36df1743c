/* A running average of all floating-point values of the network, beside the weights. It is f32
 * even where the weights are bf16, which would lose the small changes of an average. The callbacks
 * that update it are callbacks/ema.c and callbacks/stochastic_weight_averaging.c. */
#include "train/optim/averaged_weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/zeros.h"
#include "tensor/bf16.h"
#include "train/trainer.h"

/* The average of a flat store of parameters or buffers. */
typedef struct Average {
    float *values;
    uint16_t *saved; /* the store's own values while the average is swapped in; NULL: it is f32,
                      * and the two are exchanged */
    int64_t n;
} Average;

struct KilnAveragedWeights {
    KilnParams *params;
    Average weights, statistics;
    bool unused;
};

/* ---- Life -------------------------------------------------------------------------- */

static bool is_bf16(const KilnParams *params)
{
    return kiln_params_dtype(params) == KILN_BF16;
}

int64_t kiln_averaged_bytes(const KilnParams *params)
{
    const int64_t each = is_bf16(params) ? sizeof(float) + sizeof(uint16_t) : sizeof(float);

    return each * (params->size + params->n_statistics);
}

static bool average_new(Average *average, int64_t n, bool bf16)
{
    average->n = n;
    average->values = kiln_zeros((size_t)n * sizeof(float));
    average->saved = bf16 ? kiln_zeros((size_t)n * sizeof(uint16_t)) : NULL;
    return average->values != NULL && (average->saved != NULL || !bf16);
}

KilnStatus kiln_trainer_averaged_new(KilnTrainer *trainer, KilnAveragedWeights **ret,
                                     KilnError *err)
{
    KilnParams *params = trainer->params;

    if (trainer->averaged != NULL)
        return kiln_error_set(err, KILN_E_RANGE,
                              "another callback averages the weights already; one is possible");
    KilnAveragedWeights *averaged = calloc(1, sizeof(*averaged));
    if (averaged == NULL || !average_new(&averaged->weights, params->size, is_bf16(params)) ||
        !average_new(&averaged->statistics, params->n_statistics, is_bf16(params))) {
        kiln_averaged_free(averaged);
        return kiln_error_nomem(err, (size_t)kiln_averaged_bytes(params));
    }
    averaged->params = params;
    kiln_averaged_copy(averaged);
    trainer->averaged = averaged;
    *ret = averaged;
    return KILN_OK;
}

void kiln_averaged_free(KilnAveragedWeights *averaged)
{
    if (averaged == NULL)
        return;
    kiln_zeros_free(averaged->weights.values);
    kiln_zeros_free(averaged->weights.saved);
    kiln_zeros_free(averaged->statistics.values);
    kiln_zeros_free(averaged->statistics.saved);
    free(averaged);
}

/* ---- Values ------------------------------------------------------------------------- */

static void copy(const Average *average, const void *store)
{
    if (average->saved != NULL)
        kiln_bf16_to_f32(average->values, store, average->n);
    else
        memcpy(average->values, store, (size_t)average->n * sizeof(float));
}

void kiln_averaged_copy(KilnAveragedWeights *averaged)
{
    copy(&averaged->weights, averaged->params->values);
    copy(&averaged->statistics, averaged->params->statistics);
}

static void exchange(float *a, float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float x = a[i];

        a[i] = b[i];
        b[i] = x;
    }
}

static void swap_in(const Average *average, void *store)
{
    if (average->saved != NULL) {
        memcpy(average->saved, store, (size_t)average->n * sizeof(*average->saved));
        kiln_bf16_from_f32(store, average->values, average->n);
    } else {
        exchange(average->values, store, average->n);
    }
}

static void swap_out(const Average *average, void *store)
{
    if (average->saved != NULL)
        memcpy(store, average->saved, (size_t)average->n * sizeof(*average->saved));
    else
        exchange(average->values, store, average->n);
}

void kiln_averaged_use(KilnAveragedWeights *averaged, bool used)
{
    averaged->unused = !used;
}

void kiln_averaged_swap_in(KilnAveragedWeights *averaged)
{
    if (averaged == NULL || averaged->unused)
        return;
    swap_in(&averaged->weights, averaged->params->values);
    swap_in(&averaged->statistics, averaged->params->statistics);
}

void kiln_averaged_swap_out(KilnAveragedWeights *averaged)
{
    if (averaged == NULL || averaged->unused)
        return;
    swap_out(&averaged->weights, averaged->params->values);
    swap_out(&averaged->statistics, averaged->params->statistics);
}

float *kiln_averaged_data(const KilnAveragedWeights *averaged, const KilnParam *param)
{
    if (param->dtype != KILN_F32 || averaged->unused)
        return NULL;
    return (param->trained ? averaged->weights.values : averaged->statistics.values) +
           param->offset;
}

/* ---- Averages ----------------------------------------------------------------------------- */

static void update(const Average *average, const void *store, float weight)
{
    const uint16_t *bf16 = average->saved != NULL ? store : NULL;
    const float *f32 = store;

    for (int64_t i = 0; i < average->n; i++) {
        const float value = bf16 != NULL ? kiln_bf16_to(bf16[i]) : f32[i];

        average->values[i] += weight * (value - average->values[i]);
    }
}

void kiln_averaged_average(KilnAveragedWeights *averaged, double weight)
{
    if (weight >= 1.0) {
        kiln_averaged_copy(averaged);
        return;
    }
    update(&averaged->weights, averaged->params->values, (float)weight);
    update(&averaged->statistics, averaged->params->statistics, (float)weight);
}

static void lerp(const Average *average, KilnTensor *store, KilnTensor *weight)
{
    KilnTensor *values = kiln_graph_variable(kiln_tensor_graph(weight), KILN_F32,
                                             KILN_SHAPE(average->n), average->values, false, NULL);

    kiln_lerp_update(values, store, weight);
}

void kiln_averaged_lerp(KilnAveragedWeights *averaged, KilnTensor *weight, KilnTensor *buffers)
{
    KilnGraph *graph = kiln_tensor_graph(weight);
    KilnTensor *statistics = kiln_params_flat_statistics(averaged->params, graph);

    lerp(&averaged->weights, kiln_params_flat_values(averaged->params, graph), weight);
    if (statistics != NULL)
        lerp(&averaged->statistics, statistics, buffers);
}

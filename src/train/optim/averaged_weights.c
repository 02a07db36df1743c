/* A second set of the network's floating-point values, beside the weights: f32
 * whatever these are, for in bf16 the small changes of an average would be lost. */
#include "train/optim/averaged_weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/zeros.h"
#include "tensor/bf16.h"
#include "train/trainer.h"

/* Values of the shadow, beside those of the store. */
typedef struct Twin {
    float *values;
    uint16_t *aside; /* a store's bf16 while the shadow's values are in its place */
    int64_t n;
} Twin;

struct KilnAveragedWeights {
    KilnParams *params;
    Twin weights, statistics;
    bool left_out;
};

/* ---- Life -------------------------------------------------------------------------- */

static bool is_narrow(const KilnParams *params)
{
    return kiln_params_dtype(params) == KILN_BF16;
}

int64_t kiln_averaged_bytes(const KilnParams *params)
{
    const int64_t each = is_narrow(params) ? sizeof(float) + sizeof(uint16_t) : sizeof(float);

    return each * (params->size + params->n_statistics);
}

static bool twin_new(Twin *twin, int64_t n, bool narrow)
{
    twin->n = n;
    twin->values = kiln_zeros((size_t)n * sizeof(float));
    twin->aside = narrow ? kiln_zeros((size_t)n * sizeof(uint16_t)) : NULL;
    return twin->values != NULL && (twin->aside != NULL || !narrow);
}

KilnStatus kiln_trainer_averaged_new(KilnTrainer *trainer, KilnAveragedWeights **ret,
                                     KilnError *err)
{
    KilnParams *params = trainer->params;

    if (trainer->averaged != NULL)
        return kiln_error_set(err, KILN_E_RANGE,
                              "another callback averages the weights already; one is possible");
    KilnAveragedWeights *averaged = calloc(1, sizeof(*averaged));
    if (averaged == NULL || !twin_new(&averaged->weights, params->size, is_narrow(params)) ||
        !twin_new(&averaged->statistics, params->n_statistics, is_narrow(params))) {
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
    kiln_zeros_free(averaged->weights.aside);
    kiln_zeros_free(averaged->statistics.values);
    kiln_zeros_free(averaged->statistics.aside);
    free(averaged);
}

/* ---- Values ------------------------------------------------------------------------- */

static void copy(const Twin *twin, const void *store)
{
    if (twin->aside != NULL)
        kiln_bf16_to_f32(twin->values, store, twin->n);
    else
        memcpy(twin->values, store, (size_t)twin->n * sizeof(float));
}

void kiln_averaged_copy(KilnAveragedWeights *averaged)
{
    copy(&averaged->weights, averaged->params->values);
    copy(&averaged->statistics, averaged->params->statistics);
}

static void swap(float *a, float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float x = a[i];

        a[i] = b[i];
        b[i] = x;
    }
}

static void show(const Twin *twin, void *store)
{
    if (twin->aside != NULL) {
        memcpy(twin->aside, store, (size_t)twin->n * sizeof(*twin->aside));
        kiln_bf16_from_f32(store, twin->values, twin->n);
    } else {
        swap(twin->values, store, twin->n);
    }
}

static void hide(const Twin *twin, void *store)
{
    if (twin->aside != NULL)
        memcpy(store, twin->aside, (size_t)twin->n * sizeof(*twin->aside));
    else
        swap(twin->values, store, twin->n);
}

void kiln_averaged_use(KilnAveragedWeights *averaged, bool used)
{
    averaged->left_out = !used;
}

void kiln_averaged_show(KilnAveragedWeights *averaged)
{
    if (averaged->left_out)
        return;
    show(&averaged->weights, averaged->params->values);
    show(&averaged->statistics, averaged->params->statistics);
}

void kiln_averaged_hide(KilnAveragedWeights *averaged)
{
    if (averaged->left_out)
        return;
    hide(&averaged->weights, averaged->params->values);
    hide(&averaged->statistics, averaged->params->statistics);
}

float *kiln_averaged_data(const KilnAveragedWeights *averaged, const KilnParam *param)
{
    if (param->dtype != KILN_F32 || averaged->left_out)
        return NULL;
    return (param->trained ? averaged->weights.values : averaged->statistics.values) +
           param->offset;
}

/* ---- Averages ----------------------------------------------------------------------------- */

static void average(const Twin *twin, const void *store, float weight)
{
    const uint16_t *narrow = twin->aside != NULL ? store : NULL;
    const float *wide = store;

    for (int64_t i = 0; i < twin->n; i++) {
        const float value = narrow != NULL ? kiln_bf16_to(narrow[i]) : wide[i];

        twin->values[i] += weight * (value - twin->values[i]);
    }
}

void kiln_averaged_average(KilnAveragedWeights *averaged, double weight)
{
    if (weight >= 1.0) {
        kiln_averaged_copy(averaged);
        return;
    }
    average(&averaged->weights, averaged->params->values, (float)weight);
    average(&averaged->statistics, averaged->params->statistics, (float)weight);
}

static void lerp(const Twin *twin, KilnTensor *store, KilnTensor *weight)
{
    KilnTensor *values = kiln_graph_variable(kiln_tensor_graph(weight), KILN_F32,
                                             KILN_SHAPE(twin->n), twin->values, false, NULL);

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

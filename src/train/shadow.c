/* A second set of the network's floating-point values, beside the weights. */
#include <stdlib.h>
#include <string.h>

#include "base/zeros.h"
#include "train/trainer.h"

struct KilnShadow {
    KilnParams *params;
    float *values, *statistics; /* as the store's */
};

KilnStatus kiln_trainer_shadow_new(KilnTrainer *trainer, KilnShadow **ret, KilnError *err)
{
    if (trainer->shadow != NULL)
        return kiln_error_set(err, KILN_E_RANGE,
                              "another callback averages the weights already; one is possible");
    KilnShadow *shadow = calloc(1, sizeof(*shadow));
    if (shadow != NULL) {
        shadow->params = trainer->params;
        shadow->values = kiln_zeros((size_t)trainer->params->size * sizeof(float));
        shadow->statistics = kiln_zeros((size_t)trainer->params->n_statistics * sizeof(float));
    }
    if (shadow == NULL || shadow->values == NULL || shadow->statistics == NULL) {
        kiln_shadow_free(shadow);
        return kiln_error_nomem(err, (size_t)trainer->params->size * sizeof(float));
    }
    kiln_shadow_copy(shadow);
    trainer->shadow = shadow;
    *ret = shadow;
    return KILN_OK;
}

void kiln_shadow_free(KilnShadow *shadow)
{
    if (shadow == NULL)
        return;
    kiln_zeros_free(shadow->values);
    kiln_zeros_free(shadow->statistics);
    free(shadow);
}

void kiln_shadow_copy(KilnShadow *shadow)
{
    const KilnParams *params = shadow->params;

    memcpy(shadow->values, params->values, (size_t)params->size * sizeof(float));
    memcpy(shadow->statistics, params->statistics, (size_t)params->n_statistics * sizeof(float));
}

static void swap(float *a, float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float x = a[i];

        a[i] = b[i];
        b[i] = x;
    }
}

void kiln_shadow_swap(KilnShadow *shadow)
{
    swap(shadow->values, shadow->params->values, shadow->params->size);
    swap(shadow->statistics, shadow->params->statistics, shadow->params->n_statistics);
}

void *kiln_shadow_data(const KilnShadow *shadow, KilnParam *param)
{
    if (param->dtype != KILN_F32)
        return NULL;
    return (param->trained ? shadow->values : shadow->statistics) + param->offset;
}

void kiln_shadow_lerp(KilnShadow *shadow, KilnTensor *weight)
{
    KilnParams *params = shadow->params;
    KilnGraph *graph = kiln_tensor_graph(weight);
    KilnTensor *statistics = kiln_params_flat_statistics(params, graph);

    kiln_lerp_update(
        kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(params->size), shadow->values, false, NULL),
        kiln_params_flat_values(params, graph), weight);
    if (statistics != NULL)
        kiln_lerp_update(kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(params->n_statistics),
                                             shadow->statistics, false, NULL),
                         statistics, weight);
}

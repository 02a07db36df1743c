/* A second set of the network's floating-point values, beside the weights: f32
 * whatever these are, for in bf16 the small changes of an average would be lost. */
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

struct KilnShadow {
    KilnParams *params;
    Twin weights, statistics;
    bool left_out;
};

/* ---- Life -------------------------------------------------------------------------- */

static bool is_narrow(const KilnParams *params)
{
    return kiln_params_dtype(params) == KILN_BF16;
}

int64_t kiln_shadow_bytes(const KilnParams *params)
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

KilnStatus kiln_trainer_shadow_new(KilnTrainer *trainer, KilnShadow **ret, KilnError *err)
{
    KilnParams *params = trainer->params;

    if (trainer->shadow != NULL)
        return kiln_error_set(err, KILN_E_RANGE,
                              "another callback averages the weights already; one is possible");
    KilnShadow *shadow = calloc(1, sizeof(*shadow));
    if (shadow == NULL || !twin_new(&shadow->weights, params->size, is_narrow(params)) ||
        !twin_new(&shadow->statistics, params->n_statistics, is_narrow(params))) {
        kiln_shadow_free(shadow);
        return kiln_error_nomem(err, (size_t)kiln_shadow_bytes(params));
    }
    shadow->params = params;
    kiln_shadow_copy(shadow);
    trainer->shadow = shadow;
    *ret = shadow;
    return KILN_OK;
}

void kiln_shadow_free(KilnShadow *shadow)
{
    if (shadow == NULL)
        return;
    kiln_zeros_free(shadow->weights.values);
    kiln_zeros_free(shadow->weights.aside);
    kiln_zeros_free(shadow->statistics.values);
    kiln_zeros_free(shadow->statistics.aside);
    free(shadow);
}

/* ---- Values ------------------------------------------------------------------------- */

static void copy(const Twin *twin, const void *store)
{
    if (twin->aside != NULL)
        kiln_bf16_widen(twin->values, store, twin->n);
    else
        memcpy(twin->values, store, (size_t)twin->n * sizeof(float));
}

void kiln_shadow_copy(KilnShadow *shadow)
{
    copy(&shadow->weights, shadow->params->values);
    copy(&shadow->statistics, shadow->params->statistics);
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
        kiln_bf16_narrow(store, twin->values, twin->n);
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

void kiln_shadow_use(KilnShadow *shadow, bool used)
{
    shadow->left_out = !used;
}

void kiln_shadow_show(KilnShadow *shadow)
{
    if (shadow->left_out)
        return;
    show(&shadow->weights, shadow->params->values);
    show(&shadow->statistics, shadow->params->statistics);
}

void kiln_shadow_hide(KilnShadow *shadow)
{
    if (shadow->left_out)
        return;
    hide(&shadow->weights, shadow->params->values);
    hide(&shadow->statistics, shadow->params->statistics);
}

float *kiln_shadow_data(const KilnShadow *shadow, const KilnParam *param)
{
    if (param->dtype != KILN_F32 || shadow->left_out)
        return NULL;
    return (param->trained ? shadow->weights.values : shadow->statistics.values) + param->offset;
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

void kiln_shadow_average(KilnShadow *shadow, double weight)
{
    if (weight >= 1.0) {
        kiln_shadow_copy(shadow);
        return;
    }
    average(&shadow->weights, shadow->params->values, (float)weight);
    average(&shadow->statistics, shadow->params->statistics, (float)weight);
}

static void lerp(const Twin *twin, KilnTensor *store, KilnTensor *weight)
{
    KilnTensor *values = kiln_graph_variable(kiln_tensor_graph(weight), KILN_F32,
                                             KILN_SHAPE(twin->n), twin->values, false, NULL);

    kiln_lerp_update(values, store, weight);
}

void kiln_shadow_lerp(KilnShadow *shadow, KilnTensor *weight, KilnTensor *buffers)
{
    KilnGraph *graph = kiln_tensor_graph(weight);
    KilnTensor *statistics = kiln_params_flat_statistics(shadow->params, graph);

    lerp(&shadow->weights, kiln_params_flat_values(shadow->params, graph), weight);
    if (statistics != NULL)
        lerp(&shadow->statistics, statistics, buffers);
}

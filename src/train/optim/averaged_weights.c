/* A running average of all floating-point values of the network, beside the weights. It is f32
 * even where the weights are bf16, which would lose the small changes of an average, and f64 where
 * they are. The callbacks
 * that update it are callbacks/ema.c and callbacks/stochastic_weight_averaging.c. */
#include "train/optim/averaged_weights.h"

#include <stdlib.h>

#include "graph/graph.h"
#include "tensor/bf16.h"
#include "train/trainer.h"

/* The average of a flat store of parameters or buffers. */
typedef struct Average {
    KilnBuffer *values; /* [n], of the average's type */
    KilnBuffer *saved;  /* bf16 [n]: the store's own values while the average is swapped in; NULL:
                         * the store has the average's type, and the two are exchanged */
    int64_t n;
} Average;

/* Values that are exchanged or converted at a time. */
enum { PART = 1 << 16 };

struct KilnAveragedWeights {
    KilnParams *params;
    Average weights, statistics;
    size_t size;        /* bytes of a value of the average */
    KilnBuffer *part;   /* [PART] values, for exchanges */
    void *weights_part; /* [PART] of the store, as the average's type */
    void *mean;         /* [PART] of the average */
    uint16_t *bf16;     /* [PART] */
    bool unused;
};

/* ---- Life -------------------------------------------------------------------------- */

static bool is_bf16(const KilnParams *params)
{
    return kiln_params_dtype(params) == KILN_BF16;
}

KilnDType kiln_averaged_dtype(const KilnAveragedWeights *averaged)
{
    return kiln_params_step_dtype(averaged->params);
}

int64_t kiln_averaged_bytes(const KilnParams *params)
{
    const size_t each = kiln_dtype_size(kiln_params_step_dtype(params)) +
                        (is_bf16(params) ? sizeof(uint16_t) : 0);

    return (int64_t)each * (params->size + params->n_statistics);
}

static KilnStatus average_new(Average *average, KilnBackend *backend, const KilnParams *params,
                              int64_t n, KilnError *err)
{
    const size_t bytes = (size_t)n * kiln_dtype_size(kiln_params_step_dtype(params));
    KilnStatus status = kiln_buffer_new(backend, bytes, &average->values, err);

    average->n = n;
    return status >= 0 && is_bf16(params)
               ? kiln_buffer_new(backend, (size_t)n * sizeof(uint16_t), &average->saved, err)
               : status;
}

static KilnStatus parts_new(KilnAveragedWeights *averaged, KilnBackend *backend, KilnError *err)
{
    averaged->weights_part = malloc(PART * averaged->size);
    averaged->mean = malloc(PART * averaged->size);
    averaged->bf16 = malloc(PART * sizeof(*averaged->bf16));
    if (averaged->weights_part == NULL || averaged->mean == NULL || averaged->bf16 == NULL)
        return kiln_error_nomem(err, PART * averaged->size);
    return kiln_buffer_new(backend, PART * averaged->size, &averaged->part, err);
}

KilnStatus kiln_trainer_averaged_new(KilnTrainer *trainer, KilnAveragedWeights **ret,
                                     KilnError *err)
{
    KilnParams *params = trainer->params;
    KilnBackend *backend = trainer->backend;

    if (trainer->averaged != NULL)
        return kiln_error_set(err, KILN_E_RANGE,
                              "another callback averages the weights already; one is possible");
    KilnAveragedWeights *averaged = calloc(1, sizeof(*averaged));
    if (averaged == NULL)
        return kiln_error_nomem(err, sizeof(*averaged));
    averaged->params = params;
    averaged->size = kiln_dtype_size(kiln_params_step_dtype(params));
    KilnStatus status = parts_new(averaged, backend, err);
    if (status >= 0)
        status = average_new(&averaged->weights, backend, params, params->size, err);
    if (status >= 0)
        status = average_new(&averaged->statistics, backend, params, params->n_statistics, err);
    if (status < 0) {
        kiln_averaged_free(averaged);
        return status;
    }
    kiln_averaged_copy(averaged);
    *ret = trainer->averaged = averaged;
    return KILN_OK;
}

void kiln_averaged_free(KilnAveragedWeights *averaged)
{
    if (averaged == NULL)
        return;
    kiln_buffer_free(averaged->weights.values);
    kiln_buffer_free(averaged->weights.saved);
    kiln_buffer_free(averaged->statistics.values);
    kiln_buffer_free(averaged->statistics.saved);
    kiln_buffer_free(averaged->part);
    free(averaged->weights_part);
    free(averaged->mean);
    free(averaged->bf16);
    free(averaged);
}

/* ---- Values ------------------------------------------------------------------------- */

/* Values of one of the averages and of the store that it averages. */
typedef struct Part {
    const KilnAveragedWeights *averaged;
    const Average *average;
    KilnBuffer *store;
    size_t at; /* index of the first value */
    int64_t n;
    double weight; /* of an update */
} Part;

typedef void Each(const Part *part);

static void for_parts(const KilnAveragedWeights *averaged, Each *each, double weight)
{
    const Part both[] = {
        { .average = &averaged->weights, .store = averaged->params->values },
        { .average = &averaged->statistics, .store = averaged->params->statistics },
    };

    for (size_t i = 0; i < KILN_COUNT(both); i++)
        for (int64_t at = 0; at < both[i].average->n; at += PART) {
            Part part = both[i];

            part.averaged = averaged;
            part.at = (size_t)at;
            part.n = part.average->n - at < PART ? part.average->n - at : PART;
            part.weight = weight;
            each(&part);
        }
}

/* In a store of the average's type. */
static size_t offset_of(const Part *part)
{
    return part->at * part->averaged->size;
}

static size_t bytes_of(const Part *part)
{
    return (size_t)part->n * part->averaged->size;
}

/* The store's values as the average's type, in averaged->weights_part. */
static void read_store(const Part *part)
{
    const KilnAveragedWeights *averaged = part->averaged;

    if (part->average->saved == NULL) {
        kiln_buffer_download(part->store, offset_of(part), averaged->weights_part, bytes_of(part));
        return;
    }
    kiln_buffer_download(part->store, part->at * sizeof(uint16_t), averaged->bf16,
                         (size_t)part->n * sizeof(uint16_t));
    kiln_bf16_to_f32(averaged->weights_part, averaged->bf16, part->n);
}

static void copy_part(const Part *part)
{
    read_store(part);
    kiln_buffer_upload(part->average->values, offset_of(part), part->averaged->weights_part,
                       bytes_of(part));
}

void kiln_averaged_copy(KilnAveragedWeights *averaged)
{
    for_parts(averaged, copy_part, 0.0);
}

static void exchange_part(const Part *part)
{
    const size_t offset = offset_of(part), bytes = bytes_of(part);

    kiln_buffer_copy(part->averaged->part, 0, part->store, offset, bytes);
    kiln_buffer_copy(part->store, offset, part->average->values, offset, bytes);
    kiln_buffer_copy(part->average->values, offset, part->averaged->part, 0, bytes);
}

/* bf16: saves the store, and rounds the average into it. */
static void round_part(const Part *part)
{
    const KilnAveragedWeights *averaged = part->averaged;
    const size_t offset = part->at * sizeof(uint16_t), bytes = (size_t)part->n * sizeof(uint16_t);

    kiln_buffer_copy(part->average->saved, offset, part->store, offset, bytes);
    kiln_buffer_download(part->average->values, offset_of(part), averaged->mean, bytes_of(part));
    kiln_bf16_from_f32(averaged->bf16, averaged->mean, part->n);
    kiln_buffer_upload(part->store, offset, averaged->bf16, bytes);
}

static void restore_part(const Part *part)
{
    const size_t offset = part->at * sizeof(uint16_t);

    kiln_buffer_copy(part->store, offset, part->average->saved, offset,
                     (size_t)part->n * sizeof(uint16_t));
}

void kiln_averaged_use(KilnAveragedWeights *averaged, bool used)
{
    averaged->unused = !used;
}

void kiln_averaged_swap_in(KilnAveragedWeights *averaged)
{
    if (averaged != NULL && !averaged->unused)
        for_parts(averaged, is_bf16(averaged->params) ? round_part : exchange_part, 0.0);
}

void kiln_averaged_swap_out(KilnAveragedWeights *averaged)
{
    if (averaged != NULL && !averaged->unused)
        for_parts(averaged, is_bf16(averaged->params) ? restore_part : exchange_part, 0.0);
}

KilnLocation kiln_averaged_location(const KilnAveragedWeights *averaged, const KilnParam *param)
{
    if (averaged == NULL || param->dtype != KILN_F32 || param->fixed || averaged->unused)
        return (KilnLocation) { 0 };
    return (KilnLocation) {
        .buffer = param->trained ? averaged->weights.values : averaged->statistics.values,
        .offset = (size_t)param->offset * averaged->size,
    };
}

/* ---- Averages ----------------------------------------------------------------------------- */

static void update_f32(float *mean, const float *weights, double weight, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        mean[i] += (float)weight * (weights[i] - mean[i]);
}

static void update_f64(double *mean, const double *weights, double weight, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        mean[i] += weight * (weights[i] - mean[i]);
}

static void update_part(const Part *part)
{
    const KilnAveragedWeights *averaged = part->averaged;
    const size_t offset = offset_of(part);

    read_store(part);
    kiln_buffer_download(part->average->values, offset, averaged->mean, bytes_of(part));
    if (kiln_averaged_dtype(averaged) == KILN_F64)
        update_f64(averaged->mean, averaged->weights_part, part->weight, part->n);
    else
        update_f32(averaged->mean, averaged->weights_part, part->weight, part->n);
    kiln_buffer_upload(part->average->values, offset, averaged->mean, bytes_of(part));
}

void kiln_averaged_average(KilnAveragedWeights *averaged, double weight)
{
    if (weight >= 1.0)
        kiln_averaged_copy(averaged);
    else
        for_parts(averaged, update_part, weight);
}

static void lerp(const Average *average, KilnDType dtype, KilnTensor *store, KilnTensor *weight)
{
    KilnTensor *values = kiln_graph_variable_at(
        kiln_tensor_graph(weight), dtype, KILN_SHAPE(average->n),
        (KilnLocation) { .buffer = average->values }, false, (KilnLocation) { 0 });

    kiln_lerp_update(values, store, weight);
}

void kiln_averaged_lerp(KilnAveragedWeights *averaged, KilnTensor *weight, KilnTensor *buffers)
{
    KilnGraph *graph = kiln_tensor_graph(weight);
    KilnTensor *statistics = kiln_params_flat_statistics(averaged->params, graph);
    const KilnDType dtype = kiln_averaged_dtype(averaged);

    lerp(&averaged->weights, dtype, kiln_params_flat_values(averaged->params, graph), weight);
    if (statistics != NULL)
        lerp(&averaged->statistics, dtype, statistics, buffers);
}

/* Statistics of training batches, and the machine's peak FLOP/s. */
#include "train/analysis/batch_stats.h"

#include <math.h>
#include <stdlib.h>

#include "graph/op.h"
#include "kiln/tools/clock.h"
#include "train/trainer.h"

/* ---- Gradient norms ---------------------------------------------------------------------- */

static bool needs_norms(const KilnTrainer *trainer)
{
    for (size_t i = 0; i < trainer->hooks.n_all; i++)
        if (trainer->hooks.all[i].ops->gradient_norms)
            return true;
    return false;
}

KilnStatus kiln_batch_stats_set_up(KilnTrainer *trainer, KilnError *err)
{
    KilnBatchStats *batch_stats = &trainer->batch_stats;
    const size_t n = kiln_params_count(trainer->params);

    if (!needs_norms(trainer))
        return KILN_OK;
    batch_stats->norms_dtype = kiln_params_step_dtype(trainer->params);
    batch_stats->read_norms = calloc(n + 1, sizeof(*batch_stats->read_norms));
    batch_stats->norm_ends = calloc(n + 1, sizeof(*batch_stats->norm_ends));
    batch_stats->read_f64 = calloc(n + 1, sizeof(*batch_stats->read_f64));
    if (batch_stats->read_norms == NULL || batch_stats->read_f64 == NULL ||
        batch_stats->norm_ends == NULL)
        return kiln_error_nomem(err, n * sizeof(*batch_stats->norm_ends));
    for (size_t i = 0; i < n; i++) {
        const KilnParam *param = kiln_params_at(trainer->params, i);

        if (kiln_param_trained(param))
            batch_stats->norm_ends[batch_stats->n_norms++] =
                kiln_param_offset(param) + kiln_shape_count(kiln_param_shape(param));
    }
    return kiln_buffer_new(trainer->backend,
                           batch_stats->n_norms * kiln_dtype_size(batch_stats->norms_dtype),
                           &batch_stats->norms, err);
}

void kiln_batch_stats_release(KilnBatchStats *batch_stats)
{
    kiln_buffer_free(batch_stats->norms);
    free(batch_stats->read_norms);
    free(batch_stats->read_f64);
    free(batch_stats->norm_ends);
    *batch_stats = (KilnBatchStats) { 0 };
}

void kiln_batch_stats_prepare(KilnTrainer *trainer, KilnFlat *flat)
{
    const KilnBatchStats *batch_stats = &trainer->batch_stats;
    const KilnShape shape = KILN_SHAPE((int64_t)batch_stats->n_norms);

    if (batch_stats->norms == NULL)
        return;
    flat->part_ends = kiln_graph_input(trainer->graph, KILN_I64, shape, batch_stats->norm_ends);
    flat->norms = kiln_graph_variable_at(trainer->graph, batch_stats->norms_dtype, shape,
                                         (KilnLocation) { .buffer = batch_stats->norms }, false,
                                         (KilnLocation) { 0 });
}

/* Whether the recorded step writes `variable`. */
static bool is_updated(const KilnGraph *graph, const KilnTensor *variable)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const KilnNode *node = graph->nodes[i];

        for (int k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] == variable && (node->op->updates >> k & 1) != 0)
                return true;
    }
    return false;
}

/* Stores the norm of the i-th trained parameter. */
static void store_norm(KilnTrainer *trainer, size_t i, KilnTensor *norm)
{
    const KilnDType dtype = trainer->batch_stats.norms_dtype;
    const KilnLocation at = { .buffer = trainer->batch_stats.norms,
                              .offset = i * kiln_dtype_size(dtype) };

    kiln_store(
        kiln_graph_variable_at(trainer->graph, dtype, KILN_SCALAR, at, false, (KilnLocation) { 0 }),
        norm);
}

void kiln_batch_stats_store(KilnTrainer *trainer, const KilnParam *param, KilnTensor *norm)
{
    size_t number = 0;

    for (size_t i = 0; kiln_params_at(trainer->params, i) != param; i++)
        number += kiln_param_trained(kiln_params_at(trainer->params, i));
    store_norm(trainer, number, norm);
}

void kiln_batch_stats_record(KilnTrainer *trainer, const KilnFlat *flat)
{
    const KilnBatchStats *batch_stats = &trainer->batch_stats;
    int64_t begin = 0;

    if (flat->norms == NULL || is_updated(trainer->graph, flat->norms))
        return;
    for (size_t i = 0; i < batch_stats->n_norms; begin = batch_stats->norm_ends[i++])
        store_norm(
            trainer, i,
            kiln_l2_norm(kiln_narrow(flat->grad, 0, begin, batch_stats->norm_ends[i] - begin)));
}

const float *kiln_trainer_gradient_norms(const KilnTrainer *trainer, size_t *ret_n)
{
    const KilnBatchStats *batch_stats = &trainer->batch_stats;

    const size_t n = batch_stats->n_norms;
    const bool f64 = batch_stats->norms_dtype == KILN_F64;

    *ret_n = n;
    if (batch_stats->norms != NULL)
        kiln_buffer_download(batch_stats->norms, 0,
                             f64 ? (void *)batch_stats->read_f64 : batch_stats->read_norms,
                             n * kiln_dtype_size(batch_stats->norms_dtype));
    for (size_t i = 0; f64 && i < n; i++)
        batch_stats->read_norms[i] = (float)batch_stats->read_f64[i];
    return batch_stats->read_norms;
}

/* ---- Batches ----------------------------------------------------------------------------- */

bool kiln_trainer_loss(const KilnTrainer *trainer, double *ret)
{
    if (trainer->batch.has_loss)
        *ret = trainer->batch.loss;
    return trainer->batch.has_loss;
}

static int64_t sum_of(const int32_t *lengths, int64_t n)
{
    int64_t sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += lengths[i];
    return sum;
}

int64_t kiln_trainer_batch_tokens(const KilnTrainer *trainer)
{
    const KilnBatch *batch = &trainer->step.batch;

    int64_t sum = 0;
    bool varies = false;

    for (size_t i = 0; i < trainer->data.spec.n_features && batch->features != NULL; i++)
        if (batch->features[i].lengths != NULL) {
            sum += sum_of(batch->features[i].lengths, batch->size);
            varies = true;
        }
    if (varies)
        return sum;
    for (size_t i = 0; i < trainer->data.spec.n_features; i++) {
        const KilnFeature *feature = &trainer->data.spec.features[i];

        if (feature->dtype == KILN_I32 && feature->shape.rank == 1)
            return batch->size * feature->shape.dim[0];
    }
    return 0;
}

bool kiln_trainer_row_is_due(const KilnTrainer *trainer)
{
    return trainer->options.tracks && trainer->batch.stepped &&
           kiln_loop_should_log(&trainer->schedule, &trainer->at);
}

uint64_t kiln_trainer_seed(const KilnTrainer *trainer)
{
    return (uint64_t)trainer->options.root->seed;
}

void kiln_trainer_skip_batch(KilnTrainer *trainer)
{
    if (trainer->batch.skip == KILN_SKIP_NOTHING)
        trainer->batch.skip = KILN_SKIP_BATCH;
}

/* ---- FLOPs --------------------------------------------------------------------------------- */

double kiln_trainer_flops(const KilnTrainer *trainer)
{
    return trainer->memory.flops + trainer->memory.flops_backward;
}

/* Time matrix products for a tenth of a second; *ret: seconds of the fastest. */
static KilnStatus time_products(KilnGraph *graph, const float *a, int64_t n, double *ret,
                                KilnError *err)
{
    const double begin = kiln_clock();
    double fastest = (double)INFINITY;
    KilnStatus status = KILN_OK;

    for (int i = 0; status >= 0 && (i < 3 || kiln_clock() - begin < 0.1); i++) {
        kiln_graph_begin(graph);
        KilnTensor *x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(n, n), a);
        KilnTensor *product = kiln_matmul(x, x, false, false);
        const double start = kiln_clock();

        status = kiln_graph_run(graph, &product, 1, err);
        fastest = fmin(fastest, kiln_clock() - start);
    }
    *ret = fastest;
    return status;
}

double kiln_trainer_peak_flops(KilnTrainer *trainer)
{
    const int64_t n = 1024;
    KilnGraph *graph = NULL;
    float *a = calloc((size_t)(n * n), sizeof(*a));
    double seconds = (double)INFINITY;

    if (trainer->batch_stats.peak_flops > 0.0 || a == NULL) {
        free(a);
        return trainer->batch_stats.peak_flops;
    }
    for (int64_t i = 0; i < n * n; i++)
        a[i] = 1.0f / (float)(1 + i % 17);
    if (kiln_graph_new(trainer->backend, &graph, NULL) >= 0) {
        kiln_graph_set_precision(graph, (KilnPrecision)trainer->options.trainer->precision);
        if (time_products(graph, a, n, &seconds, NULL) >= 0)
            trainer->batch_stats.peak_flops = 2.0 * (double)(n * n * n) / seconds;
    }
    kiln_graph_free(graph);
    free(a);
    return trainer->batch_stats.peak_flops;
}

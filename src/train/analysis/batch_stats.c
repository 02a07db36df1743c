/* Losses and gradient norms of training batches, and how fast this machine multiplies. */
#include "train/analysis/batch_stats.h"

#include <math.h>
#include <stdlib.h>

#include "base/system/file.h"
#include "graph/graph.h"
#include "train/trainer.h"

/* ---- Gradient norms ---------------------------------------------------------------------- */

static bool is_wanted(const KilnTrainer *trainer)
{
    for (size_t i = 0; i < trainer->hooks.n_all; i++)
        if (trainer->hooks.all[i].ops->gradient_norms)
            return true;
    return false;
}

KilnStatus kiln_instruments_set_up(KilnTrainer *trainer, KilnError *err)
{
    KilnInstruments *instruments = &trainer->instruments;
    const size_t most = kiln_params_count(trainer->params);

    if (!is_wanted(trainer))
        return KILN_OK;
    instruments->norms = calloc(most + 1, sizeof(*instruments->norms));
    instruments->norm_ends = calloc(most + 1, sizeof(*instruments->norm_ends));
    if (instruments->norms == NULL || instruments->norm_ends == NULL)
        return kiln_error_nomem(err, most * sizeof(*instruments->norm_ends));
    for (size_t i = 0; i < most; i++) {
        const KilnParam *param = kiln_params_at(trainer->params, i);

        if (kiln_param_trained(param))
            instruments->norm_ends[instruments->n_norms++] =
                kiln_param_offset(param) + kiln_shape_count(kiln_param_shape(param));
    }
    return KILN_OK;
}

void kiln_instruments_release(KilnInstruments *instruments)
{
    free(instruments->norms);
    free(instruments->norm_ends);
    *instruments = (KilnInstruments) { 0 };
}

void kiln_instruments_record(KilnTrainer *trainer, KilnFlat *flat)
{
    const KilnInstruments *instruments = &trainer->instruments;
    const KilnShape shape = KILN_SHAPE((int64_t)instruments->n_norms);

    if (instruments->norms == NULL)
        return;
    flat->parts = kiln_graph_input(trainer->graph, KILN_I64, shape, instruments->norm_ends);
    flat->norms = kiln_graph_variable(trainer->graph, KILN_F32, shape, instruments->norms, false,
                                      NULL);
}

const float *kiln_trainer_gradient_norms(const KilnTrainer *trainer, size_t *ret_n)
{
    *ret_n = trainer->instruments.n_norms;
    return trainer->instruments.norms;
}

/* ---- Batches ----------------------------------------------------------------------------- */

bool kiln_trainer_loss(const KilnTrainer *trainer, double *ret)
{
    if (trainer->instruments.ran)
        *ret = trainer->instruments.loss;
    return trainer->instruments.ran;
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

    if (batch->lengths != NULL)
        return sum_of(batch->lengths, batch->size);
    for (size_t i = 0; i < trainer->spec.n_features; i++) {
        const KilnFeature *feature = &trainer->spec.features[i];

        if (feature->dtype == KILN_I32 && feature->shape.rank == 1)
            return batch->size * feature->shape.dim[0];
    }
    return 0;
}

bool kiln_trainer_row_is_due(const KilnTrainer *trainer)
{
    return trainer->options.tracks && trainer->instruments.stepped &&
           kiln_pace_logs(&trainer->pace, &trainer->at);
}

uint64_t kiln_trainer_seed(const KilnTrainer *trainer)
{
    return (uint64_t)trainer->options.root->seed;
}

void kiln_trainer_skip_batch(KilnTrainer *trainer)
{
    trainer->instruments.skips = true;
}

/* ---- FLOPs --------------------------------------------------------------------------------- */

double kiln_trainer_flops(const KilnTrainer *trainer)
{
    return trainer->forecast.flops + trainer->forecast.flops_backward;
}

/* Seconds of the fastest of the products that fit into a tenth of a second. */
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

    if (trainer->instruments.peak_flops > 0.0 || a == NULL) {
        free(a);
        return trainer->instruments.peak_flops;
    }
    for (int64_t i = 0; i < n * n; i++)
        a[i] = 1.0f / (float)(1 + i % 17);
    if (kiln_graph_new(trainer->backend, &graph, NULL) >= 0) {
        kiln_graph_set_precision(graph, (KilnPrecision)trainer->options.trainer->precision);
        if (time_products(graph, a, n, &seconds, NULL) >= 0)
            trainer->instruments.peak_flops = 2.0 * (double)(n * n * n) / seconds;
    }
    kiln_graph_free(graph);
    free(a);
    return trainer->instruments.peak_flops;
}

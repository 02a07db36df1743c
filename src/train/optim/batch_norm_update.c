/* Recomputes the running statistics of batch normalization for averaged weights, by a pass over the
 * training data (torch.optim.swa_utils.update_bn). */
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "nn/params.h"
#include "train/optim/averaged_weights.h"
#include "train/trainer.h"

/* The float buffers of a network, and which of them batch normalization updates. */
typedef struct Statistics {
    KilnParams *params;
    bool *is_running;                     /* by parameter: a running statistic */
    double *sums;                         /* [n_statistics] over the batches */
    KilnDType dtype;                      /* of copies of buffers, as of averages: f32 or f64 */
    void *values;                         /* [the largest buffer] a copy of one at a time */
    KilnBuffer *before, *counters_before; /* the buffers before the pass */
    int64_t batches;
    bool any; /* there is a running statistic */
} Statistics;

/* Of layers that are no kiln_nn_batch_norm2d, as PyTorch's. */
static const double default_momentum = 0.1;

/* ---- Running statistics
 * ---------------------------------------------------------------------------------- */

/* Whether the buffer belongs to a layer that counts its batches. */
static bool is_running(const KilnParams *params, const KilnParam *param)
{
    static const char *const names[] = { "running_mean", "running_var" };
    const char *dot = strrchr(param->name, '.'), *last = dot != NULL ? dot + 1 : param->name;
    KilnText counter = { 0 };
    bool running = false;

    for (size_t i = 0; i < KILN_COUNT(names) && !param->trained; i++)
        running = running || strcmp(last, names[i]) == 0;
    if (!running)
        return false;
    kiln_text_append_n(&counter, param->name, (size_t)(last - param->name));
    kiln_text_append(&counter, "num_batches_tracked");
    running = !counter.failed && kiln_params_find(params, counter.data) != NULL;
    kiln_text_release(&counter);
    return running;
}

/* A copy of a buffer. */
static KilnStatus save(KilnBackend *backend, const KilnBuffer *buffer, KilnBuffer **ret,
                       KilnError *err)
{
    const size_t bytes = kiln_buffer_bytes(buffer);
    KilnStatus status = kiln_buffer_new(backend, bytes, ret, err);

    if (status >= 0)
        kiln_buffer_copy(*ret, 0, buffer, 0, bytes);
    return status;
}

static KilnStatus open_statistics(const KilnTrainer *trainer, Statistics *ret, KilnError *err)
{
    KilnParams *params = trainer->params;

    *ret = (Statistics) {
        .params = params,
        .is_running = calloc(params->count + 1, sizeof(bool)),
        .sums = calloc((size_t)params->n_statistics + 1, sizeof(double)),
        .dtype = kiln_params_step_dtype(params),
        .values = calloc((size_t)kiln_params_largest(params) + 1, sizeof(double)),
    };
    if (ret->is_running == NULL || ret->sums == NULL || ret->values == NULL)
        return kiln_error_nomem(err, (size_t)params->n_statistics * sizeof(double));
    KilnStatus status = save(trainer->backend, params->statistics, &ret->before, err);
    if (status >= 0)
        status = save(trainer->backend, params->counters, &ret->counters_before, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < params->count; i++) {
        ret->is_running[i] = is_running(params, params->items[i]) && !params->items[i]->frozen;
        ret->any = ret->any || ret->is_running[i];
    }
    return KILN_OK;
}

static void close_statistics(Statistics *statistics)
{
    free(statistics->is_running);
    free(statistics->sums);
    free(statistics->values);
    kiln_buffer_free(statistics->before);
    kiln_buffer_free(statistics->counters_before);
}

/* ---- The pass ----------------------------------------------------------------------- */

/* After a step from 0, a running statistic is the momentum times that of the batch. */
static void clear(const Statistics *statistics)
{
    const KilnParams *params = statistics->params;

    for (size_t i = 0; i < params->count; i++) {
        const KilnParam *param = params->items[i];
        const KilnLocation location = kiln_param_location(param);

        if (statistics->is_running[i])
            kiln_buffer_clear(location.buffer, location.offset,
                              (size_t)param->count * kiln_dtype_size(params->dtype));
    }
}

static double value_at(const Statistics *statistics, int64_t i)
{
    return statistics->dtype == KILN_F64 ? ((const double *)statistics->values)[i]
                                         : (double)((const float *)statistics->values)[i];
}

static void set_value(const Statistics *statistics, int64_t i, double value)
{
    if (statistics->dtype == KILN_F64)
        ((double *)statistics->values)[i] = value;
    else
        ((float *)statistics->values)[i] = (float)value;
}

static void add_batch(Statistics *statistics)
{
    const KilnParams *params = statistics->params;

    statistics->batches++;
    for (size_t i = 0; i < params->count; i++) {
        const KilnParam *param = params->items[i];

        if (!statistics->is_running[i])
            continue;
        const double momentum = param->momentum > 0.0 ? param->momentum : default_momentum;
        kiln_param_read(param, statistics->dtype, statistics->values);
        for (int64_t k = 0; k < param->count; k++)
            statistics->sums[param->offset + k] += value_at(statistics, k) / momentum;
    }
}

/* Restore all buffers as before the pass. */
static void restore(const Statistics *statistics)
{
    const KilnParams *params = statistics->params;

    kiln_buffer_copy(params->statistics, 0, statistics->before, 0,
                     kiln_buffer_bytes(params->statistics));
    kiln_buffer_copy(params->counters, 0, statistics->counters_before, 0,
                     kiln_buffer_bytes(params->counters));
}

/* Write the means over the batches, to the averaged weights if those are in use. */
static void write_means(const Statistics *statistics, const KilnAveragedWeights *averaged)
{
    const KilnParams *params = statistics->params;

    for (size_t i = 0; i < params->count; i++) {
        KilnParam *param = params->items[i];
        const KilnLocation average = kiln_averaged_location(averaged, param);

        if (!statistics->is_running[i])
            continue;
        for (int64_t k = 0; k < param->count; k++)
            set_value(statistics, k,
                      statistics->sums[param->offset + k] / (double)statistics->batches);
        if (average.buffer != NULL)
            kiln_buffer_upload(average.buffer, average.offset, statistics->values,
                               (size_t)param->count * kiln_dtype_size(statistics->dtype));
        else
            kiln_param_write(param, statistics->dtype, statistics->values);
    }
}

static KilnStatus run_batch(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    const KilnModuleOps *ops = kiln_instance_component(trainer->module)->ops.module;

    kiln_step_begin(&trainer->step, KILN_PHASE_FIT, true, batch,
                    (uint64_t)trainer->options.root->seed, trainer->at.batches + batch->index);
    kiln_call_enter(trainer->module, "training_step");
    KilnTensor *loss = ops->training_step(trainer->module, &trainer->step);
    kiln_call_leave();
    return kiln_step_run(&trainer->step, loss, err);
}

/* The loader of all training batches; of several ranks, each makes the whole pass with a loader of
 * its own, which the caller frees. */
static KilnStatus open_loader(KilnTrainer *trainer, KilnLoader **ret, KilnError *err)
{
    if (!kiln_ranks_several(&trainer->ranks))
        return kiln_trainer_loader(trainer, KILN_TRAIN, 0, ret, err);
    const KilnLoaderSpec spec = kiln_trainer_loader_spec(trainer, KILN_TRAIN, 0);
    return kiln_loader_new(&spec, ret, err);
}

/* Use the epoch after the last one: no other pass has its order and augmentation. */
static KilnStatus run_batches(KilnTrainer *trainer, Statistics *statistics, KilnError *err)
{
    KilnLoader *loader = NULL;
    KilnStatus status = open_loader(trainer, &loader, err);

    if (status >= 0)
        status = kiln_loader_start(loader, trainer->at.epoch + 1, 0, err);
    trainer->save_signal.deferred = true;
    while (status >= 0 && !kiln_trainer_interrupted(trainer)) {
        KilnBatch batch;

        status = kiln_trainer_next_batch(trainer, loader, &batch, err);
        if (status == KILN_E_INTERRUPTED && kiln_trainer_interrupted(trainer))
            status = KILN_OK;
        if (status < 0 || trainer->state.interrupted || batch.size == 0)
            break;
        clear(statistics);
        status = run_batch(trainer, &batch, err);
        if (status >= 0)
            add_batch(statistics);
    }
    trainer->save_signal.deferred = false;
    if (kiln_ranks_several(&trainer->ranks))
        kiln_loader_free(loader);
    return status;
}

/* Measure with the current values of the weights. */
static KilnStatus measure(KilnTrainer *trainer, Statistics *statistics, KilnError *err)
{
    KilnStatus status = open_statistics(trainer, statistics, err);

    if (status < 0 || !statistics->any)
        return status;
    status = run_batches(trainer, statistics, err);
    restore(statistics);
    if (status < 0 || trainer->state.interrupted)
        statistics->batches = 0;
    return status;
}

KilnStatus kiln_trainer_update_statistics(KilnTrainer *trainer, KilnError *err)
{
    const KilnModuleOps *ops = kiln_instance_component(trainer->module)->ops.module;
    Statistics statistics = { 0 };

    if (ops->training_step == NULL) /* manual_step would train */
        return KILN_OK;
    kiln_averaged_swap_in(trainer->averaged);
    KilnStatus status = measure(trainer, &statistics, err);
    kiln_averaged_swap_out(trainer->averaged);
    if (statistics.batches > 0) {
        write_means(&statistics, trainer->averaged);
        trainer->newest.position.batches = -1; /* the checkpoint of this position is out of date */
    }
    close_statistics(&statistics);
    return status;
}

/* Recomputes the running statistics of batch normalization for averaged weights, by a pass over the
 * training data (torch.optim.swa_utils.update_bn). */
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "nn/params.h"
#include "tensor/bf16.h"
#include "train/optim/averaged_weights.h"
#include "train/trainer.h"

/* The float buffers of a network, and which of them batch normalization updates. */
typedef struct Statistics {
    KilnParams *params;
    bool *is_running; /* by parameter: a running statistic */
    double *sums;     /* [n_statistics] over the batches */
    void *before;     /* the float buffers before the pass */
    int64_t *counters_before;
    int64_t batches;
    bool any; /* there is a running statistic */
} Statistics;

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

static size_t float_bytes(const KilnParams *params)
{
    return (size_t)params->n_statistics * kiln_dtype_size(params->dtype);
}

static KilnStatus open_statistics(KilnParams *params, Statistics *ret, KilnError *err)
{
    const size_t counters = (size_t)params->n_counters * sizeof(int64_t);

    *ret = (Statistics) {
        .params = params,
        .is_running = calloc(params->count + 1, sizeof(bool)),
        .sums = calloc((size_t)params->n_statistics + 1, sizeof(double)),
        .before = malloc(float_bytes(params) + 1),
        .counters_before = malloc(counters + 1),
    };
    if (ret->is_running == NULL || ret->sums == NULL || ret->before == NULL ||
        ret->counters_before == NULL)
        return kiln_error_nomem(err, (size_t)params->n_statistics * sizeof(double));
    memcpy(ret->before, params->statistics, float_bytes(params));
    memcpy(ret->counters_before, params->counters, counters);
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
    free(statistics->before);
    free(statistics->counters_before);
}

/* ---- The pass ----------------------------------------------------------------------- */

/* After a step from 0, a running statistic is the momentum times that of the batch. */
static void clear(const Statistics *statistics)
{
    const KilnParams *params = statistics->params;

    for (size_t i = 0; i < params->count; i++)
        if (statistics->is_running[i])
            memset(params->items[i]->data, 0,
                   (size_t)params->items[i]->count * kiln_dtype_size(params->dtype));
}

static void add_batch(Statistics *statistics)
{
    const KilnParams *params = statistics->params;
    const bool bf16 = params->dtype == KILN_BF16;

    statistics->batches++;
    for (size_t i = 0; i < params->count; i++) {
        const KilnParam *param = params->items[i];

        for (int64_t k = 0; statistics->is_running[i] && k < param->count; k++) {
            const float value = bf16 ? kiln_bf16_to(((const uint16_t *)param->data)[k])
                                     : ((const float *)param->data)[k];

            statistics->sums[param->offset + k] += (double)value / KILN_BATCH_NORM_MOMENTUM;
        }
    }
}

/* Restore all buffers as before the pass. */
static void restore(const Statistics *statistics)
{
    const KilnParams *params = statistics->params;

    memcpy(params->statistics, statistics->before, float_bytes(params));
    memcpy(params->counters, statistics->counters_before,
           (size_t)params->n_counters * sizeof(int64_t));
}

/* Write the means over the batches, to the averaged weights if those are in use. */
static void write_means(const Statistics *statistics, const KilnAveragedWeights *averaged)
{
    const KilnParams *params = statistics->params;

    for (size_t i = 0; i < params->count && statistics->batches > 0; i++) {
        const KilnParam *param = params->items[i];
        float *values = averaged != NULL ? kiln_averaged_data(averaged, param) : NULL;
        const bool bf16 = values == NULL && params->dtype == KILN_BF16;

        for (int64_t k = 0; statistics->is_running[i] && k < param->count; k++) {
            const float mean =
                (float)(statistics->sums[param->offset + k] / (double)statistics->batches);

            if (bf16)
                kiln_bf16_from_f32((uint16_t *)param->data + k, &mean, 1);
            else
                (values != NULL ? values : (float *)param->data)[k] = mean;
        }
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

/* Use the epoch after the last one: no other pass has its order and augmentation. */
static KilnStatus run_batches(KilnTrainer *trainer, Statistics *statistics, KilnError *err)
{
    KilnLoader *loader = NULL;
    KilnStatus status = kiln_trainer_loader(trainer, KILN_TRAIN, 0, &loader, err);

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
    return status;
}

/* Measure with the current values of the weights. */
static KilnStatus measure(KilnTrainer *trainer, Statistics *statistics, KilnError *err)
{
    KilnStatus status = open_statistics(trainer->params, statistics, err);

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

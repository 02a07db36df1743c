/* Running statistics of batch normalization, counted anew for weights that were averaged. */
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "nn/params.h"
#include "tensor/bf16.h"
#include "train/optim/averaged_weights.h"
#include "train/trainer.h"

/* The float buffers of a network, and of them those that batch normalization counts. */
typedef struct Statistics {
    KilnParams *params;
    bool *counted; /* by parameter */
    double *sums;  /* [n_statistics] over the batches */
    void *before;  /* bytes of the float buffers */
    int64_t *counters;
    int64_t batches;
    bool any;
} Statistics;

/* ---- Which ---------------------------------------------------------------------------------- */

/* Of a layer that counts its batches. */
static bool is_counted(const KilnParams *params, const KilnParam *param)
{
    static const char *const names[] = { "running_mean", "running_var" };
    const char *dot = strrchr(param->name, '.'), *last = dot != NULL ? dot + 1 : param->name;
    KilnText counter = { 0 };
    bool counted = false;

    for (size_t i = 0; i < KILN_COUNT(names) && !param->trained; i++)
        counted = counted || strcmp(last, names[i]) == 0;
    if (!counted)
        return false;
    kiln_text_append_n(&counter, param->name, (size_t)(last - param->name));
    kiln_text_append(&counter, "num_batches_tracked");
    counted = !counter.failed && kiln_params_find(params, counter.data) != NULL;
    kiln_text_release(&counter);
    return counted;
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
        .counted = calloc(params->count + 1, sizeof(bool)),
        .sums = calloc((size_t)params->n_statistics + 1, sizeof(double)),
        .before = malloc(float_bytes(params) + 1),
        .counters = malloc(counters + 1),
    };
    if (ret->counted == NULL || ret->sums == NULL || ret->before == NULL || ret->counters == NULL)
        return kiln_error_nomem(err, (size_t)params->n_statistics * sizeof(double));
    memcpy(ret->before, params->statistics, float_bytes(params));
    memcpy(ret->counters, params->counters, counters);
    for (size_t i = 0; i < params->count; i++) {
        ret->counted[i] = is_counted(params, params->items[i]) && !params->items[i]->frozen;
        ret->any = ret->any || ret->counted[i];
    }
    return KILN_OK;
}

static void close_statistics(Statistics *statistics)
{
    free(statistics->counted);
    free(statistics->sums);
    free(statistics->before);
    free(statistics->counters);
}

/* ---- Counting ----------------------------------------------------------------------- */

/* Running statistics that were 0 are the momentum times the batch's own after a step. */
static void clear(const Statistics *statistics)
{
    const KilnParams *params = statistics->params;

    for (size_t i = 0; i < params->count; i++)
        if (statistics->counted[i])
            memset(params->items[i]->data, 0,
                   (size_t)params->items[i]->count * kiln_dtype_size(params->dtype));
}

static void take(Statistics *statistics)
{
    const KilnParams *params = statistics->params;
    const bool narrow = params->dtype == KILN_BF16;

    statistics->batches++;
    for (size_t i = 0; i < params->count; i++) {
        const KilnParam *param = params->items[i];

        for (int64_t k = 0; statistics->counted[i] && k < param->count; k++) {
            const float value = narrow ? kiln_bf16_to(((const uint16_t *)param->data)[k])
                                       : ((const float *)param->data)[k];

            statistics->sums[param->offset + k] += (double)value / KILN_BATCH_NORM_MOMENTUM;
        }
    }
}

/* Everything is as before the pass. */
static void restore(const Statistics *statistics)
{
    const KilnParams *params = statistics->params;

    memcpy(params->statistics, statistics->before, float_bytes(params));
    memcpy(params->counters, statistics->counters, (size_t)params->n_counters * sizeof(int64_t));
}

/* The means over the batches, in the shadow if it is used. */
static void put_means(const Statistics *statistics, const KilnAveragedWeights *averaged)
{
    const KilnParams *params = statistics->params;

    for (size_t i = 0; i < params->count && statistics->batches > 0; i++) {
        const KilnParam *param = params->items[i];
        float *values = averaged != NULL ? kiln_averaged_data(averaged, param) : NULL;
        const bool narrow = values == NULL && params->dtype == KILN_BF16;

        for (int64_t k = 0; statistics->counted[i] && k < param->count; k++) {
            const float mean =
                (float)(statistics->sums[param->offset + k] / (double)statistics->batches);

            if (narrow)
                kiln_bf16_from_f32((uint16_t *)param->data + k, &mean, 1);
            else
                (values != NULL ? values : (float *)param->data)[k] = mean;
        }
    }
}

static KilnStatus count_batch(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    const KilnModuleOps *ops = kiln_instance_component(trainer->module)->ops.module;

    kiln_step_begin(&trainer->step, KILN_PHASE_FIT, true, batch,
                    (uint64_t)trainer->options.root->seed, trainer->at.batches + batch->index);
    kiln_call_enter(trainer->module, "training_step");
    KilnTensor *loss = ops->training_step(trainer->module, &trainer->step);
    kiln_call_leave();
    return kiln_step_run(&trainer->step, loss, err);
}

/* The epoch behind the last one: its order and augmentation are nobody else's. */
static KilnStatus count(KilnTrainer *trainer, Statistics *statistics, KilnError *err)
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
        status = count_batch(trainer, &batch, err);
        if (status >= 0)
            take(statistics);
    }
    trainer->save_signal.deferred = false;
    return status;
}

/* With the values that are shown now. */
static KilnStatus count_anew(KilnTrainer *trainer, Statistics *statistics, KilnError *err)
{
    KilnStatus status = open_statistics(trainer->params, statistics, err);

    if (status < 0 || !statistics->any)
        return status;
    status = count(trainer, statistics, err);
    restore(statistics);
    if (status < 0 || trainer->state.interrupted)
        statistics->batches = 0;
    return status;
}

KilnStatus kiln_trainer_update_statistics(KilnTrainer *trainer, KilnError *err)
{
    const KilnModuleOps *ops = kiln_instance_component(trainer->module)->ops.module;
    Statistics statistics = { 0 };

    if (ops->training_step == NULL) /* nobody but the module knows what a batch is for */
        return KILN_OK;
    if (trainer->averaged != NULL)
        kiln_averaged_show(trainer->averaged);
    KilnStatus status = count_anew(trainer, &statistics, err);
    if (trainer->averaged != NULL)
        kiln_averaged_hide(trainer->averaged);
    if (statistics.batches > 0) {
        put_means(&statistics, trainer->averaged);
        trainer->newest.position.batches =
            -1; /* what was saved of this position is not what is now */
    }
    close_statistics(&statistics);
    return status;
}

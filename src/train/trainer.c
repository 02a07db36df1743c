/* What components may read of a run and change in it (kiln/trainer.h). Requests to save are in
 * train/checkpoint/save_requests.c, monitored metrics in train/metrics/monitored_metric.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "kiln/tools/clock.h"
#include "train/optim/lr_schedules.h"
#include "train/trainer.h"

/* ---- The position of training ------------------------------------------------------------ */

int64_t kiln_trainer_epoch(const KilnTrainer *trainer)
{
    return trainer->at.epoch;
}

int64_t kiln_trainer_global_step(const KilnTrainer *trainer)
{
    return trainer->at.step;
}

int kiln_trainer_rank(const KilnTrainer *trainer)
{
    return trainer->ranks.rank;
}

int kiln_trainer_world(const KilnTrainer *trainer)
{
    return kiln_ranks_several(&trainer->ranks) ? trainer->ranks.world : 1;
}

int64_t kiln_trainer_batches_done(const KilnTrainer *trainer)
{
    return trainer->at.batches;
}

const KilnDataSpec *kiln_trainer_spec(const KilnTrainer *trainer)
{
    return &trainer->data.spec;
}

const void *kiln_trainer_feature(const KilnTrainer *trainer, const char *name, int64_t *ret_n)
{
    const KilnFeature *feature = kiln_spec_feature(&trainer->data.spec, name);

    const KilnBatch *batch = &trainer->step.batch;

    if (feature == NULL || feature->content == KILN_TEXT || batch->features == NULL)
        return NULL;
    *ret_n = batch->size;
    return batch->features[feature - trainer->data.spec.features].data;
}

KilnSplit kiln_trainer_split(const KilnTrainer *trainer)
{
    return trainer->phase == KILN_PHASE_FIT ? KILN_TRAIN
                                            : kiln_trainer_eval_split(trainer, trainer->phase);
}

int kiln_trainer_threads(const KilnTrainer *trainer)
{
    return trainer->threads;
}

int64_t kiln_trainer_samples(const KilnTrainer *trainer)
{
    return trainer->at.samples;
}

int64_t kiln_trainer_accumulation(const KilnTrainer *trainer)
{
    return kiln_loop_accumulate(&trainer->schedule, trainer->at.epoch);
}

int64_t kiln_trainer_batch(const KilnTrainer *trainer)
{
    return trainer->phase == KILN_PHASE_FIT ? trainer->at.batch : trainer->eval.batch;
}

int64_t kiln_trainer_batches(const KilnTrainer *trainer)
{
    return trainer->phase == KILN_PHASE_FIT ? kiln_trainer_split_batches(trainer, KILN_TRAIN)
                                            : trainer->eval.batches;
}

int64_t kiln_trainer_dataloader(const KilnTrainer *trainer)
{
    return (int64_t)trainer->eval.set;
}

const char *kiln_trainer_dataloader_name(const KilnTrainer *trainer)
{
    return trainer->step.set;
}

int64_t kiln_trainer_dataloaders(const KilnTrainer *trainer)
{
    if (trainer->phase == KILN_PHASE_FIT)
        return 1;
    return (int64_t)trainer->data.sets[kiln_trainer_eval_split(trainer, trainer->phase)].n;
}

int64_t kiln_trainer_max_epochs(const KilnTrainer *trainer)
{
    return trainer->options.trainer->max_epochs;
}

const char *kiln_trainer_phase(const KilnTrainer *trainer)
{
    static const char *const names[] = {
        [KILN_PHASE_FIT] = "fit",         [KILN_PHASE_VALIDATE] = "validate",
        [KILN_PHASE_TEST] = "test",       [KILN_PHASE_SANITY] = "sanity",
        [KILN_PHASE_PREDICT] = "predict",
    };

    return names[trainer->phase];
}

double kiln_trainer_learning_rate(const KilnTrainer *trainer)
{
    return kiln_trainer_optimizer_rate(trainer, 0);
}

const KilnOptimizerUse *kiln_trainer_optimizer(const KilnTrainer *trainer, size_t i)
{
    return i < trainer->n_optimizers ? &trainer->optimizers[i].use : NULL;
}

const KilnOptimizerCommon *kiln_trainer_optimizer_common(const KilnTrainer *trainer, size_t i)
{
    return i < trainer->n_optimizers ? &trainer->optimizers[i].common : NULL;
}

double kiln_trainer_optimizer_rate(const KilnTrainer *trainer, size_t i)
{
    return i < trainer->n_optimizers ? trainer->optimizers[i].rate : 0.0;
}

void kiln_trainer_set_learning_rate(KilnTrainer *trainer, double lr)
{
    trainer->lr_override.active = lr >= 0.0;
    trainer->lr_override.rate = lr;
}

double kiln_trainer_scheduled_rate(const KilnTrainer *trainer)
{
    return kiln_lr_schedule_rate(trainer, &trainer->optimizers[0]);
}

double kiln_trainer_samples_per_s(const KilnTrainer *trainer)
{
    double seconds = kiln_clock() - trainer->timing.phase_start;

    return seconds > 0.0 ? (double)trainer->timing.phase_samples / seconds : 0.0;
}

const char *kiln_trainer_run_dir(const KilnTrainer *trainer)
{
    return trainer->run_dir != NULL ? trainer->run_dir : "";
}

KilnParams *kiln_trainer_params(KilnTrainer *trainer)
{
    return trainer->params;
}

KilnInstance *kiln_trainer_module(KilnTrainer *trainer)
{
    return trainer->module;
}

const KilnLayerInfo *kiln_trainer_layer(const KilnTrainer *trainer, size_t i)
{
    return i < trainer->n_layers ? &trainer->layers[i] : NULL;
}

const char *kiln_trainer_checkpoint_name(const KilnTrainer *trainer, char *buf, size_t size)
{
    snprintf(buf, size, "epoch=%03lld-step=%lld", (long long)trainer->at.epoch,
             (long long)trainer->at.step);
    return buf;
}

/* ---- Metrics ------------------------------------------------------------------------ */

bool kiln_trainer_metric(const KilnTrainer *trainer, const char *name, double *ret)
{
    const KilnMetric *metric = kiln_metrics_find(trainer->metrics, name);

    if (metric == NULL)
        return false;
    *ret = metric->value;
    return true;
}

bool kiln_trainer_step_metric(const KilnTrainer *trainer, const char *name, double *ret)
{
    const KilnMetric *metric = kiln_metrics_find(trainer->metrics, name);

    if (metric == NULL || metric->step != trainer->at.step)
        return false;
    *ret = metric->value;
    return true;
}

size_t kiln_trainer_metrics(const KilnTrainer *trainer, const KilnMetric **ret)
{
    return kiln_metrics_list(trainer->metrics, ret);
}

bool kiln_trainer_validates(const KilnTrainer *trainer)
{
    return kiln_trainer_split_batches(trainer, KILN_VAL) > 0;
}

bool kiln_trainer_validates_epochs(const KilnTrainer *trainer)
{
    return kiln_loop_validates_epochs(&trainer->schedule);
}

bool kiln_trainer_validates_now(const KilnTrainer *trainer)
{
    return kiln_loop_should_validate(&trainer->schedule, &trainer->at,
                                     kiln_clock() - trainer->timing.last_validation);
}

bool kiln_trainer_is_done(const KilnTrainer *trainer)
{
    return kiln_loop_is_done(&trainer->schedule, &trainer->at);
}

/* Within a training batch the value belongs to the step; elsewhere to the epoch. */
void kiln_trainer_log(KilnTrainer *trainer, const char *name, double value, unsigned flags)
{
    KilnError err = { 0 };
    KilnStatus status;

    if (!trainer->options.tracks)
        return;
    flags = kiln_log_flags(KILN_PHASE_FIT, flags);
    if (kiln_log_mode(flags) == KILN_MODE_AUTO)
        flags |= kiln_trainer_declared_flags(trainer, name);
    if (trainer->batch.log_step >= 0) {
        int declared = kiln_metrics_declare(trainer->metrics, KILN_PHASE_FIT, name, flags);

        status = declared < 0 ? kiln_error_nomem(&err, strlen(name))
                              : kiln_metrics_add(trainer->metrics, declared, value,
                                                 (double)trainer->step.batch.size,
                                                 trainer->at.epoch, trainer->batch.log_step, &err);
    } else {
        status = kiln_metrics_set(trainer->metrics, name, value,
                                  (flags & ~(unsigned)KILN_LOG_STEP) | KILN_LOG_EPOCH,
                                  trainer->at.epoch, trainer->at.step, &err);
    }
    if (status < 0)
        kiln_output_print(&trainer->output, "warning: %s is not logged: %s", name, err.text);
}

/* ---- Stopping and output ------------------------------------------------------------ */

/* The first request counts, even while training continues until min_epochs; but a request to end
 * the run replaces one to pause it. */
void kiln_trainer_stop(KilnTrainer *trainer, const char *reason)
{
    if (trainer->at.should_stop && !trainer->state.paused)
        return;
    trainer->at.should_stop = true;
    trainer->state.paused = false;
    snprintf(trainer->state.stop_reason, sizeof(trainer->state.stop_reason), "%s",
             reason != NULL ? reason : "");
    const bool waits = trainer->at.epoch + 1 < trainer->schedule.min_epochs ||
                       trainer->at.step < trainer->schedule.min_steps;
    kiln_output_print(&trainer->output, "stopping%s: %s",
                      waits ? " when trainer.min_epochs and trainer.min_steps are done" : "",
                      trainer->state.stop_reason);
}

void kiln_trainer_pause(KilnTrainer *trainer, const char *reason)
{
    if (trainer->at.should_stop)
        return;
    kiln_trainer_stop(trainer, reason);
    trainer->state.paused = true;
}

void kiln_trainer_skip_epoch(KilnTrainer *trainer)
{
    trainer->batch.skip = KILN_SKIP_EPOCH;
}

void kiln_trainer_print(KilnTrainer *trainer, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    kiln_output_vprint(&trainer->output, format, args);
    va_end(args);
}

KilnStatus kiln_trainer_output(KilnTrainer *trainer, const char *text, KilnError *err)
{
    if (trainer->env->output == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "the caller of this run takes no output; name a file");
    return trainer->env->output(trainer->env->ctx, text, err);
}

const KilnConsole *kiln_trainer_console(const KilnTrainer *trainer)
{
    return &trainer->output.console;
}

void kiln_trainer_status_line(KilnTrainer *trainer, const char *text)
{
    kiln_output_status_line(&trainer->output, text);
}

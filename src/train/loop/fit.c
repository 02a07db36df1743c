/* The training loop: epochs, their batches, and the validations between them, with hooks in
 * Lightning's order. train/loop/loop_schedule.c decides what is due when;
 * train/step/fit_batch.c trains one batch, train/loop/evaluate.c validates. */
#include "train/loop/fit.h"

#include <stdio.h>

#include "kiln/tools/clock.h"
#include "train/loader/bottleneck.h"
#include "train/optim/lr_scales.h"
#include "train/optim/lr_schedules.h"
#include "train/run/run_journal.h"
#include "train/trainer.h"

/* ---- Validation ---------------------------------------------------------------------- */

static KilnStatus validate_if_due(KilnTrainer *trainer, KilnError *err)
{
    const double since = kiln_ranks_several(&trainer->ranks)
                             ? trainer->ranks.since_validation
                             : kiln_clock() - trainer->timing.last_validation;

    if (trainer->batch.skip == KILN_SKIP_EPOCH ||
        !kiln_loop_should_validate(&trainer->schedule, &trainer->at, since) ||
        kiln_trainer_interrupted(trainer))
        return KILN_OK;
    KilnStatus status = kiln_eval_loop(trainer, KILN_PHASE_VALIDATE, err);
    trainer->timing.last_validation = kiln_clock();
    return status;
}

/* ---- One batch ----------------------------------------------------------------------- */

/* End this session when trainer.max_time is over. */
static void stop_in_time(KilnTrainer *trainer, double now)
{
    char reason[64];

    if (trainer->at.should_stop ||
        now - trainer->timing.train_start < trainer->schedule.max_seconds)
        return;
    snprintf(reason, sizeof(reason), "max_time of %g s is over", trainer->schedule.max_seconds);
    kiln_trainer_pause(trainer, reason);
}

/* Call on_train_batch_start, which may leave the batch or the rest of its epoch out. */
static KilnStatus begin_batch(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    const bool steps = kiln_fit_steps(trainer, batch);

    trainer->batch.log_step = trainer->at.step + (steps ? 1 : 0);
    trainer->batch.has_loss = trainer->batch.stepped = false;
    if (trainer->batch.skip == KILN_SKIP_BATCH)
        trainer->batch.skip = KILN_SKIP_NOTHING;
    return batch->size > 0 ? KILN_CALL(trainer, on_train_batch_start, err) : KILN_OK;
}

/* Values that on_train_batch_end logs belong to the step, so loggers come after it; callbacks that
 * save come after the loggers. */
static KilnStatus end_batch(KilnTrainer *trainer, KilnError *err)
{
    const size_t end = offsetof(KilnCallbackOps, on_train_batch_end);
    KilnStatus status = kiln_hooks_call(trainer, end, KILN_HOOKS_NOT_SAVING, err);

    if (status >= 0 && trainer->batch.stepped &&
        kiln_loop_should_log(&trainer->schedule, &trainer->at))
        status = kiln_loggers_send(trainer, false, err);
    return status >= 0 ? kiln_hooks_call(trainer, end, KILN_HOOKS_SAVING, err) : status;
}

/* Whether the batch is trained: hooks may leave it out, on this rank; but the other ranks then
 * train their batches of the round. */
static KilnStatus is_trained(KilnTrainer *trainer, KilnBatch *batch, bool *ret, KilnError *err)
{
    *ret = trainer->batch.skip == KILN_SKIP_NOTHING;
    if (!kiln_ranks_several(&trainer->ranks))
        return KILN_OK;
    if (!*ret)
        batch->size = 0;
    return kiln_ranks_begin_round(trainer, batch->size, ret, err);
}

static KilnStatus train_batch(KilnTrainer *trainer, KilnBatch *batch, KilnError *err)
{
    const int64_t step = trainer->at.step;
    bool trained = false;
    KilnStatus status = begin_batch(trainer, batch, err);

    if (status >= 0)
        status = is_trained(trainer, batch, &trained, err);
    if (status >= 0 && trained) {
        status = kiln_fit_batch(trainer, batch, err);
        trainer->batch.stepped = trainer->at.step > step;
        if (status >= 0 && batch->size > 0)
            status = end_batch(trainer, err);
        if (status == KILN_E_NUMERIC) /* a hook may report it, too */
            trainer->state.params_invalid = true;
    } else if (status >= 0 && trainer->batch.skip != KILN_SKIP_EPOCH) {
        kiln_fit_count_batches(trainer, batch);
    }
    trainer->batch.log_step = -1;
    if (status >= 0)
        stop_in_time(trainer, kiln_clock());
    return status < 0 ? status : kiln_ranks_agree(trainer, err);
}

/* ---- One epoch --------------------------------------------------------------------- */

/* This rank's batch of the round that begins; size 0: it has none. */
static KilnStatus round_batch(KilnTrainer *trainer, KilnLoader *loader, KilnBatch *ret,
                              KilnError *err)
{
    const int64_t world = kiln_trainer_world(trainer), first = trainer->at.batch;
    const int64_t own = first / world * world + trainer->ranks.rank;

    *ret = (KilnBatch) { .index = own };
    trainer->ranks.ahead = own - first;
    return own < first || own >= trainer->schedule.batches
               ? KILN_OK
               : kiln_trainer_next_batch(trainer, loader, ret, err);
}

/* The caller of one rank may end the run of all. */
static bool may_continue(KilnTrainer *trainer)
{
    const KilnRunEnv *env = trainer->env;

    if (env->may_continue == NULL || env->may_continue(env->ctx, trainer))
        return true;
    if (!kiln_ranks_several(&trainer->ranks))
        trainer->state.interrupted = true;
    trainer->ranks.wants_end = true;
    return kiln_ranks_several(&trainer->ranks);
}

/* The next batch, in trainer->step.batch for hooks; *ret_more is false at the end of the epoch, and
 * where the caller interrupts the run. */
static KilnStatus next_batch(KilnTrainer *trainer, KilnLoader *loader, bool *ret_more,
                             KilnError *err)
{
    const bool several = kiln_ranks_several(&trainer->ranks);
    KilnBatch batch;
    KilnStatus status = several ? round_batch(trainer, loader, &batch, err)
                                : kiln_trainer_next_batch(trainer, loader, &batch, err);

    *ret_more = false;
    if (status == KILN_E_INTERRUPTED && kiln_trainer_interrupted(trainer))
        return KILN_OK;
    if (status < 0)
        return status;
    if (several ? trainer->at.batch >= trainer->schedule.batches : batch.size == 0) {
        trainer->at.batch = kiln_loader_batches(loader);
        return KILN_OK;
    }
    trainer->step.batch = batch;
    *ret_more = may_continue(trainer);
    return KILN_OK;
}

static bool is_stopping(KilnTrainer *trainer)
{
    return kiln_loop_should_stop(&trainer->schedule, &trainer->at) ||
           kiln_trainer_interrupted(trainer);
}

/* Train the next batch, and validate where that is due within the epoch. *ret_ended: there is none,
 * or the run stops here. */
static KilnStatus train_next_batch(KilnTrainer *trainer, bool *ret_ended, KilnError *err)
{
    KilnLoader *loader = trainer->fit.loader;
    const int64_t batches = kiln_loader_batches(loader);
    bool more = !is_stopping(trainer);
    KilnStatus status = more ? next_batch(trainer, loader, &more, err) : KILN_OK;

    *ret_ended = !more;
    if (status < 0 || !more)
        return status;
    KilnBatch batch = trainer->step.batch;
    status = train_batch(trainer, &batch, err);
    if (trainer->batch.skip == KILN_SKIP_EPOCH) {
        trainer->at.batch = batches;
        *ret_ended = true;
        return status;
    }
    kiln_live_status_update(trainer, kiln_clock());
    return status >= 0 && trainer->at.batch < batches ? validate_if_due(trainer, err) : status;
}

/* The optimizer step of a group that was cut short, and its row for the loggers. */
static KilnStatus step_with_leftovers(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = kiln_fit_leftover_gradients(trainer, err);

    return status >= 0 && kiln_loop_should_log(&trainer->schedule, &trainer->at)
               ? kiln_loggers_send(trainer, false, err)
               : status;
}

/* After the last batch. Gradients are not kept over the end of an epoch: if its last batches had no
 * readable sample, or were left out, the gradients of those before them make a step. Means of the
 * epoch are final before validation, which comes before on_train_epoch_end, as in Lightning. */
static KilnStatus end_epoch(KilnTrainer *trainer, bool whole, KilnError *err)
{
    const size_t end = offsetof(KilnCallbackOps, on_train_epoch_end);
    KilnStatus status = whole && trainer->at.in_group > 0 ? step_with_leftovers(trainer, err)
                                                          : KILN_OK;

    if (status >= 0)
        status = kiln_trainer_end_metrics(trainer, KILN_PHASE_FIT, err);
    if (status >= 0)
        status = validate_if_due(trainer, err);
    trainer->batch.skip = KILN_SKIP_NOTHING;
    if (status < 0 || trainer->state.interrupted)
        return status;
    trainer->at.epoch_done = whole;
    trainer->at.last_end_batch = trainer->at.batches;
    kiln_lr_schedules_observe(trainer);
    status = kiln_hooks_call(trainer, end, KILN_HOOKS_NOT_SAVING, err);
    if (status >= 0)
        status = kiln_loggers_send(trainer, true, err);
    if (status >= 0)
        status = kiln_hooks_call(trainer, end, KILN_HOOKS_SAVING, err);
    return status >= 0 ? kiln_ranks_agree(trainer, err) : status;
}

/* Start the loader of the epoch, and validate if that is still due: the run may have been stopped
 * between a batch and its validation. */
static KilnStatus begin_batches(KilnTrainer *trainer, KilnError *err)
{
    KilnLoader *loader = trainer->fit.loader;
    KilnStatus status = kiln_loader_start(loader, trainer->at.epoch, trainer->at.batch, err);

    if (status == KILN_E_INTERRUPTED && kiln_trainer_interrupted(trainer))
        return KILN_OK;
    if (status >= 0)
        status = kiln_ranks_agree(trainer, err);
    return status >= 0 && trainer->at.batch < kiln_loader_batches(loader)
               ? validate_if_due(trainer, err)
               : status;
}

/* Leaves trainer->fit.loader NULL if the run is interrupted before the epoch. */
static KilnStatus begin_epoch(KilnTrainer *trainer, KilnError *err)
{
    KilnLoader *loader = NULL;

    if (trainer->at.epoch_done) {
        trainer->at.epoch++;
        trainer->at.batch = 0;
        trainer->at.epoch_begun = trainer->at.epoch_done = false;
    }
    KilnStatus status = kiln_splits_reload(trainer, err);
    if (status == KILN_E_INTERRUPTED && kiln_trainer_interrupted(trainer))
        return KILN_OK;
    if (status >= 0)
        status = kiln_trainer_loader(trainer, KILN_TRAIN, 0, &loader, err);
    if (status < 0)
        return status;
    trainer->fit.loader = loader;
    trainer->timing.phase_start = kiln_clock();
    trainer->timing.phase_samples = 0;
    status = kiln_lr_scales_apply(trainer, trainer->at.epoch, err);
    /* A run that resumes within an epoch has begun it already. */
    if (status >= 0 && !trainer->at.epoch_begun) {
        trainer->at.epoch_begun = true;
        status = KILN_CALL(trainer, on_train_epoch_start, err);
    }
    return status >= 0 ? begin_batches(trainer, err) : status;
}

static void count_time(KilnTrainer *trainer)
{
    KilnTiming *timing = &trainer->timing;

    timing->loop_s += kiln_clock() - timing->phase_start;
    timing->samples += timing->phase_samples;
}

static void report_progress(const KilnTrainer *trainer, bool resumed)
{
    KilnRunProgress progress = {
        .resumed = resumed,
        .epoch = trainer->at.epoch + (trainer->at.epoch_done ? 1 : 0),
        .max_epochs = trainer->options.trainer->max_epochs,
        .step = trainer->at.step,
        .max_steps = trainer->options.trainer->max_steps,
    };

    if (trainer->env->progress == NULL)
        return;
    progress.n_metrics = kiln_metrics_list(trainer->metrics, &progress.metrics);
    trainer->env->progress(trainer->env->ctx, &progress);
}

/* End the epoch after its last batch, or leave it where the run stops. */
static KilnStatus leave_epoch(KilnTrainer *trainer, KilnError *err)
{
    KilnLoader *loader = trainer->fit.loader;
    KilnStatus status = KILN_OK;

    trainer->fit.loader = NULL;
    kiln_loading_report(trainer, loader, kiln_clock() - trainer->timing.phase_start);
    count_time(trainer);
    if (!trainer->state.interrupted)
        status = end_epoch(trainer, trainer->at.batch >= kiln_loader_batches(loader), err);
    if (status >= 0 && trainer->at.epoch_done)
        kiln_run_journal_epoch(trainer);
    if (status >= 0)
        report_progress(trainer, false);
    return status;
}

/* ---- The whole loop, step by step ------------------------------------------------------ */

/* Run the sanity check, except where training resumes within an epoch: its validation loop is known
 * to work. */
static KilnStatus check_sanity(KilnTrainer *trainer, KilnError *err)
{
    if (trainer->options.trainer->num_sanity_val_steps == 0 || !trainer->schedule.validates ||
        (trainer->at.batch > 0 && !trainer->at.epoch_done))
        return KILN_OK;
    KilnStatus status = KILN_CALL(trainer, on_sanity_check_start, err);
    if (status >= 0)
        status = kiln_eval_loop(trainer, KILN_PHASE_SANITY, err);
    if (status >= 0 && !trainer->state.interrupted)
        status = KILN_CALL(trainer, on_sanity_check_end, err);
    return status;
}

static KilnStatus begin_training(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = check_sanity(trainer, err);

    if (status < 0 || trainer->state.interrupted)
        return status;
    trainer->timing.train_start = trainer->timing.last_validation = kiln_clock();
    trainer->fit.trains = true;
    status = KILN_CALL(trainer, on_train_start, err);
    if (status >= 0)
        status = kiln_save_requests_reserve(trainer, err);
    return status >= 0 ? kiln_ranks_agree(trainer, err) : status;
}

KilnStatus kiln_fit_loop_begin(KilnTrainer *trainer, KilnError *err)
{
    trainer->phase = KILN_PHASE_FIT;
    KilnStatus status = KILN_CALL(trainer, on_fit_start, err);
    if (status >= 0 &&
        (trainer->at.epoch_done || (trainer->at.epoch > 0 && trainer->at.batch == 0)))
        report_progress(trainer, true);
    return status >= 0 && !kiln_loop_is_last_epoch(&trainer->schedule, &trainer->at)
               ? begin_training(trainer, err)
               : status;
}

bool kiln_fit_loop_is_over(const KilnTrainer *trainer)
{
    return trainer->fit.loader == NULL &&
           (trainer->state.interrupted ||
            kiln_loop_is_last_epoch(&trainer->schedule, &trainer->at));
}

/* Whether the batch that was trained is followed by another one of its epoch. */
static bool has_more_batches(KilnTrainer *trainer)
{
    return trainer->fit.loader != NULL &&
           trainer->at.batch < kiln_loader_batches(trainer->fit.loader) && !is_stopping(trainer);
}

KilnStatus kiln_fit_loop_step(KilnTrainer *trainer, KilnError *err)
{
    const int64_t before = trainer->at.batches;
    KilnStatus status = KILN_OK;
    bool ended = false;

    while (status >= 0 && !kiln_fit_loop_is_over(trainer) &&
           !(trainer->at.batches > before && (ended || has_more_batches(trainer)))) {
        if (trainer->fit.loader == NULL)
            status = begin_epoch(trainer, err);
        if (status < 0 || trainer->fit.loader == NULL)
            continue;
        status = train_next_batch(trainer, &ended, err);
        if (status >= 0 && ended)
            status = leave_epoch(trainer, err);
    }
    if (status < 0 && trainer->fit.loader != NULL)
        count_time(trainer);
    return status;
}

/* Stop before the end, as for an interrupt; several ranks after the next round. */
static KilnStatus stop_early(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = KILN_OK;

    trainer->ranks.wants_end = true;
    while (status >= 0 && kiln_ranks_several(&trainer->ranks) && !kiln_fit_loop_is_over(trainer))
        status = kiln_fit_loop_step(trainer, err);
    trainer->state.interrupted = true;
    return status >= 0 && trainer->fit.loader != NULL ? leave_epoch(trainer, err) : status;
}

KilnStatus kiln_fit_loop_end(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = kiln_fit_loop_is_over(trainer) ? KILN_OK : stop_early(trainer, err);

    if (status >= 0 && trainer->fit.trains && !trainer->state.interrupted)
        status = KILN_CALL(trainer, on_train_end, err);
    return status >= 0 && !trainer->state.interrupted ? KILN_CALL(trainer, on_fit_end, err)
                                                      : status;
}

/* The training loop: Lightning's order of hooks, one optimizer step a batch. */
#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "graph/graph.h"
#include "train/loading.h"

/* ---- One step -------------------------------------------------------------------- */

KilnTensor *kiln_fit_record(KilnTrainer *trainer, const KilnBatch *batch)
{
    const KilnModuleOps *ops = kiln_instance_component(trainer->module)->ops.module;
    KilnTensor *loss;

    kiln_step_begin(&trainer->step, KILN_PHASE_FIT, true, batch,
                    (uint64_t)trainer->options.root->seed, trainer->at.batches);
    loss = ops->training_step(trainer->module, &trainer->step);
    if (!kiln_tensor_poisoned(loss) && kiln_tensor_shape(loss)->rank != 0) {
        char text[KILN_SHAPE_TEXT];

        loss = kiln_graph_poison(trainer->graph,
                                 "the training step of %s returns a loss of shape %s; a scalar is "
                                 "needed (kiln_mean)",
                                 kiln_instance_name(trainer->module),
                                 kiln_shape_text(kiln_tensor_shape(loss), text, sizeof(text)));
    }
    KilnRecording at = { .step = &trainer->step, .loss = loss, .steps = true };
    KILN_RECORD(trainer, on_before_zero_grad, &at);
    KILN_RECORD(trainer, on_before_backward, &at);
    kiln_graph_backward(trainer->graph, loss);
    at.gradients = kiln_params_flat_gradients(trainer->params, trainer->graph);
    KILN_RECORD(trainer, on_after_backward, &at);
    kiln_optimize_record(trainer, &at);
    return loss;
}

/* The update of this step has spoilt the parameters; nothing saves them. */
static KilnStatus not_finite(const KilnTrainer *trainer, double loss, KilnError *err)
{
    char kept[4608] = "no checkpoint was saved yet";

    if (trainer->saved_name[0] != '\0')
        snprintf(kept, sizeof(kept), "the last good checkpoint is %s/checkpoints/%s",
                 trainer->run_dir, trainer->saved_name);
    else if (trainer->resumed_from != NULL)
        snprintf(kept, sizeof(kept), "the last good checkpoint is %s", trainer->resumed_from);
    return kiln_error_set(err, KILN_E_NUMERIC,
                          "the loss is %s at epoch %lld, step %lld (learning rate %g): training "
                          "stops; try a lower learning rate or a warmup; %s",
                          isnan(loss) ? "NaN" : "infinite", (long long)trainer->at.epoch,
                          (long long)trainer->at.step + 1, trainer->learning_rate, kept);
}

static void measure(KilnTiming *timing, double seconds)
{
    timing->step_ms[timing->steps % KILN_STEP_TIMES] = (float)(1e3 * seconds);
    timing->steps++;
}

static KilnStatus train_step(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    double start = kiln_clock();
    KilnTensor *loss = kiln_fit_record(trainer, batch);
    KilnStatus status = kiln_step_run(&trainer->step, loss, err);

    if (status == KILN_E_NUMERIC)
        return kiln_error_prefix(
            err, "epoch %lld, step %lld (batch %lld of the epoch): ", (long long)trainer->at.epoch,
            (long long)trainer->at.step + 1, (long long)batch->index + 1);
    if (status < 0)
        return status;
    double value = kiln_tensor_scalar(loss);
    measure(&trainer->timing, kiln_clock() - start);
    if (!isfinite(value))
        return not_finite(trainer, value, err);
    trainer->at.step++;
    trainer->at.batch = batch->index + 1;
    trainer->at.batches++;
    trainer->at.samples += batch->size;
    trainer->timing.phase_samples += batch->size;
    return kiln_step_count(&trainer->step, trainer->at.epoch, trainer->at.step, err);
}

static KilnStatus train_batch(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    const size_t end = offsetof(KilnCallbackOps, on_train_batch_end);
    KilnStatus status = train_step(trainer, batch, err);

    if (status >= 0)
        status = kiln_hooks_call(trainer, end, KILN_HOOK_OTHERS, err);
    if (status >= 0 && trainer->at.step % trainer->options.trainer->log_every_n_steps == 0)
        status = kiln_loggers_send(trainer, false, err);
    if (status >= 0)
        status = kiln_hooks_call(trainer, end, KILN_HOOK_SAVING, err);
    return status;
}

/* ---- One epoch --------------------------------------------------------------------- */

static bool steps_left(const KilnTrainer *trainer)
{
    int64_t max_steps = trainer->options.trainer->max_steps;

    return max_steps < 0 || trainer->at.step < max_steps;
}

static KilnStatus train_batches(KilnTrainer *trainer, KilnLoader *loader, KilnError *err)
{
    KilnStatus status = kiln_loader_start(loader, trainer->at.epoch, trainer->at.batch, err);

    while (status >= 0 && !trainer->at.should_stop && steps_left(trainer) &&
           !kiln_trainer_interrupted(trainer)) {
        KilnBatch batch;

        status = kiln_loader_next(loader, &batch, err);
        if (status == KILN_E_INTERRUPTED && kiln_trainer_interrupted(trainer))
            return KILN_OK;
        if (status < 0)
            break;
        if (batch.size == 0) {
            trainer->at.batch = kiln_loader_batches(loader);
            break;
        }
        trainer->in_batch = true;
        trainer->batch_step = trainer->at.step + 1;
        status = KILN_CALL(trainer, on_train_batch_start, err);
        if (status >= 0)
            status = train_batch(trainer, &batch, err);
        trainer->in_batch = false;
    }
    return status;
}

/* Validation comes before the end of the training epoch, as Lightning has it.
 * A run that ends within an epoch is validated, too. */
static bool validation_due(const KilnTrainer *trainer, bool whole)
{
    if (kiln_trainer_split_batches(trainer, KILN_VAL) == 0)
        return false;
    return !whole ||
           (trainer->at.epoch + 1) % trainer->options.trainer->check_val_every_n_epoch == 0;
}

static KilnStatus end_epoch(KilnTrainer *trainer, bool whole, KilnError *err)
{
    const size_t end = offsetof(KilnCallbackOps, on_train_epoch_end);
    KilnStatus status = kiln_metrics_end_epoch(trainer->metrics, KILN_PHASE_FIT, trainer->at.epoch,
                                               trainer->at.step, err);

    if (status >= 0 && trainer->at.last_val_batch != trainer->at.batches &&
        validation_due(trainer, whole))
        status = kiln_eval_loop(trainer, KILN_PHASE_VALIDATE, err);
    if (status < 0 || trainer->interrupted)
        return status;
    trainer->at.epoch_done = whole;
    kiln_optimize_observe(trainer);
    status = kiln_hooks_call(trainer, end, KILN_HOOK_OTHERS, err);
    if (status >= 0)
        status = kiln_loggers_send(trainer, true, err);
    if (status >= 0)
        status = kiln_hooks_call(trainer, end, KILN_HOOK_SAVING, err);
    return status;
}

static KilnStatus train_epoch(KilnTrainer *trainer, KilnLoader *loader, KilnError *err)
{
    KilnTiming *timing = &trainer->timing;
    KilnStatus status = KILN_OK;

    timing->phase_start = kiln_clock();
    timing->phase_samples = 0;
    /* A run that goes on within an epoch has begun it. */
    if (!trainer->at.epoch_begun) {
        trainer->at.epoch_begun = true;
        status = KILN_CALL(trainer, on_train_epoch_start, err);
    }
    if (status >= 0)
        status = train_batches(trainer, loader, err);
    if (status >= 0)
        kiln_loading_report(trainer, loader, kiln_clock() - timing->phase_start);
    timing->loop_s += kiln_clock() - timing->phase_start;
    timing->samples += timing->phase_samples;
    if (status < 0 || trainer->interrupted)
        return status;
    return end_epoch(trainer, trainer->at.batch >= kiln_loader_batches(loader), err);
}

static void tell_progress(const KilnTrainer *trainer)
{
    KilnRunProgress progress = {
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

/* ---- All epochs ---------------------------------------------------------------------- */

static bool finished(const KilnTrainer *trainer)
{
    int64_t max_epochs = trainer->options.trainer->max_epochs;
    int64_t done = trainer->at.epoch + (trainer->at.epoch_done ? 1 : 0);

    return trainer->at.should_stop || trainer->interrupted || !steps_left(trainer) ||
           (max_epochs >= 0 && done >= max_epochs);
}

KilnStatus kiln_fit_loop(KilnTrainer *trainer, KilnError *err)
{
    KilnLoader *loader = NULL;
    KilnStatus status = kiln_trainer_loader(trainer, KILN_TRAIN, &loader, err);

    trainer->phase = KILN_PHASE_FIT;
    if (status >= 0)
        status = KILN_CALL(trainer, on_fit_start, err);
    if (status >= 0)
        status = KILN_CALL(trainer, on_train_start, err);
    while (status >= 0 && loader != NULL && !finished(trainer)) {
        if (trainer->at.epoch_done) {
            trainer->at.epoch++;
            trainer->at.batch = 0;
            trainer->at.epoch_begun = trainer->at.epoch_done = false;
        }
        status = train_epoch(trainer, loader, err);
        if (status >= 0)
            tell_progress(trainer);
    }
    if (status < 0 || trainer->interrupted)
        return status;
    status = KILN_CALL(trainer, on_train_end, err);
    if (status >= 0)
        status = KILN_CALL(trainer, on_fit_end, err);
    return status;
}

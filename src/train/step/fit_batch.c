/* One training batch: records the step, runs it and checks the loss. The next stations:
 * train/step/module_step.c for what the module records, graph/backward.c for the gradients,
 * train/optim/optimize.c for the update, then graph/plan/plan.c and graph/plan/execute.c, which
 * plan and run all of it at once. A module with manual_step drives its steps itself
 * (train/step/manual.c). */
#include "train/step/fit_batch.h"

#include <math.h>
#include <stdio.h>

#include "base/call.h"
#include "graph/plan/plan_note.h"
#include "kiln/tools/clock.h"
#include "train/optim/optimize.h"
#include "train/step/manual.h"
#include "train/trainer.h"

/* ---- Recording -------------------------------------------------------------------------- */

/* NULL: the module leaves the batch out. */
static KilnTensor *record_loss(KilnTrainer *trainer)
{
    const KilnModuleOps *ops = kiln_instance_component(trainer->module)->ops.module;
    char text[KILN_SHAPE_TEXT];

    kiln_call_enter(trainer->module, "training_step");
    KilnTensor *loss = ops->training_step(trainer->module, &trainer->step);
    kiln_call_leave();

    if (loss == NULL && trainer->step.batch.samples != NULL)
        return NULL;
    if (loss == NULL)
        return kiln_graph_poison(trainer->graph,
                                 "the training step of %s returns no loss for a batch without "
                                 "data; it may leave out only batches that have data",
                                 kiln_instance_name(trainer->module));
    if (kiln_tensor_poisoned(loss) || kiln_tensor_shape(loss)->rank == 0)
        return loss;
    return kiln_graph_poison(trainer->graph,
                             "the training step of %s returns a loss of shape %s; a scalar is "
                             "needed (kiln_mean)",
                             kiln_instance_name(trainer->module),
                             kiln_shape_text(kiln_tensor_shape(loss), text, sizeof(text)));
}

/* The share of the loss that counts in its group of batches. As in Lightning, a group that the end
 * of the epoch cuts short divides by the full size, too. */
static KilnTensor *share_of(const KilnTrainer *trainer, KilnTensor *loss)
{
    const int64_t n = kiln_loop_accumulate(&trainer->schedule, trainer->at.epoch);

    return n == 1 || kiln_tensor_poisoned(loss) ? loss : kiln_scale(loss, 1.0 / (double)n);
}

KilnClipping kiln_fit_clipping(const KilnTrainer *trainer)
{
    const KilnTrainerOptions *options = trainer->options.trainer;

    return (KilnClipping) {
        .limit = options->gradient_clip_val != NULL ? *options->gradient_clip_val : 0.0,
        .by_norm = options->gradient_clip_algorithm == KILN_CLIP_NORM,
    };
}

void kiln_fit_record_gradients(KilnTrainer *trainer, KilnRecording *at, KilnTensor *loss,
                               bool accumulates)
{
    trainer->graph->accumulates = accumulates;
    kiln_params_backward(trainer->params, trainer->graph, loss);
    at->gradients = kiln_params_flat_gradients(trainer->params, trainer->graph);
    KILN_RECORD(trainer, on_after_backward, at);
}

bool kiln_fit_steps(const KilnTrainer *trainer, const KilnBatch *batch)
{
    return kiln_loop_is_step(&trainer->schedule, &trainer->at,
                             kiln_ranks_several(&trainer->ranks) ? trainer->at.batch
                                                                 : batch->index);
}

int64_t kiln_fit_batch_number(const KilnTrainer *trainer)
{
    return trainer->at.batches + trainer->ranks.ahead;
}

KilnTensor *kiln_fit_batch_record(KilnTrainer *trainer, const KilnBatch *batch)
{
    const bool first = trainer->at.in_group == 0, several = kiln_ranks_several(&trainer->ranks);
    KilnRecording at = { .step = &trainer->step, .steps = kiln_fit_steps(trainer, batch) };

    kiln_step_begin(&trainer->step, KILN_PHASE_FIT, true, batch,
                    (uint64_t)trainer->options.root->seed, kiln_fit_batch_number(trainer));
    at.loss = record_loss(trainer);
    if (at.loss == NULL)
        return NULL;
    if (first)
        KILN_RECORD(trainer, on_before_zero_grad, &at);
    KILN_RECORD(trainer, on_before_backward, &at);
    /* Of several ranks, rank 0 holds the sum of the rounds before. */
    kiln_fit_record_gradients(trainer, &at, share_of(trainer, at.loss),
                              !first && trainer->ranks.rank == 0);
    if (at.steps && !several)
        kiln_optimize_record(trainer, &at, kiln_fit_clipping(trainer));
    return at.loss;
}

/* ---- Running ------------------------------------------------------------------------------ */

/* The update of this step has made the parameters invalid; they are not saved. */
static KilnStatus loss_not_finite(KilnTrainer *trainer, double loss, KilnError *err)
{
    trainer->state.params_invalid = true;
    return kiln_error_set(err, KILN_E_NUMERIC,
                          "the loss is %s at epoch %lld, step %lld (learning rate %g): training "
                          "stops; try a lower learning rate or a warmup",
                          isnan(loss) ? "NaN" : "infinite", (long long)trainer->at.epoch,
                          (long long)trainer->at.step + 1, kiln_trainer_learning_rate(trainer));
}

/* Prefix the error of a step with the position of training. */
static KilnStatus prefix_position(const KilnTrainer *trainer, KilnError *err)
{
    return kiln_error_prefix(
        err, "epoch %lld, step %lld (batch %lld of the epoch): ", (long long)trainer->at.epoch,
        (long long)trainer->at.step + 1, (long long)trainer->at.batch + 1);
}

KilnStatus kiln_fit_run_step(KilnTrainer *trainer, KilnTensor *loss, KilnError *err)
{
    KilnStatus status = kiln_step_run(&trainer->step, loss, err);

    const char *note = kiln_plan_note_take(trainer->graph);

    if (note != NULL)
        kiln_output_print(&trainer->output, "warning: %s", note);
    trainer->state.params_invalid = status == KILN_E_NUMERIC;
    if (status == KILN_E_NUMERIC)
        return prefix_position(trainer, err);
    if (status < 0 || loss == NULL)
        return status;
    const double value = kiln_tensor_scalar(loss);
    trainer->batch.loss = value;
    trainer->batch.has_loss = true;
    if (!isfinite(value))
        return loss_not_finite(trainer, value, err);
    trainer->live.loss = value;
    return KILN_OK;
}

KilnStatus kiln_fit_update_metrics(KilnTrainer *trainer, int64_t step, KilnError *err)
{
    return trainer->options.tracks
               ? kiln_step_update_metrics(&trainer->step, trainer->at.epoch, step, err)
               : KILN_OK;
}

/* Batches that are trained at a time, from the current position on. */
static int64_t round_size(const KilnTrainer *trainer)
{
    return kiln_ranks_several(&trainer->ranks)
               ? kiln_loop_round_end(&trainer->schedule, trainer->at.batch) - trainer->at.batch
               : 1;
}

/* Advance trainer->at by an optimizer step, or by batches whose gradients wait for one. */
static void count_step(KilnTrainer *trainer, bool steps)
{
    trainer->at.in_group = steps ? 0 : trainer->at.in_group + round_size(trainer);
    trainer->at.step += steps ? 1 : 0;
    trainer->optimizers[0].updates += steps ? 1 : 0;
}

static KilnStatus train_automatically(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    const bool steps = kiln_fit_steps(trainer, batch);
    KilnTensor *loss = kiln_fit_batch_record(trainer, batch);
    KilnStatus status = kiln_fit_run_step(trainer, loss, err);

    if (status < 0)
        return status;
    if (loss != NULL)
        count_step(trainer, steps);
    return kiln_fit_update_metrics(trainer, trainer->at.step, err);
}

/* ---- With other ranks ----------------------------------------------------------------------- */

void kiln_fit_update_record(KilnTrainer *trainer, size_t optimizer, KilnClipping clipping)
{
    const KilnBatch none = { .size = 1 };
    KilnRecording at = { .step = &trainer->step, .steps = true, .optimizer = optimizer };

    kiln_step_begin(&trainer->step, KILN_PHASE_FIT, true, &none,
                    (uint64_t)trainer->options.root->seed, trainer->at.batches);
    at.gradients = kiln_params_flat_gradients(trainer->params, trainer->graph);
    kiln_optimize_record(trainer, &at, clipping);
}

KilnStatus kiln_fit_update(KilnTrainer *trainer, size_t optimizer, KilnClipping clipping,
                           int64_t step, KilnError *err)
{
    const KilnBatch batch = trainer->step.batch;

    kiln_fit_update_record(trainer, optimizer, clipping);
    KilnStatus status = kiln_step_run(&trainer->step, NULL, err);
    if (status >= 0)
        status = kiln_fit_update_metrics(trainer, step, err);
    trainer->step.batch = batch; /* hooks read it */
    return status;
}

/* Gradients of this rank's batch, if it has one. */
static KilnStatus compute(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    KilnTensor *loss = batch->size > 0 ? kiln_fit_batch_record(trainer, batch) : NULL;

    if (batch->size == 0)
        return KILN_OK;
    trainer->ranks.ran = true;
    trainer->ranks.computed = loss != NULL;
    return kiln_fit_run_step(trainer, loss, err);
}

static KilnStatus own_metrics(KilnTrainer *trainer, KilnError *err)
{
    return trainer->ranks.ran ? kiln_fit_update_metrics(trainer, trainer->batch.log_step, err)
                              : KILN_OK;
}

/* All that communicates comes before the update and the metrics of rank 0. */
static KilnStatus train_round(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    const bool steps = kiln_fit_steps(trainer, batch);
    KilnStatus status = kiln_ranks_keep(trainer, err);

    if (status < 0)
        return status;
    status = compute(trainer, batch, err);
    if (status >= 0)
        status = kiln_ranks_reduce(trainer, err);
    if (status >= 0)
        status = kiln_ranks_collect_metrics(trainer, KILN_PHASE_FIT, trainer->batch.log_step,
                                            own_metrics, err);
    if (status < 0) {
        kiln_ranks_put_back(trainer);
        return status;
    }
    if (steps)
        status = kiln_fit_update(trainer, 0, kiln_fit_clipping(trainer), trainer->batch.log_step,
                                 err);
    if (status >= 0)
        count_step(trainer, steps);
    return status;
}

/* ---- A batch -------------------------------------------------------------------------------- */

static void measure(KilnTiming *timing, double seconds)
{
    timing->step_ms[timing->steps % KILN_STEP_TIMES] = (float)(1e3 * seconds);
    timing->steps++;
}

void kiln_fit_count_batches(KilnTrainer *trainer, const KilnBatch *batch)
{
    const bool several = kiln_ranks_several(&trainer->ranks);
    const int64_t n = round_size(trainer);

    trainer->at.batch = several ? trainer->at.batch + n : batch->index + 1;
    trainer->at.batches += n;
}

KilnStatus kiln_fit_batch(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    const double start = kiln_clock();
    const bool several = kiln_ranks_several(&trainer->ranks);
    KilnStatus status = kiln_trainer_is_manual(trainer) ? kiln_manual_batch(trainer, batch, err)
                        : several                       ? train_round(trainer, batch, err)
                                                        : train_automatically(trainer, batch, err);

    if (status < 0)
        return status;
    const int64_t samples = several ? trainer->ranks.samples : batch->size;
    measure(&trainer->timing, kiln_clock() - start);
    kiln_fit_count_batches(trainer, batch);
    trainer->at.samples += samples;
    trainer->timing.phase_samples += samples;
    return KILN_OK;
}

KilnStatus kiln_fit_leftover_gradients(KilnTrainer *trainer, KilnError *err)
{
    kiln_fit_update_record(trainer, 0, kiln_fit_clipping(trainer));
    KilnStatus status = kiln_step_run(&trainer->step, NULL, err);
    if (status < 0)
        return status;
    count_step(trainer, true);
    return kiln_fit_update_metrics(trainer, trainer->at.step, err);
}

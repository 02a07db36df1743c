/* One training batch: recording the step, its gradients and update, and running it. */
#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "graph/graph.h"
#include "train/trainer.h"

/* ---- Recording -------------------------------------------------------------------------- */

static KilnTensor *record_loss(KilnTrainer *trainer)
{
    const KilnModuleOps *ops = kiln_instance_component(trainer->module)->ops.module;
    KilnTensor *loss = ops->training_step(trainer->module, &trainer->step);
    char text[KILN_SHAPE_TEXT];

    if (kiln_tensor_poisoned(loss) || kiln_tensor_shape(loss)->rank == 0)
        return loss;
    return kiln_graph_poison(trainer->graph,
                             "the training step of %s returns a loss of shape %s; a scalar is "
                             "needed (kiln_mean)",
                             kiln_instance_name(trainer->module),
                             kiln_shape_text(kiln_tensor_shape(loss), text, sizeof(text)));
}

/* Each batch of a group counts as much as its share of a whole one, also in one that the end
 * of the epoch cuts short: so Lightning has it. */
static KilnTensor *share_of(const KilnTrainer *trainer, KilnTensor *loss)
{
    const int64_t n = trainer->pace.accumulate;

    return n == 1 || kiln_tensor_poisoned(loss) ? loss : kiln_scale(loss, 1.0 / (double)n);
}

static KilnClipping clip_of(const KilnTrainer *trainer)
{
    const KilnTrainerOptions *options = trainer->options.trainer;

    return (KilnClipping) {
        .limit = options->gradient_clip_val,
        .by_norm = options->gradient_clip_algorithm == KILN_CLIP_NORM,
    };
}

KilnTensor *kiln_fit_record(KilnTrainer *trainer, const KilnBatch *batch)
{
    const bool first = trainer->at.in_group == 0;
    KilnRecording at = {
        .step = &trainer->step,
        .steps = kiln_pace_steps(&trainer->pace, &trainer->at, batch->index),
    };

    kiln_step_begin(&trainer->step, KILN_PHASE_FIT, true, batch,
                    (uint64_t)trainer->options.root->seed, trainer->at.batches);
    at.loss = record_loss(trainer);
    if (first)
        KILN_RECORD(trainer, on_before_zero_grad, &at);
    KILN_RECORD(trainer, on_before_backward, &at);
    trainer->graph->accumulates = !first;
    kiln_graph_backward(trainer->graph, share_of(trainer, at.loss));
    at.gradients = kiln_params_flat_gradients(trainer->params, trainer->graph);
    KILN_RECORD(trainer, on_after_backward, &at);
    if (at.steps)
        kiln_optimize_record(trainer, &at, clip_of(trainer));
    return at.loss;
}

/* ---- Running ------------------------------------------------------------------------------ */

/* The update of this step has spoilt the parameters; nothing saves them. */
static KilnStatus not_finite(KilnTrainer *trainer, double loss, KilnError *err)
{
    trainer->spoilt = true;
    return kiln_error_set(err, KILN_E_NUMERIC,
                          "the loss is %s at epoch %lld, step %lld (learning rate %g): training "
                          "stops; try a lower learning rate or a warmup",
                          isnan(loss) ? "NaN" : "infinite", (long long)trainer->at.epoch,
                          (long long)trainer->at.step + 1, kiln_trainer_learning_rate(trainer));
}

static void measure(KilnTiming *timing, double seconds)
{
    timing->step_ms[timing->steps % KILN_STEP_TIMES] = (float)(1e3 * seconds);
    timing->steps++;
}

/* The batch is done; the optimizer stepped, or its gradients wait. */
static void advance(KilnTrainer *trainer, const KilnBatch *batch, bool steps)
{
    KilnPosition *at = &trainer->at;

    at->batch = batch->index + 1;
    at->batches++;
    at->samples += batch->size;
    at->in_group = steps ? 0 : at->in_group + 1;
    at->step += steps ? 1 : 0;
    trainer->optimizers[0].updates += steps ? 1 : 0;
    trainer->timing.phase_samples += batch->size;
}

KilnStatus kiln_fit_step(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    const bool steps = kiln_pace_steps(&trainer->pace, &trainer->at, batch->index);
    double start = kiln_clock();
    KilnTensor *loss = kiln_fit_record(trainer, batch);
    KilnStatus status = kiln_step_run(&trainer->step, loss, err);

    trainer->spoilt = status == KILN_E_NUMERIC;
    if (status == KILN_E_NUMERIC)
        return kiln_error_prefix(
            err, "epoch %lld, step %lld (batch %lld of the epoch): ", (long long)trainer->at.epoch,
            (long long)trainer->at.step + 1, (long long)batch->index + 1);
    if (status < 0)
        return status;
    double value = kiln_tensor_scalar(loss);
    measure(&trainer->timing, kiln_clock() - start);
    trainer->instruments.loss = value;
    trainer->instruments.ran = true;
    if (!isfinite(value))
        return not_finite(trainer, value, err);
    trainer->telling.loss = value;
    advance(trainer, batch, steps);
    return trainer->options.tracks
               ? kiln_step_count(&trainer->step, trainer->at.epoch, trainer->at.step, err)
               : KILN_OK;
}

KilnStatus kiln_fit_rest(KilnTrainer *trainer, KilnError *err)
{
    const KilnBatch none = { .size = 1 };
    KilnRecording at = { .step = &trainer->step, .steps = true };

    kiln_step_begin(&trainer->step, KILN_PHASE_FIT, true, &none,
                    (uint64_t)trainer->options.root->seed, trainer->at.batches);
    at.gradients = kiln_params_flat_gradients(trainer->params, trainer->graph);
    kiln_optimize_record(trainer, &at, clip_of(trainer));
    KilnStatus status = kiln_step_run(&trainer->step, NULL, err);
    if (status < 0)
        return status;
    trainer->at.in_group = 0;
    trainer->at.step++;
    trainer->optimizers[0].updates++;
    return trainer->options.tracks
               ? kiln_step_count(&trainer->step, trainer->at.epoch, trainer->at.step, err)
               : KILN_OK;
}

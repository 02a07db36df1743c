/* Between gradients and weights: clipping, the schedule, the optimizer's update. */
#include <stdio.h>

#include "train/trainer.h"

static const KilnOptimizerOps *optimizer_ops(const KilnTrainer *trainer)
{
    return kiln_instance_component(trainer->optimizers.optimizer)->ops.optimizer;
}

/* NULL: no scheduler. */
static const KilnSchedulerOps *scheduler_ops(const KilnTrainer *trainer)
{
    const KilnInstance *scheduler = trainer->optimizers.scheduler;

    return scheduler != NULL ? kiln_instance_component(scheduler)->ops.scheduler : NULL;
}

/* ---- The schedule -------------------------------------------------------------------- */

static KilnProgress progress_of(const KilnTrainer *trainer)
{
    return (KilnProgress) {
        .step = trainer->at.step,
        .epoch = trainer->at.epoch,
        .steps_per_epoch = kiln_pace_epoch_steps(&trainer->pace),
        .total_steps = kiln_pace_total_steps(&trainer->pace),
        .total_epochs = kiln_pace_total_epochs(&trainer->pace),
    };
}

/* The scheduler's factor for the next step. */
static double schedule(const KilnTrainer *trainer)
{
    KilnProgress at = progress_of(trainer);
    const KilnSchedulerOps *ops = scheduler_ops(trainer);

    return ops != NULL ? ops->factor(trainer->optimizers.scheduler, &at) : 1.0;
}

static KilnStatus check_schedule(const KilnTrainer *trainer, KilnError *err)
{
    KilnProgress at = progress_of(trainer);
    const KilnSchedulerOps *ops = scheduler_ops(trainer);

    KilnStatus status = KILN_OK;

    if (ops != NULL && ops->check != NULL)
        status = ops->check(trainer->optimizers.scheduler, &at, err);
    if (status < 0)
        (void)kiln_error_prefix(err, "%s: ", kiln_instance_path(trainer->optimizers.scheduler));
    return status;
}

KilnStatus kiln_optimize_check(KilnTrainer *trainer, KilnError *err)
{
    const KilnSchedulerOps *ops = scheduler_ops(trainer);
    char option[256];

    if (ops == NULL || ops->monitor == NULL)
        return KILN_OK;
    const char *name = ops->monitor(trainer->optimizers.scheduler);
    if (kiln_trainer_logs(trainer, name))
        return KILN_OK;
    snprintf(option, sizeof(option), "%s.monitor",
             kiln_instance_path(trainer->optimizers.scheduler));
    return kiln_trainer_unknown_metric(trainer, option, name, err);
}

void kiln_optimize_observe(KilnTrainer *trainer)
{
    const KilnSchedulerOps *ops = scheduler_ops(trainer);
    double value;

    if (ops != NULL && ops->monitor != NULL &&
        kiln_trainer_fresh_metric(trainer, ops->monitor(trainer->optimizers.scheduler), &value))
        ops->observe(trainer->optimizers.scheduler, value);
}

/* ---- Set-up --------------------------------------------------------------------------- */

KilnStatus kiln_optimize_set_up(KilnTrainer *trainer, KilnError *err)
{
    const KilnModuleOps *ops = kiln_instance_component(trainer->module)->ops.module;
    KilnStatus status = ops->configure_optimizers(trainer->module, &trainer->optimizers, err);

    if (status < 0)
        return status;
    const KilnInstance *optimizer = trainer->optimizers.optimizer;
    KilnOptimizerCommon common = optimizer_ops(trainer)->common(optimizer);
    status = kiln_runs_new(trainer->params, &common, optimizer_ops(trainer)->per_parameter,
                           &trainer->runs, err);
    if (status < 0) {
        (void)kiln_error_prefix(err, "%s.", kiln_instance_path(optimizer));
        return status;
    }
    trainer->n_slots = optimizer_ops(trainer)->slots(optimizer, trainer->slot_names);
    return check_schedule(trainer, err);
}

int64_t kiln_optimize_slots(const KilnTrainer *trainer)
{
    int64_t used = 0;

    for (size_t i = 0; i < trainer->n_slots; i++)
        used += trainer->slot_names[i] != NULL;
    return used;
}

void *kiln_trainer_slot(const KilnTrainer *trainer, size_t slot, const KilnParam *param)
{
    const size_t size = kiln_dtype_size(kiln_param_dtype(param));

    return (char *)trainer->slots[slot] + (size_t)kiln_param_offset(param) * size;
}

/* ---- One step -------------------------------------------------------------------------- */

/* What the gradients are multiplied by, NULL: nothing; limits them in place. */
static KilnTensor *record_clip(KilnTrainer *trainer, KilnTensor *grad)
{
    const KilnTrainerOptions *options = trainer->options.trainer;
    const bool clips = options->gradient_clip_val > 0.0;
    const bool by_norm = clips && options->gradient_clip_algorithm == KILN_CLIP_NORM;
    KilnTensor *norm = by_norm || options->track_grad_norm ? kiln_l2_norm(grad) : NULL;

    if (options->track_grad_norm)
        kiln_step_log(&trainer->step, "train/grad_norm", norm, KILN_LOG_STEP);
    if (clips && !by_norm)
        kiln_clamp_update(grad, options->gradient_clip_val);
    return by_norm ? kiln_clip_factor(norm, options->gradient_clip_val) : NULL;
}

void kiln_optimize_record(KilnTrainer *trainer, const KilnRecording *at)
{
    const KilnOptimizerOps *ops = optimizer_ops(trainer);
    const KilnInstance *optimizer = trainer->optimizers.optimizer;
    const KilnRuns *runs = &trainer->runs;
    KilnGraph *graph = trainer->graph;
    KilnShape size = KILN_SHAPE(kiln_params_size(trainer->params));

    KILN_RECORD(trainer, on_before_optimizer_step, at);
    trainer->learning_rate = ops->common(optimizer).lr * schedule(trainer);
    size_t n = ops->hyper(optimizer, trainer->learning_rate, trainer->at.step + 1, trainer->hyper);
    KilnFlat flat = {
        .param = kiln_params_flat_values(trainer->params, graph),
        .grad = at->gradients,
        .hyper = kiln_graph_input(graph, KILN_F32, KILN_SHAPE((int64_t)n), trainer->hyper),
        .ends = kiln_graph_input(graph, KILN_I64, KILN_SHAPE((int64_t)runs->count), runs->ends),
        .rates = kiln_graph_input(graph, KILN_F32, KILN_SHAPE((int64_t)runs->count, 2),
                                  runs->rates),
    };
    for (size_t i = 0; i < trainer->n_slots; i++)
        if (trainer->slot_names[i] != NULL)
            flat.slots[i] = kiln_graph_variable(graph, kiln_params_dtype(trainer->params), size,
                                                trainer->slots[i], false, NULL);
    flat.scale = record_clip(trainer, flat.grad);
    ops->update(optimizer, &flat);
    KILN_RECORD(trainer, record_update, at);
}

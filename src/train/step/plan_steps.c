/* Records every kind of step of a run on batches without data, and plans those of training. Errors
 * of shapes are found here, and the plans give the memory that the steps take. */
#include "train/step/plan_steps.h"

#include "graph/graph.h"
#include "train/analysis/model_layers.h"
#include "train/optim/lr_scales.h"
#include "train/optim/lr_schedules.h"
#include "train/step/manual.h"
#include "train/trainer.h"

static KilnStatus check_graph(const KilnTrainer *trainer, const char *step, KilnError *err)
{
    KilnStatus status = kiln_graph_check(trainer->graph, err);

    if (status < 0)
        (void)kiln_error_prefix(err, "%s step of task %s: ", step,
                                kiln_instance_name(trainer->module));
    return status;
}

static KilnStatus missing_step(const KilnTrainer *trainer, const char *step, KilnError *err)
{
    return kiln_error_set(err, KILN_E_MISSING, "task %s has no %s step",
                          kiln_instance_name(trainer->module), step);
}

/* The steps of the run will use the plan that is made here. */
static KilnStatus plan_step(KilnTrainer *trainer, KilnTensor *loss, KilnError *err)
{
    KilnPlan *plan = NULL;
    KilnStatus status = kiln_step_plan(&trainer->step, loss, &plan, err);

    if (status >= 0)
        kiln_memory_estimate_add_plan(&trainer->memory, plan);
    return status;
}

/* Record the step of an evaluation for each set, whose metrics have names of their own. With
 * `plans`, plan it and add the memory of its metrics to the estimate. */
static KilnStatus record_eval(KilnTrainer *trainer, KilnPhase phase, bool plans, KilnError *err)
{
    const KilnSplit split = kiln_trainer_eval_split(trainer, phase);
    KilnStatus status = KILN_OK;

    for (size_t set = 0; set < trainer->data.sets[split].n && status >= 0; set++) {
        KilnBatch batch = kiln_trainer_shape_batch(trainer, split, set);

        trainer->step.set = trainer->data.sets[split].list[set].name;
        kiln_eval_record(trainer, phase, &batch);
        status = check_graph(trainer, phase == KILN_PHASE_TEST ? "test" : "validation", err);
        if (status < 0 || !plans || kiln_trainer_set_batches(trainer, split, set) < 1)
            continue;
        kiln_memory_estimate_add_metrics(&trainer->memory, &trainer->step,
                                         kiln_trainer_set_samples(trainer, split, set));
        status = plan_step(trainer, NULL, err);
    }
    trainer->step.set = "";
    return status;
}

/* Record the different batches of a group: the first, which sets the gradients; the middle ones,
 * which add to them; and the last, with the update, which is a step of its own on several ranks. */
static KilnStatus record_group(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    const int64_t world = kiln_trainer_world(trainer);
    const int64_t accumulate = kiln_loop_accumulate(&trainer->schedule, trainer->at.epoch);
    const int64_t positions[] = { 0, world, accumulate - world };
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < KILN_COUNT(positions) && status >= 0; i++) {
        if (i > 0 && (positions[i] <= positions[i - 1] || positions[i] >= accumulate))
            continue;
        trainer->at.in_group = positions[i];
        KilnTensor *loss = kiln_fit_batch_record(trainer, batch);
        status = check_graph(trainer, "training", err);
        if (status >= 0 && trainer->layers == NULL) {
            kiln_memory_estimate_add_metrics(&trainer->memory, &trainer->step,
                                             kiln_trainer_set_samples(trainer, KILN_TRAIN, 0));
            status = kiln_trainer_read_layers(trainer, err);
        }
        if (status >= 0)
            status = plan_step(trainer, loss, err);
    }
    trainer->at.in_group = 0;
    if (status < 0 || world == 1)
        return status;
    kiln_fit_update_record(trainer, 0, kiln_fit_clipping(trainer));
    status = check_graph(trainer, "training", err);
    return status >= 0 ? plan_step(trainer, NULL, err) : status;
}

/* Record groups of each size that occurs in this run. */
static KilnStatus record_batches(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    const KilnLoopSchedule *schedule = &trainer->schedule;
    KilnStatus status = record_group(trainer, batch, err);

    for (size_t i = 0; i < schedule->n_changes && status >= 0; i++) {
        trainer->at.epoch = schedule->changes[i].epoch;
        if (schedule->max_epochs < 0 || trainer->at.epoch < schedule->max_epochs)
            status = record_group(trainer, batch, err);
    }
    trainer->at.epoch = 0;
    return status;
}

/* Record the steps of all epochs: each set of frozen parameters has its own plans, and the memory
 * has to suffice for all of them. */
static KilnStatus record_epochs(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    const bool manual = kiln_trainer_is_manual(trainer);
    KilnStatus status = KILN_OK;

    for (int64_t epoch = 0; epoch >= 0 && status >= 0;
         epoch = kiln_lr_scales_next(trainer, epoch)) {
        status = kiln_lr_scales_apply(trainer, epoch, err);
        if (status >= 0)
            status = manual ? kiln_manual_plan(trainer, batch, err)
                            : record_batches(trainer, batch, err);
    }
    return status >= 0 ? kiln_lr_scales_apply(trainer, 0, err) : status;
}

/* Refuse options that have no effect on a module that drives its own steps. */
static KilnStatus check_manual(const KilnTrainer *trainer, KilnError *err)
{
    const KilnTrainerOptions *options = trainer->options.trainer;
    const bool clips = options->gradient_clip_val != NULL && *options->gradient_clip_val > 0.0;
    const char *option = options->accumulate_grad_batches != 1 ? "accumulate_grad_batches"
                         : clips                               ? "gradient_clip_val"
                                                               : NULL;

    if (option == NULL)
        return KILN_OK;
    return kiln_error_set(
        err, KILN_E_RANGE,
        "trainer.%s: task %s drives its own steps (manual optimization), where it has "
        "no effect; remove it, and look for an option of the task",
        option, kiln_instance_name(trainer->module));
}

/* Refuse a mode of the sweep that contradicts the metric. */
static KilnStatus check_rank(const KilnTrainer *trainer, KilnError *err)
{
    const char *name = trainer->env->ranked_by;
    const KilnMode mode = (KilnMode)trainer->env->ranked_mode;
    const KilnMode declared = name != NULL ? kiln_metrics_mode(trainer->metrics, name)
                                           : KILN_MODE_AUTO;

    if (mode == KILN_MODE_AUTO || declared == KILN_MODE_AUTO || mode == declared)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_RANGE,
                          "kiln.sweeper.mode=%s: %s gets better as it %s; write "
                          "kiln.sweeper.mode=%s, or remove it",
                          kiln_modes[mode].name, name,
                          declared == KILN_MODE_MAX ? "rises" : "falls", kiln_modes[declared].name);
}

static KilnStatus record_fit(KilnTrainer *trainer, KilnError *err)
{
    KilnBatch batch = kiln_trainer_shape_batch(trainer, KILN_TRAIN, 0);

    const bool manual = kiln_trainer_is_manual(trainer);

    if (!manual && kiln_instance_component(trainer->module)->ops.module->training_step == NULL)
        return missing_step(trainer, "training", err);
    if (!manual && kiln_params_size(trainer->params) < 1)
        return kiln_error_set(err, KILN_E_MISSING, "task %s has no parameters to train",
                              kiln_instance_name(trainer->module));
    KilnStatus status = manual ? check_manual(trainer, err) : KILN_OK;
    if (status >= 0)
        status = record_epochs(trainer, &batch, err);
    if (status >= 0)
        status = record_eval(trainer, KILN_PHASE_VALIDATE, true, err);
    if (status >= 0)
        status = record_eval(trainer, KILN_PHASE_TEST, false, err);
    if (status >= 0)
        status = kiln_lr_schedules_check_metrics(trainer, err);
    return status >= 0 ? check_rank(trainer, err) : status;
}

KilnStatus kiln_trainer_plan_steps(KilnTrainer *trainer, KilnStage stage, KilnError *err)
{
    if (stage == KILN_STAGE_FIT)
        return record_fit(trainer, err);
    if (stage == KILN_STAGE_TEST)
        return record_eval(trainer, KILN_PHASE_TEST, false, err);
    if (stage == KILN_STAGE_VALIDATE)
        return record_eval(trainer, KILN_PHASE_VALIDATE, false, err);
    if (kiln_instance_component(trainer->module)->ops.module->predict_step == NULL)
        return missing_step(trainer, "predict", err);
    return KILN_OK;
}

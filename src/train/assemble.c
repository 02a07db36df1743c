/* Building a trainer: options, components, parameters, graph; and recording its
 * steps on shapes alone, so that what does not fit is found before anything runs. */
#include "train/assemble.h"

#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/system/file.h"
#include "graph/graph.h"
#include "registry/instance.h"
#include "train/analysis/model_layers.h"
#include "train/checkpoint/resume.h"
#include "train/loop/manual.h"
#include "train/optim/averaged_weights.h"
#include "train/optim/learning_rates.h"
#include "train/optim/lr_schedules.h"
#include "train/trainer.h"

/* ---- Components --------------------------------------------------------------------- */

static bool is_wanted(const KilnTrainer *trainer, const KilnInstance *callback)
{
    const KilnCallbackOps *ops = kiln_instance_component(callback)->ops.callback;
    const KilnTrainerOptions *options = trainer->options.trainer;

    if (trainer->phase == KILN_PHASE_VALIDATE && ops->rank != KILN_RANK_PLAIN)
        return false; /* they are about a run's own validations */
    return (options->enable_checkpointing || ops->rank != KILN_RANK_SAVES) &&
           (trainer->options.monitors || ops->rank != KILN_RANK_MONITOR) &&
           (options->enable_progress_bar || !ops->shows_progress) &&
           (options->enable_model_summary || !ops->shows_summary);
}

static void leave_out_callbacks(KilnTrainer *trainer)
{
    size_t n = 0;

    for (size_t i = 0; i < trainer->n_callbacks; i++) {
        if (is_wanted(trainer, trainer->callbacks[i]))
            trainer->callbacks[n++] = trainer->callbacks[i];
        else
            kiln_instance_free(trainer->callbacks[i]);
    }
    trainer->n_callbacks = n;
}

static KilnStatus build_components(KilnTrainer *trainer, KilnStage stage, KilnError *err)
{
    const KilnRegistry *registry = trainer->env->registry;
    KilnConfig *config = trainer->config;
    KilnStatus status = kiln_config_build(config, "datamodule", registry, KILN_KIND_DATAMODULE,
                                          &trainer->datamodule, err);

    if (status >= 0)
        status = kiln_config_build(config, "task", registry, KILN_KIND_MODULE, &trainer->module,
                                   err);
    if (status >= 0)
        status = kiln_config_build_map(config, "callbacks", registry, KILN_KIND_CALLBACK,
                                       &trainer->callbacks, &trainer->n_callbacks, err);
    if (status >= 0)
        leave_out_callbacks(trainer);
    if (status >= 0 && stage == KILN_STAGE_FIT && trainer->options.logs)
        status = kiln_config_build_map(config, "logger", registry, KILN_KIND_LOGGER,
                                       &trainer->loggers.list, &trainer->loggers.n, err);
    if (status >= 0)
        status = kiln_loggers_check(&trainer->loggers, err);
    return status >= 0 ? kiln_hooks_set_up(trainer, err) : status;
}

/* ---- Network ------------------------------------------------------------------------------- */

static void set_passes(KilnTrainer *trainer)
{
    const KilnTrainerOptions *options = trainer->options.trainer;

    for (size_t i = 0; i < options->passes_off_count; i++)
        trainer->graph->passes_off |= 1u << options->passes_off[i];
    kiln_graph_set_recompute(trainer->graph, (const char *const *)options->recompute,
                             options->recompute_count);
}

static void set_precision(KilnTrainer *trainer)
{
    const KilnPrecision precision = (KilnPrecision)trainer->options.trainer->precision;

    kiln_graph_set_precision(trainer->graph, precision);
    if (precision != KILN_PRECISION_32 && !kiln_backend_bf16(trainer->backend))
        kiln_output_print(&trainer->output,
                          "this processor has no AMX for bf16: products are computed in f32 from "
                          "values rounded to bf16, no faster than precision=32-true");
}

static KilnStatus set_up_network(KilnTrainer *trainer, KilnError *err)
{
    const KilnModuleOps *ops = kiln_instance_component(trainer->module)->ops.module;
    KilnStatus status = kiln_params_new((uint64_t)trainer->options.root->seed, &trainer->params,
                                        err);

    if (status < 0)
        return status;
    if (trainer->options.trainer->precision == KILN_BF16_TRUE)
        kiln_params_set_dtype(trainer->params, KILN_BF16);
    KilnScope scope = kiln_params_root(trainer->params);
    status = KILN_CALLED(trainer->module, "setup",
                         ops->setup(trainer->module, &scope, &trainer->data.spec, err), err);
    if (status < 0)
        status = kiln_instance_error(trainer->config, trainer->module, err);
    if (status >= 0)
        status = kiln_trainer_check_parameters(trainer, err);
    if (status >= 0)
        status = kiln_params_place(trainer->params, err);
    if (status >= 0)
        status = kiln_backend_cpu_new(trainer->threads, &trainer->backend, err);
    if (status >= 0)
        kiln_backend_set_convolution(trainer->backend,
                                     (KilnConvolution)trainer->options.trainer->convolution);
    if (status >= 0)
        status = kiln_graph_new(trainer->backend, &trainer->graph, err);
    if (status < 0)
        return status;
    trainer->graph->profile = trainer->options.trainer->profiler != NULL;
    set_precision(trainer);
    set_passes(trainer);
    if (status >= 0)
        trainer->graph->detect_anomaly = trainer->options.trainer->detect_anomaly;
    trainer->step.graph = trainer->graph;
    trainer->step.metrics = trainer->metrics;
    trainer->step.spec = &trainer->data.spec;
    trainer->step.train_spec = &trainer->data.train_spec;
    trainer->step.set = "";
    return status;
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

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

/* Planning costs the steps nothing: they follow the plan that is made here. */
static KilnStatus plan_step(KilnTrainer *trainer, KilnTensor *loss, KilnError *err)
{
    KilnPlan *plan = NULL;
    KilnStatus status = kiln_step_plan(&trainer->step, loss, &plan, err);

    if (status >= 0)
        kiln_memory_estimate_add_plan(&trainer->memory, plan);
    return status;
}

/* The step of an evaluation for each set, whose metrics have names of their own; what they keep of
 * it is counted where it is planned. */
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

/* The batches of a group: the first, whose gradients wait; those that add theirs; the last, with
 * the update, which of a group of one is the first. */
static KilnStatus record_group(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    const int64_t accumulate = kiln_loop_accumulate(&trainer->schedule, trainer->at.epoch);
    const int64_t places[] = { 0, 1, accumulate - 1 };
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < KILN_COUNT(places) && status >= 0; i++) {
        if (i > 0 && (places[i] <= places[i - 1] || places[i] >= accumulate))
            continue;
        trainer->at.in_group = places[i];
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
    return status;
}

/* Groups of each size that epochs of this run have. */
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

/* The steps of all epochs: what is frozen in one makes other steps of it, which are planned, too,
 * so that memory is known to suffice for all of them. */
static KilnStatus record_epochs(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    const bool manual = kiln_trainer_is_manual(trainer);
    KilnStatus status = KILN_OK;

    for (int64_t epoch = 0; epoch >= 0 && status >= 0;
         epoch = kiln_learning_rates_next(trainer, epoch)) {
        status = kiln_learning_rates_apply(trainer, epoch, err);
        if (status >= 0)
            status = manual ? kiln_manual_plan(trainer, batch, err)
                            : record_batches(trainer, batch, err);
    }
    return status >= 0 ? kiln_learning_rates_apply(trainer, 0, err) : status;
}

/* A module that drives its own steps accumulates and clips by itself, too. */
static KilnStatus check_manual(const KilnTrainer *trainer, KilnError *err)
{
    const KilnTrainerOptions *options = trainer->options.trainer;
    const bool clips = options->gradient_clip_val != NULL && *options->gradient_clip_val > 0.0;
    const char *option = options->accumulate_grad_batches != 1 ? "accumulate_grad_batches"
                         : clips                               ? "gradient_clip_val"
                                                               : NULL;

    if (option == NULL)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_RANGE,
                          "trainer.%s: task %s drives its own steps (manual optimization), which "
                          "this does not reach; leave it out, and look for an option of the task",
                          option, kiln_instance_name(trainer->module));
}

/* Does the mode of the sweep contradict the metric? */
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
                          "kiln.sweeper.mode=%s, or leave it out",
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

static KilnStatus record_shapes(KilnTrainer *trainer, KilnStage stage, KilnError *err)
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

/* ---- The whole --------------------------------------------------------------------------- */

KilnStatus kiln_trainer_dry_build(KilnTrainer *trainer, KilnConfig *config, const KilnRunEnv *env,
                                  KilnStage stage, const KilnDataSpec *remembered, KilnError *err)
{
    const int threads = trainer->threads;

    *trainer = (KilnTrainer) { .config = config,
                               .env = env,
                               .stage = stage,
                               .split = trainer->split,
                               .poll = { kiln_preparation_poll, trainer },
                               .at.last_val_batch = -1,
                               .at.last_end_batch = -1,
                               .batch.log_step = -1 };
    trainer->timing.start = kiln_clock();
    trainer->phase = stage == KILN_STAGE_FIT        ? KILN_PHASE_FIT
                     : stage == KILN_STAGE_TEST     ? KILN_PHASE_TEST
                     : stage == KILN_STAGE_VALIDATE ? KILN_PHASE_VALIDATE
                                                    : KILN_PHASE_PREDICT;
    kiln_output_init(&trainer->output, env->console);
    trainer->timing.step_ms = malloc(KILN_STEP_TIMES * sizeof(float));
    if (trainer->timing.step_ms == NULL)
        return kiln_error_nomem(err, KILN_STEP_TIMES * sizeof(float));
    KilnStatus status = kiln_metrics_new(&trainer->metrics, err);
    if (status >= 0)
        status = kiln_options_read(config, &trainer->options, err);
    if (status >= 0)
        status = kiln_config_yaml(config, NULL, true, &trainer->config_yaml, err);
    if (status < 0)
        return status;
    kiln_resume_drop_path(trainer->config_yaml);
    trainer->processors = kiln_processors_here();
    trainer->threads = (int)trainer->options.trainer->threads;
    if (trainer->threads == 0)
        trainer->threads = threads != 0 ? threads : trainer->processors.threads;
    status = build_components(trainer, stage, err);
    if (status >= 0)
        status = kiln_splits_set_up(trainer, remembered, err);
    kiln_preparation_end(trainer);
    if (status >= 0)
        status = set_up_network(trainer, err);
    if (status >= 0 && stage == KILN_STAGE_FIT)
        status = kiln_batch_stats_set_up(trainer, err);
    if (status >= 0 && stage == KILN_STAGE_FIT)
        status = kiln_optimizers_set_up(trainer, err);
    if (status >= 0)
        status = record_shapes(trainer, stage, err);
    if (status >= 0 && stage == KILN_STAGE_FIT)
        kiln_memory_estimate_complete(trainer);
    return status;
}

KilnStatus kiln_trainer_allocate(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = kiln_trainer_check_memory(trainer, err);

    if (status >= 0)
        status = kiln_optimizers_allocate(trainer, err);
    return status >= 0 ? kiln_params_draw(trainer->params, err) : status;
}

KilnStatus kiln_trainer_assemble(KilnTrainer *trainer, KilnConfig *config, const KilnRunEnv *env,
                                 KilnStage stage, const KilnDataSpec *remembered, KilnError *err)
{
    KilnStatus status = kiln_trainer_dry_build(trainer, config, env, stage, remembered, err);

    return status >= 0 ? kiln_trainer_allocate(trainer, err) : status;
}

void kiln_trainer_release(KilnTrainer *trainer)
{
    kiln_stop_monitor_end(trainer);
    kiln_journal_close(trainer->journal);
    kiln_save_requests_release(&trainer->saves); /* the writer tells the live page */
    kiln_live_status_end(trainer);
    kiln_splits_release(trainer);
    kiln_hooks_release(&trainer->hooks);
    kiln_instances_free(trainer->callbacks, trainer->n_callbacks);
    kiln_loggers_release(&trainer->loggers);
    kiln_graph_free(trainer->graph);
    kiln_backend_free(trainer->backend);
    kiln_params_free(trainer->params);
    kiln_optimizers_release(trainer);
    kiln_averaged_free(trainer->averaged);
    for (size_t i = 0; i < trainer->n_layers; i++)
        free((char *)trainer->layers[i].path);
    free(trainer->layers);
    kiln_instance_free(trainer->module);
    kiln_instance_free(trainer->datamodule);
    kiln_metrics_free(trainer->metrics);
    kiln_batch_stats_release(&trainer->batch_stats);
    kiln_options_release(&trainer->options);
    kiln_output_release(&trainer->output);
    free(trainer->predict.unread);
    free(trainer->timing.step_ms);
    free(trainer->config_yaml);
    free(trainer->run_dir);
    free(trainer->origins);
    free(trainer->resumed_from);
    *trainer = (KilnTrainer) { 0 };
}

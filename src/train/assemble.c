/* Builds a trainer: options, components, parameters and graph. The dry build also has all steps
 * recorded and planned (train/step/plan_steps.c), so that errors of shapes and lack of memory are
 * found before anything runs. */
#include "train/assemble.h"

#include <stdlib.h>

#include "base/call.h"
#include "config/composed.h"
#include "graph/backend.h"
#include "kiln/tools/clock.h"
#include "registry/instance.h"
#include "train/checkpoint/resume.h"
#include "train/loader/prepare_data.h"
#include "train/optim/averaged_weights.h"
#include "train/step/module_data.h"
#include "train/step/plan_steps.h"
#include "train/step/row_results_state.h"
#include "train/trainer.h"

/* ---- Components --------------------------------------------------------------------- */

static bool is_enabled(const KilnTrainer *trainer, const KilnInstance *callback)
{
    const KilnCallbackOps *ops = kiln_instance_component(callback)->ops.callback;
    const KilnTrainerOptions *options = trainer->options.trainer;

    if (trainer->phase == KILN_PHASE_VALIDATE && ops->rank != KILN_RANK_PLAIN)
        return false; /* the others act on validations of a training run */
    const bool saves = options->enable_checkpointing && kiln_trainer_rank(trainer) == 0;

    return (saves || ops->rank != KILN_RANK_SAVES) &&
           (trainer->options.monitors || ops->rank != KILN_RANK_MONITOR) &&
           (options->enable_progress_bar || !ops->shows_progress) &&
           (options->enable_model_summary || !ops->shows_summary);
}

static void drop_disabled_callbacks(KilnTrainer *trainer)
{
    size_t n = 0;

    for (size_t i = 0; i < trainer->n_callbacks; i++) {
        if (is_enabled(trainer, trainer->callbacks[i]))
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
    KilnStatus status = KILN_OK;

    if (trainer->datamodule == NULL)
        status = kiln_config_build(config, "datamodule", registry, KILN_KIND_DATAMODULE,
                                   &trainer->datamodule, err);
    if (status >= 0)
        status = kiln_config_build(config, "task", registry, KILN_KIND_MODULE, &trainer->module,
                                   err);
    if (status >= 0 && !trainer->no_callbacks)
        status = kiln_config_build_map(config, "callbacks", registry, KILN_KIND_CALLBACK,
                                       &trainer->callbacks, &trainer->n_callbacks, err);
    if (status >= 0)
        drop_disabled_callbacks(trainer);
    if (status >= 0 && stage == KILN_STAGE_FIT && trainer->options.logs &&
        kiln_trainer_rank(trainer) == 0)
        status = kiln_config_build_map(config, "logger", registry, KILN_KIND_LOGGER,
                                       &trainer->loggers.list, &trainer->loggers.n, err);
    if (status >= 0)
        status = kiln_loggers_check(&trainer->loggers, err);
    return status >= 0 ? kiln_hooks_set_up(trainer, err) : status;
}

/* ---- Network ------------------------------------------------------------------------------- */

/* Only a fit prints its profile; and a graph that profiles keeps all its plans. */
static void set_planning(const KilnTrainer *trainer, KilnGraph *graph)
{
    const KilnTrainerOptions *options = trainer->options.trainer;

    for (size_t i = 0; i < options->passes_off_count; i++)
        graph->passes_off |= 1u << options->passes_off[i];
    graph->plan_cache.limit = (size_t)options->plan_cache;
    graph->profile = options->profiler != NULL && trainer->stage == KILN_STAGE_FIT;
    graph->detect_anomaly = options->detect_anomaly;
    kiln_graph_set_recompute(graph, (const char *const *)options->recompute,
                             options->recompute_count);
    kiln_graph_set_precision(graph, (KilnPrecision)options->precision);
}

KilnStatus kiln_trainer_new_graph(const KilnTrainer *trainer, KilnBackend **ret_backend,
                                  KilnGraph **ret_graph, KilnError *err)
{
    const KilnTrainerOptions *options = trainer->options.trainer;
    KilnBackend *backend = NULL;
    KilnStatus status = kiln_backend_open(options->accelerator, kiln_params_dtype(trainer->params),
                                          trainer->threads, &backend, err);

    if (status < 0)
        return status;
    kiln_backend_set_convolution(backend, (KilnConvolution)options->convolution);
    status = kiln_graph_new(backend, ret_graph, err);
    if (status < 0) {
        kiln_backend_free(backend);
        return status;
    }
    set_planning(trainer, *ret_graph);
    *ret_backend = backend;
    return KILN_OK;
}

void kiln_trainer_set_up_step(const KilnTrainer *trainer, KilnGraph *graph, KilnStep *ret)
{
    *ret = (KilnStep) {
        .graph = graph,
        .metrics = trainer->metrics,
        .spec = &trainer->data.spec,
        .train_spec = &trainer->data.train_spec,
        .class_counts = trainer->data.class_counts,
        .schedule = &trainer->schedule,
        .at = &trainer->at,
        .params = trainer->params,
        .set = "",
    };
}

static void warn_of_precision(KilnTrainer *trainer)
{
    const int64_t precision = trainer->options.trainer->precision;
    const bool bf16 = precision == KILN_BF16_MIXED || precision == KILN_BF16_TRUE;

    if (bf16 && !kiln_backend_bf16(trainer->backend))
        kiln_output_print(
            &trainer->output,
            "this processor does not multiply bf16: products are computed in f32 from "
            "values rounded to bf16, no faster than precision=32-true");
}

/* The type in which parameters are stored. */
static KilnDType stored_type(KilnPrecision precision)
{
    return precision == KILN_PRECISION_64 ? KILN_F64
           : precision == KILN_BF16_TRUE  ? KILN_BF16
                                          : KILN_F32;
}

static KilnStatus set_up_network(KilnTrainer *trainer, KilnError *err)
{
    const KilnDType stored = stored_type((KilnPrecision)trainer->options.trainer->precision);
    KilnStatus status = kiln_params_new((uint64_t)trainer->options.root->seed, &trainer->params,
                                        err);

    if (status < 0)
        return status;
    kiln_params_set_dtype(trainer->params, stored);
    KilnScope scope = kiln_params_root(trainer->params);
    status = kiln_module_setup(trainer->module, &scope, &trainer->data.spec, err);
    if (status < 0)
        status = kiln_instance_error(trainer->config, trainer->module, err);
    if (status >= 0)
        status = kiln_adapters_set_up(trainer->options.lora, trainer->checkpoint, trainer->params,
                                      &trainer->adapters, err);
    if (status >= 0)
        status = kiln_trainer_check_parameters(trainer, err);
    if (status >= 0)
        status = kiln_trainer_new_graph(trainer, &trainer->backend, &trainer->graph, err);
    if (status >= 0)
        status = kiln_params_allocate(trainer->params, trainer->backend, err);
    if (status < 0)
        return status;
    warn_of_precision(trainer);
    kiln_trainer_set_up_step(trainer, trainer->graph, &trainer->step);
    return KILN_OK;
}

/* ---- The trainer ------------------------------------------------------------------------- */

static KilnPhase phase_of(KilnStage stage)
{
    return stage == KILN_STAGE_FIT        ? KILN_PHASE_FIT
           : stage == KILN_STAGE_TEST     ? KILN_PHASE_TEST
           : stage == KILN_STAGE_VALIDATE ? KILN_PHASE_VALIDATE
                                          : KILN_PHASE_PREDICT;
}

/* Read the options; `threads` (0: none) is used where they leave the number of threads open. */
static KilnStatus read_options(KilnTrainer *trainer, int threads, KilnError *err)
{
    KilnStatus status = kiln_options_read(trainer->config, &trainer->options, err);

    if (status >= 0)
        status = kiln_config_yaml(trainer->config, NULL, true, &trainer->config_yaml, err);
    if (status < 0)
        return status;
    kiln_resume_drop_path(trainer->config_yaml);
    trainer->processors = kiln_processors_here();
    trainer->threads = (int)trainer->options.trainer->threads;
    if (trainer->threads == 0)
        trainer->threads = threads != 0 ? threads : trainer->processors.threads;
    return KILN_OK;
}

static void print_line(void *ctx, bool detail, const char *line)
{
    KilnTrainer *trainer = ctx;

    if (detail)
        kiln_output_detail(&trainer->output, "%s", line);
    else
        kiln_output_print(&trainer->output, "%s", line);
}

KilnStatus kiln_trainer_dry_build(KilnTrainer *trainer, KilnConfig *config, const KilnRunEnv *env,
                                  KilnStage stage, const KilnDataSpec *remembered, KilnError *err)
{
    const int threads = trainer->threads;

    *trainer = (KilnTrainer) {
        .config = config,
        .env = env,
        .stage = stage,
        .split = trainer->split,
        .no_callbacks = trainer->no_callbacks,
        .checkpoint = trainer->checkpoint,
        .fitted = trainer->fitted,
        .saved_class_counts = trainer->saved_class_counts,
        .ranks = trainer->ranks,
        .phase = phase_of(stage),
        .poll = { kiln_preparation_poll, trainer },
        .at = { .last_val_batch = -1, .last_end_batch = -1 },
        .batch.log_step = -1,
        .timing.start = kiln_clock(),
    };
    kiln_output_init(&trainer->output, kiln_trainer_rank(trainer) == 0 ? env->console : NULL);
    config->printer = (KilnPrinter) { print_line, trainer };
    trainer->timing.step_ms = malloc(KILN_STEP_TIMES * sizeof(float));
    if (trainer->timing.step_ms == NULL)
        return kiln_error_nomem(err, KILN_STEP_TIMES * sizeof(float));
    KilnStatus status = kiln_metrics_new(&trainer->metrics, err);
    if (status >= 0)
        status = read_options(trainer, threads, err);
    if (status < 0)
        return status;
    kiln_data_take(trainer, remembered);
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
        status = kiln_trainer_plan_steps(trainer, stage, err);
    if (status >= 0 && stage == KILN_STAGE_FIT)
        status = kiln_adapters_check_used(trainer->params, err);
    if (status >= 0 && stage == KILN_STAGE_FIT)
        kiln_memory_estimate_complete(trainer);
    return status;
}

/* Tell the sweep what its job will take. */
static void report_memory(const KilnTrainer *trainer)
{
    const KilnRunEnv *env = trainer->env;
    const KilnRunProgress progress = { .memory = kiln_memory_estimate_peak(&trainer->memory) };

    if (trainer->stage == KILN_STAGE_FIT && env->prepared && env->progress != NULL &&
        kiln_trainer_rank(trainer) == 0)
        env->progress(env->ctx, &progress);
}

KilnStatus kiln_trainer_allocate(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = kiln_trainer_check_memory(trainer, err);

    if (status >= 0)
        report_memory(trainer);
    if (status >= 0)
        status = kiln_optimizers_allocate(trainer, err);
    /* Outside of a fit a checkpoint has all values. */
    return status >= 0 && trainer->stage == KILN_STAGE_FIT ? kiln_params_draw(trainer->params, err)
                                                           : status;
}

KilnStatus kiln_trainer_assemble(KilnTrainer *trainer, KilnConfig *config, const KilnRunEnv *env,
                                 KilnStage stage, const KilnDataSpec *remembered, KilnError *err)
{
    KilnStatus status = kiln_trainer_dry_build(trainer, config, env, stage, remembered, err);

    return status >= 0 ? kiln_trainer_allocate(trainer, err) : status;
}

void kiln_trainer_release(KilnTrainer *trainer)
{
    kiln_ranks_close(&trainer->ranks);
    kiln_stop_monitor_end(trainer);
    kiln_journal_close(trainer->journal);
    kiln_save_requests_release(&trainer->saves); /* the save thread still writes to the live page */
    kiln_live_status_end(trainer);
    kiln_splits_release(trainer);
    kiln_hooks_release(&trainer->hooks);
    kiln_instances_free(trainer->callbacks, trainer->n_callbacks);
    kiln_loggers_release(&trainer->loggers);
    kiln_step_release_results(&trainer->step);
    kiln_graph_free(trainer->graph);
    kiln_params_free(trainer->params);
    kiln_adapters_free(trainer->adapters);
    kiln_optimizers_release(trainer);
    kiln_averaged_free(trainer->averaged);
    kiln_batch_stats_release(&trainer->batch_stats);
    kiln_backend_free(trainer->backend);
    for (size_t i = 0; i < trainer->n_layers; i++)
        free((char *)trainer->layers[i].path);
    free(trainer->layers);
    kiln_instance_free(trainer->module);
    kiln_instance_free(trainer->datamodule);
    kiln_metrics_free(trainer->metrics);
    kiln_options_release(&trainer->options);
    if (trainer->config != NULL) /* not where nothing was built */
        trainer->config->printer = (KilnPrinter) { .print = NULL };
    kiln_output_release(&trainer->output);
    kiln_picture_names_release(&trainer->picture_names);
    free(trainer->predict.unread);
    free(trainer->timing.step_ms);
    free(trainer->config_yaml);
    free(trainer->run_dir);
    free(trainer->origins);
    free(trainer->resumed_from);
    *trainer = (KilnTrainer) { 0 };
}

/* Building a trainer: options, components, parameters, graph; and recording its
 * steps on shapes alone, so that what does not fit is found before anything runs. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "graph/graph.h"
#include "train/resume.h"

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
    return status >= 0 ? kiln_hooks_set_up(trainer, err) : status;
}

/* ---- Data ------------------------------------------------------------------------------- */

static const KilnDataModuleOps *data_ops(const KilnTrainer *trainer)
{
    return kiln_instance_component(trainer->datamodule)->ops.datamodule;
}

static KilnStatus open_split(KilnTrainer *trainer, KilnSplit split, KilnError *err)
{
    if (trainer->opened[split])
        return KILN_OK;
    KilnStatus status = data_ops(trainer)->dataset(trainer->datamodule, split, 0,
                                                   &trainer->datasets[split], err);
    if (status >= 0)
        trainer->opened[split] = true;
    return status;
}

static KilnAmount limit_of(const KilnTrainer *trainer, KilnSplit split)
{
    const KilnTrainerOptions *options = trainer->options.trainer;

    return split == KILN_TRAIN ? options->limit_train_batches
           : split == KILN_VAL ? options->limit_val_batches
                               : options->limit_test_batches;
}

/* All batches of a split; evaluation takes all samples in order. */
static KilnLoaderSpec whole_spec(const KilnTrainer *trainer, KilnSplit split)
{
    const bool overfits = trainer->options.trainer->overfit_batches.value > 0.0;

    return (KilnLoaderSpec) {
        .data = &trainer->spec,
        .dataset = trainer->datasets[split],
        .batch_size = trainer->batch_size,
        .limit = -1,
        .seed = (uint64_t)trainer->options.root->seed,
        .drop_last = split == KILN_TRAIN && trainer->loading.drop_last,
        .sampler = split == KILN_TRAIN && !overfits ? trainer->loading.sampler : NULL,
        .batch_transforms = trainer->loading.batch_transforms,
        .n_batch_transforms = split == KILN_TRAIN ? trainer->loading.batch_transforms_count : 0,
        .buckets = trainer->loading.buckets,
        .n_buckets = trainer->loading.buckets_count,
        .by_length = split == KILN_TRAIN && trainer->loading.buckets_count > 0,
        .workers = (int)trainer->options.trainer->num_workers,
        .stop = trainer->env->stop,
        .pause = trainer->env->save,
    };
}

static int64_t all_batches(const KilnTrainer *trainer, KilnSplit split)
{
    KilnLoaderSpec spec = whole_spec(trainer, split);

    return kiln_loader_spec_batches(&spec);
}

int64_t kiln_trainer_split_batches(const KilnTrainer *trainer, KilnSplit split)
{
    if (trainer->loaders[split] != NULL)
        return kiln_loader_batches(trainer->loaders[split]);
    return kiln_amount_of(limit_of(trainer, split), all_batches(trainer, split));
}

static KilnStatus check_limit(const KilnTrainer *trainer, KilnSplit split, KilnError *err)
{
    static const char *const names[] = { "limit_train_batches", "limit_val_batches",
                                         "limit_test_batches" };
    const bool overfits = trainer->options.trainer->overfit_batches.value > 0.0;
    int64_t n = 0;

    return kiln_pace_limit(overfits && split != KILN_TEST ? "overfit_batches" : names[split],
                           limit_of(trainer, split), all_batches(trainer, split), &n, err);
}

KilnStatus kiln_trainer_predict_batches(const KilnTrainer *trainer, int64_t total, int64_t *ret,
                                        KilnError *err)
{
    return kiln_pace_limit("limit_predict_batches", trainer->options.trainer->limit_predict_batches,
                           total, ret, err);
}

/* How the loop goes, from the data there is. */
static KilnStatus set_pace(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = check_limit(trainer, KILN_TRAIN, err);

    if (status >= 0)
        status = check_limit(trainer, KILN_VAL, err);
    if (status >= 0)
        status = kiln_pace_make(trainer->options.trainer,
                                kiln_trainer_split_batches(trainer, KILN_TRAIN),
                                kiln_trainer_split_batches(trainer, KILN_VAL), &trainer->pace, err);
    return status;
}

static KilnLoaderSpec loader_spec(const KilnTrainer *trainer, KilnSplit split)
{
    KilnLoaderSpec spec = whole_spec(trainer, split);

    spec.limit = kiln_trainer_split_batches(trainer, split);
    return spec;
}

static void warn_of_sample(void *ctx, int64_t sample, KilnStatus status, const char *message)
{
    KilnTrainer *trainer = ctx;

    (void)sample;
    (void)status;
    kiln_output_print(&trainer->output, "warning: sample left out: %s", message);
}

KilnLoaderSpec kiln_trainer_loader_spec(KilnTrainer *trainer, KilnSplit split)
{
    KilnLoaderSpec spec = loader_spec(trainer, split);

    spec.left_out = warn_of_sample;
    spec.ctx = trainer;
    return spec;
}

KilnLoaderSpec kiln_trainer_input_spec(const KilnTrainer *trainer, const KilnDataset *input)
{
    KilnLoaderSpec spec = whole_spec(trainer, KILN_TEST);

    spec.dataset = *input;
    spec.tolerant = true;
    return spec;
}

KilnStatus kiln_trainer_loader(KilnTrainer *trainer, KilnSplit split, KilnLoader **ret,
                               KilnError *err)
{
    KilnStatus status = KILN_OK;

    if (trainer->loaders[split] == NULL && limit_of(trainer, split).value > 0.0)
        status = open_split(trainer, split, err);
    if (status >= 0 && trainer->loaders[split] == NULL)
        status = check_limit(trainer, split, err);
    if (status >= 0 && trainer->loaders[split] == NULL &&
        kiln_trainer_split_batches(trainer, split) > 0) {
        KilnLoaderSpec spec = kiln_trainer_loader_spec(trainer, split);

        status = kiln_loader_new(&spec, &trainer->loaders[split], err);
    }
    if (status >= 0)
        *ret = trainer->loaders[split];
    return status;
}

/* What is known of the batches of training before anything is read. */
static KilnStatus set_up_batches(KilnTrainer *trainer, KilnError *err)
{
    KilnLoaderSpec spec = whole_spec(trainer, KILN_TRAIN);
    KilnStatus status = kiln_sampler_setup(&spec, err);

    if (status >= 0)
        status = kiln_loader_spec_features(&spec, &trainer->train_spec, err);
    if (status >= 0 && kiln_loader_spec_batches(&spec) < 1)
        status = kiln_error_set(err, KILN_E_RANGE,
                                "datamodule.drop_last leaves nothing to train on: an epoch of %lld "
                                "samples has no full batch of %lld; lower datamodule.batch_size",
                                (long long)trainer->datasets[KILN_TRAIN].count,
                                (long long)trainer->batch_size);
    return status;
}

static KilnStatus set_up_data(KilnTrainer *trainer, KilnStage stage, const KilnDataSpec *remembered,
                              KilnError *err)
{
    KilnDataContext context = {
        .stage = stage,
        .seed = (uint64_t)trainer->options.root->seed,
        .remembered = stage == KILN_STAGE_PREDICT ? remembered : NULL,
    };
    KilnStatus status = data_ops(trainer)->setup(trainer->datamodule, &context, err);

    if (status >= 0)
        status = data_ops(trainer)->spec(trainer->datamodule, &trainer->spec, err);
    if (status < 0)
        return status;
    trainer->loading = data_ops(trainer)->loading(trainer->datamodule);
    trainer->batch_size = trainer->loading.batch_size;
    if (stage == KILN_STAGE_FIT) {
        status = open_split(trainer, KILN_TRAIN, err);
        if (status >= 0)
            status = open_split(trainer, KILN_VAL, err);
        if (status >= 0 && trainer->datasets[KILN_TRAIN].count < 1)
            status = kiln_error_set(err, KILN_E_MISSING,
                                    "datamodule %s has no training samples; check its options",
                                    kiln_instance_name(trainer->datamodule));
        if (status >= 0)
            status = set_up_batches(trainer, err);
        if (status >= 0)
            status = set_pace(trainer, err);
    }
    return status;
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
    status = ops->setup(trainer->module, &scope, &trainer->spec, err);
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
    trainer->step.spec = &trainer->spec;
    trainer->step.train_spec = &trainer->train_spec;
    return status;
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

/* A batch without bytes, as large as the first of that split. */
static KilnBatch shape_batch(const KilnTrainer *trainer, KilnSplit split)
{
    KilnLoaderSpec spec = whole_spec(trainer, split);

    return (KilnBatch) {
        .size = trainer->datasets[split].count > 0 ? kiln_loader_spec_batch(&spec)
                                                   : trainer->batch_size,
    };
}

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

static KilnStatus record_eval(KilnTrainer *trainer, KilnPhase phase, KilnError *err)
{
    KilnSplit split = phase == KILN_PHASE_TEST ? KILN_TEST : KILN_VAL;
    KilnBatch batch = shape_batch(trainer, split);

    kiln_eval_record(trainer, phase, &batch);
    return check_graph(trainer, phase == KILN_PHASE_TEST ? "test" : "validation", err);
}

/* Planning costs the steps nothing: they follow the plan that is made here. */
static KilnStatus plan_step(KilnTrainer *trainer, KilnTensor *loss, KilnError *err)
{
    KilnPlan *plan = NULL;
    KilnStatus status = kiln_step_plan(&trainer->step, loss, &plan, err);

    if (status >= 0)
        kiln_forecast_add_plan(&trainer->forecast, plan);
    return status;
}

/* The batches of a group: the first, whose gradients wait; those that add theirs; the last, with
 * the update, which of a group of one is the first. */
static KilnStatus record_batches(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    const int64_t places[] = { 0, 1, trainer->pace.accumulate - 1 };
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < KILN_COUNT(places) && status >= 0; i++) {
        if (i > 0 && (places[i] <= places[i - 1] || places[i] >= trainer->pace.accumulate))
            continue;
        trainer->at.in_group = places[i];
        KilnTensor *loss = kiln_fit_record(trainer, batch);
        status = check_graph(trainer, "training", err);
        if (status >= 0 && i == 0)
            status = kiln_trainer_read_layers(trainer, err);
        if (status >= 0)
            status = plan_step(trainer, loss, err);
    }
    trainer->at.in_group = 0;
    return status;
}

static KilnStatus record_fit(KilnTrainer *trainer, KilnError *err)
{
    KilnBatch batch = shape_batch(trainer, KILN_TRAIN);

    if (kiln_instance_component(trainer->module)->ops.module->training_step == NULL)
        return missing_step(trainer, "training", err);
    if (kiln_params_size(trainer->params) < 1)
        return kiln_error_set(err, KILN_E_MISSING, "task %s has no parameters to train",
                              kiln_instance_name(trainer->module));
    KilnStatus status = record_batches(trainer, &batch, err);
    if (status >= 0)
        status = record_eval(trainer, KILN_PHASE_VALIDATE, err);
    if (status >= 0 && kiln_trainer_validates(trainer))
        status = plan_step(trainer, NULL, err);
    if (status >= 0)
        status = record_eval(trainer, KILN_PHASE_TEST, err);
    return status >= 0 ? kiln_optimize_check(trainer, err) : status;
}

static KilnStatus record_shapes(KilnTrainer *trainer, KilnStage stage, KilnError *err)
{
    if (stage == KILN_STAGE_FIT)
        return record_fit(trainer, err);
    if (stage == KILN_STAGE_TEST)
        return record_eval(trainer, KILN_PHASE_TEST, err);
    if (stage == KILN_STAGE_VALIDATE)
        return record_eval(trainer, KILN_PHASE_VALIDATE, err);
    if (kiln_instance_component(trainer->module)->ops.module->predict_step == NULL)
        return missing_step(trainer, "predict", err);
    return KILN_OK;
}

/* ---- The whole
 * ----------------------------------------------------------------------------------- */

KilnStatus kiln_trainer_sketch(KilnTrainer *trainer, KilnConfig *config, const KilnRunEnv *env,
                               KilnStage stage, const KilnDataSpec *remembered, KilnError *err)
{
    const int threads = trainer->threads;

    *trainer = (KilnTrainer) { .config = config, .env = env, .at.last_val_batch = -1 };
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
    kiln_resume_forget(trainer->config_yaml);
    trainer->processors = kiln_processors_here();
    trainer->threads = (int)trainer->options.trainer->threads;
    if (trainer->threads == 0)
        trainer->threads = threads != 0 ? threads : trainer->processors.threads;
    status = build_components(trainer, stage, err);
    if (status >= 0)
        status = set_up_data(trainer, stage, remembered, err);
    if (status >= 0)
        status = set_up_network(trainer, err);
    if (status >= 0 && stage == KILN_STAGE_FIT)
        status = kiln_instruments_set_up(trainer, err);
    if (status >= 0 && stage == KILN_STAGE_FIT)
        status = kiln_optimize_set_up(trainer, err);
    if (status >= 0)
        status = record_shapes(trainer, stage, err);
    if (status >= 0 && stage == KILN_STAGE_FIT)
        kiln_forecast_complete(trainer);
    return status;
}

KilnStatus kiln_trainer_allocate(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = kiln_trainer_check_memory(trainer, err);

    if (status >= 0)
        status = kiln_optimize_allocate(trainer, err);
    return status >= 0 ? kiln_params_draw(trainer->params, err) : status;
}

KilnStatus kiln_trainer_assemble(KilnTrainer *trainer, KilnConfig *config, const KilnRunEnv *env,
                                 KilnStage stage, const KilnDataSpec *remembered, KilnError *err)
{
    KilnStatus status = kiln_trainer_sketch(trainer, config, env, stage, remembered, err);

    return status >= 0 ? kiln_trainer_allocate(trainer, err) : status;
}

void kiln_trainer_release(KilnTrainer *trainer)
{
    kiln_journal_close(trainer->journal);
    kiln_saves_release(&trainer->saves); /* the writer tells the live page */
    kiln_telling_end(trainer);
    for (int i = 0; i < KILN_SPLIT_COUNT; i++)
        kiln_loader_free(trainer->loaders[i]);
    kiln_hooks_release(&trainer->hooks);
    kiln_instances_free(trainer->callbacks, trainer->n_callbacks);
    kiln_loggers_release(&trainer->loggers);
    kiln_graph_free(trainer->graph);
    kiln_backend_free(trainer->backend);
    kiln_params_free(trainer->params);
    kiln_optimize_release(trainer);
    kiln_shadow_free(trainer->shadow);
    for (size_t i = 0; i < trainer->n_layers; i++)
        free((char *)trainer->layers[i].path);
    free(trainer->layers);
    kiln_instance_free(trainer->module);
    kiln_instance_free(trainer->datamodule);
    kiln_metrics_free(trainer->metrics);
    kiln_instruments_release(&trainer->instruments);
    kiln_options_release(&trainer->options);
    kiln_output_release(&trainer->output);
    free(trainer->unread);
    free(trainer->timing.step_ms);
    free(trainer->config_yaml);
    free(trainer->run_dir);
    free(trainer->resumed_from);
    *trainer = (KilnTrainer) { 0 };
}

/* Lightning's Trainer, callbacks and loggers; keys of the root. */
#include "cli/hydra/classes_rows.h"

/* ---- The trainer ----------------------------------------------------------------------------- */

#define PROCESSES "processes are started by the user: docs/running.md"

static const KilnImportOption trainer[] = {
    { "accelerator", "accelerator", KILN_IMPORT_CHOICE, "auto=auto cpu=cpu",
      "kiln computes on the processor" },
    { "strategy", NULL, KILN_IMPORT_ABSENT, "auto single_device null", PROCESSES },
    ABSENT("devices", "auto 1 null -1", PROCESSES "; trainer.threads sets the cores"),
    ABSENT("num_nodes", "1", PROCESSES),
    { "precision", "precision", KILN_IMPORT_CHOICE,
      "32=32-true 32-true=32-true 64=64-true 64-true=64-true bf16=bf16-mixed "
      "bf16-mixed=bf16-mixed bf16-true=bf16-true 16=bf16-mixed 16-mixed=bf16-mixed "
      "16-true=bf16-true null=32-true",
      NULL },
    ABSENT("logger", "true null", "is the group logger: logger=csv"),
    ABSENT("callbacks", "null", "is the group callbacks"),
    SAME("fast_dev_run"),
    NOT_NULL("max_epochs"),
    SAME("min_epochs"),
    NOT_NULL("max_steps"),
    SAME("min_steps"),
    { "max_time", "max_time", KILN_IMPORT_DURATION, NULL, NULL },
    NOT_NULL("limit_train_batches"),
    NOT_NULL("limit_val_batches"),
    NOT_NULL("limit_test_batches"),
    NOT_NULL("limit_predict_batches"),
    NOT_NULL("overfit_batches"),
    NOT_NULL("val_check_interval"),
    SAME("check_val_every_n_epoch"),
    NOT_NULL("num_sanity_val_steps"),
    NOT_NULL("log_every_n_steps"),
    NOT_NULL("enable_checkpointing"),
    NOT_NULL("enable_progress_bar"),
    NOT_NULL("enable_model_summary"),
    NOT_NULL("accumulate_grad_batches"),
    SAME("gradient_clip_val"),
    NOT_NULL("gradient_clip_algorithm"),
    { "deterministic", "deterministic", KILN_IMPORT_CHOICE, "true=true warn=true",
      "kiln always computes the same bytes" },
    NEEDLESS("benchmark"),
    NEEDLESS("inference_mode"),
    NEEDLESS("use_distributed_sampler"),
    { "profiler", "profiler", KILN_IMPORT_CHOICE, "simple=simple null=null",
      "the only profiler is simple" },
    NOT_NULL("detect_anomaly"),
    NOT_NULL("barebones"),
    ABSENT("plugins", "null", PROCESSES),
    NEEDLESS("sync_batchnorm"),
    NOT_NULL("reload_dataloaders_every_n_epochs"),
    ABSENT("default_root_dir", "null", "kiln.run.dir (Hydra's hydra.run.dir) is the run folder"),
    NEEDLESS("enable_autolog_hparams"),
    ABSENT("model_registry", "null", "the config is in the run folder and in each checkpoint"),
    END,
};
const KilnImportClass kiln_import_trainer = { "lightning", "Trainer", KILN_IMPORT_TRAINER,
                                              NULL,        NULL,      NULL,
                                              trainer };

/* ---- Callbacks ------------------------------------------------------------------------------- */

static const KilnImportOption model_checkpoint[] = {
    ABSENT("dirpath", "null", "checkpoints are in the run folder's checkpoints/"),
    NOT_NULL("filename"),
    { "monitor", "monitor", KILN_IMPORT_METRIC, NULL, NULL },
    SAME("verbose"),
    { "save_last", "save_last", KILN_IMPORT_CHOICE, "true=true false=false link=true", NULL },
    SAME("save_top_k"),
    SAME("save_on_exception"),
    SAME("save_weights_only"),
    SAME("mode"),
    SAME("auto_insert_metric_name"),
    SAME("every_n_train_steps"),
    { "train_time_interval", "train_time_interval", KILN_IMPORT_DURATION, NULL, NULL },
    SAME("every_n_epochs"),
    SAME("save_on_train_epoch_end"),
    SAME("enable_version_counter"),
    END,
};
static const KilnImportOption exception_checkpoint[] = {
    ABSENT("dirpath", NULL, "checkpoints are in the run folder's checkpoints/"),
    SAME("filename"),
    END,
};
static const KilnImportOption early_stopping[] = {
    { "monitor", "monitor", KILN_IMPORT_METRIC, NULL, NULL },
    SAME("min_delta"),
    SAME("patience"),
    SAME("verbose"),
    SAME("mode"),
    SAME("strict"),
    SAME("check_finite"),
    SAME("stopping_threshold"),
    SAME("divergence_threshold"),
    SAME("check_on_train_epoch_end"),
    NEEDLESS("log_rank_zero_only"),
    END,
};
static const KilnImportOption learning_rate_monitor[] = { SAME("logging_interval"),
                                                          SAME("log_momentum"),
                                                          SAME("log_weight_decay"), END };
static const KilnImportOption device_stats[] = { NEEDLESS("cpu_stats"), END };
static const KilnImportOption throughput[] = {
    NEEDLESS("batch_size_fn"),
    NEEDLESS("length_fn"),
    SAME("window_size"),
    NEEDLESS("separator"),
    NEEDLESS("available_flops"),
    NEEDLESS("world_size"),
    END,
};
static const KilnImportOption spike_detection[] = {
    ABSENT("mode", "min", "the training loss always falls"),
    SAME("window"),
    SAME("warmup"),
    SAME("atol"),
    SAME("rtol"),
    SAME("exclude_batches_path"),
    SAME("finite_only"),
    END,
};
static const KilnImportOption timer[] = {
    { "duration", "duration", KILN_IMPORT_DURATION, NULL, NULL },
    SAME("interval"),
    SAME("verbose"),
    END,
};
static const KilnImportOption accumulation[] = { SAME("scheduling"), END };
static const KilnImportOption swa[] = {
    SAME("swa_lrs"),
    SAME("swa_epoch_start"),
    SAME("annealing_epochs"),
    SAME("annealing_strategy"),
    ABSENT("avg_fn", "null", "the mean; a moving average is callback/ema"),
    NEEDLESS("device"),
    END,
};
static const KilnImportOption ema[] = {
    NEEDLESS("device"),
    SAME("use_buffers"),
    SAME("decay"),
    SAME("update_every_n_steps"),
    NOT_NULL("update_starting_at_step"),
    NOT_NULL("update_starting_at_epoch"),
    END,
};
static const KilnImportOption finetuning[] = {
    ABSENT("unfreeze_backbone_at_epoch", NULL, "is unfreeze_at_epoch of a phase"),
    ABSENT("lambda_func", "null", "is growth of a phase"),
    ABSENT("backbone_initial_ratio_lr", NULL, "is initial_ratio_lr of a phase"),
    ABSENT("backbone_initial_lr", "null", "initial_ratio_lr of a phase is a factor"),
    ABSENT("should_align", NULL, "is an option of a phase"),
    NEEDLESS("initial_denom_lr"),
    SAME("train_bn"),
    NEEDLESS("verbose"),
    NEEDLESS("rounding"),
    END,
};
static const KilnImportOption pruning[] = {
    { "pruning_fn", "pruning_fn", KILN_IMPORT_CHOICE,
      "l1_unstructured=l1_unstructured random_unstructured=random_unstructured "
      "ln_structured=ln_structured random_structured=random_structured",
      "a pruning function of your own is a plugin" },
    ABSENT("parameters_to_prune", "null", "patterns over names of parameters: ['*weight']"),
    ABSENT("parameter_names", "null", "parameters_to_prune has patterns: ['*weight']"),
    SAME("use_global_unstructured"),
    SAME("amount"),
    ABSENT("apply_pruning", "true", "is epochs"),
    NEEDLESS("make_pruning_permanent"),
    SAME("use_lottery_ticket_hypothesis"),
    ABSENT("resample_parameters", "false", NULL),
    SAME("pruning_dim"),
    SAME("pruning_norm"),
    NEEDLESS("verbose"),
    SAME("prune_on_train_epoch_end"),
    END,
};
static const KilnImportOption lr_finder[] = {
    SAME("min_lr"),
    SAME("max_lr"),
    SAME("num_training_steps"),
    SAME("mode"),
    SAME("early_stop_threshold"),
    SAME("update_attr"),
    ABSENT("attr_name", "lr", "is a key of the config; without it the optimizer's lr"),
    END,
};
static const KilnImportOption batch_size_finder[] = {
    SAME("mode"),
    SAME("steps_per_trial"),
    SAME("init_val"),
    SAME("max_trials"),
    ABSENT("batch_arg_name", "batch_size", "is a key of the config"),
    SAME("margin"),
    SAME("max_val"),
    END,
};
static const KilnImportOption prediction_writer[] = {
    { "write_interval", "interval", KILN_IMPORT_CHOICE, "batch=batch epoch=epoch", NULL },
    END,
};
static const KilnImportOption model_summary[] = { SAME("max_depth"), NEEDLESS("summarize_kwargs"),
                                                  END };
static const KilnImportOption progress_bar[] = {
    ABSENT("refresh_rate", NULL, "is refresh_s, in seconds"),
    NEEDLESS("process_position"),
    SAME("leave"),
    NEEDLESS("theme"),
    NEEDLESS("console_kwargs"),
    END,
};

/* ---- Loggers --------------------------------------------------------------------------------- */

#define FOLDER                                                                                     \
    NEEDLESS("save_dir"), NEEDLESS("name"), NEEDLESS("version"),                                   \
        ABSENT("prefix", "null ", "metrics have their own names")

static const KilnImportOption csv[] = { FOLDER, NEEDLESS("flush_logs_every_n_steps"), END };
static const KilnImportOption tensorboard[] = {
    FOLDER,
    NEEDLESS("sub_dir"),
    ABSENT("log_graph", "false", "`kiln graph` draws the step"),
    NEEDLESS("default_hp_metric"),
    END,
};
#define SERVICE "an external service: forward the lines of logger/jsonl"

/* ---- The root -------------------------------------------------------------------------------- */

static const KilnImportOption root[] = {
    NOT_NULL("seed"),
    SAME("ckpt_path"),
    SAME("test"),
    ABSENT("train", "true", "`kiln eval RUN` tests without training"),
    { "optimized_metric", "hydra.sweeper.metric", KILN_IMPORT_METRIC, NULL, NULL },
    END,
};
const KilnImportClass kiln_import_root = {
    "", "the root", KILN_IMPORT_OTHER, NULL, NULL, NULL, root
};

#define CALLBACK(name, component, options)                                                         \
    {                                                                                              \
        "lightning", name, KILN_IMPORT_CALLBACK, "callback/" component, NULL, NULL, options        \
    }
#define BASE(name)                                                                                 \
    NONE("lightning", name, KILN_IMPORT_CALLBACK, "a callback of your own is one C file, a plugin")
#define OTHER_LOGGER(library, name) NONE(library, name, KILN_IMPORT_LOGGER, SERVICE)

const KilnImportClass kiln_import_lightning[] = {
    { "lightning", "Trainer", KILN_IMPORT_TRAINER, NULL, NULL, NULL, trainer },
    CALLBACK("ModelCheckpoint", "model_checkpoint", model_checkpoint),
    { "lightning", "OnExceptionCheckpoint", KILN_IMPORT_CALLBACK, "callback/model_checkpoint",
      "save_on_exception: true, save_top_k: 0, save_last: false", NULL, exception_checkpoint },
    CALLBACK("EarlyStopping", "early_stopping", early_stopping),
    CALLBACK("LearningRateMonitor", "learning_rate_monitor", learning_rate_monitor),
    CALLBACK("DeviceStatsMonitor", "device_stats", device_stats),
    CALLBACK("ThroughputMonitor", "throughput", throughput),
    CALLBACK("SpikeDetection", "spike_detection", spike_detection),
    CALLBACK("Timer", "timer", timer),
    CALLBACK("GradientAccumulationScheduler", "gradient_accumulation_scheduler", accumulation),
    CALLBACK("StochasticWeightAveraging", "stochastic_weight_averaging", swa),
    { "lightning", "EMAWeightAveraging", KILN_IMPORT_CALLBACK, "callback/ema", "decay: 0.999", NULL,
      ema },
    NONE("lightning", "WeightAveraging", KILN_IMPORT_CALLBACK,
         "callback/ema, callback/stochastic_weight_averaging"),
    { "lightning", "BackboneFinetuning", KILN_IMPORT_CALLBACK, "callback/finetuning", NULL,
      "phases name the parameters of the backbone: docs/finetuning.md", finetuning },
    BASE("BaseFinetuning"),
    CALLBACK("ModelPruning", "pruning", pruning),
    { "lightning", "LearningRateFinder", KILN_IMPORT_CALLBACK, "callback/lr_finder",
      "min_lr: 1e-8, max_lr: 1.0", NULL, lr_finder },
    CALLBACK("BatchSizeFinder", "batch_size_finder", batch_size_finder),
    CALLBACK("BasePredictionWriter", "prediction_writer", prediction_writer),
    { "lightning", "ModelSummary", KILN_IMPORT_CALLBACK, "callback/model_summary", "max_depth: 1",
      NULL, model_summary },
    { "lightning", "RichModelSummary", KILN_IMPORT_CALLBACK, "callback/model_summary",
      "max_depth: 1", NULL, model_summary },
    CALLBACK("TQDMProgressBar", "progress_bar", progress_bar),
    CALLBACK("RichProgressBar", "progress_bar", progress_bar),
    BASE("ProgressBar"),
    BASE("Checkpoint"),
    BASE("Callback"),
    BASE("LambdaCallback"),
    { "lightning", "CSVLogger", KILN_IMPORT_LOGGER, "logger/csv", NULL, NULL, csv },
    { "lightning", "TensorBoardLogger", KILN_IMPORT_LOGGER, "logger/tensorboard", NULL, NULL,
      tensorboard },
    NONE("lightning", "Logger", KILN_IMPORT_LOGGER, "a logger of your own is a plugin"),
    OTHER_LOGGER("lightning", "WandbLogger"),
    OTHER_LOGGER("lightning", "CometLogger"),
    OTHER_LOGGER("lightning", "MLFlowLogger"),
    OTHER_LOGGER("lightning", "NeptuneLogger"),
    OTHER_LOGGER("lightning", "LitLogger"),
    OTHER_LOGGER("aim", "AimLogger"),
    { .name = NULL },
};

/* PyTorch's optimizers, schedulers, losses and loader; warmups of transformers; Optuna's sweeper.
 */
#include "cli/hydra/classes_rows.h"

/* ---- Optimizers ------------------------------------------------------------------------------ */

/* How PyTorch computes an update, and an option that nothing here has. */
#define HOW                                                                                        \
    NEEDLESS("params"), NEEDLESS("foreach"), NEEDLESS("fused"), NEEDLESS("capturable"),            \
        NEEDLESS("differentiable"),                                                                \
        ABSENT("maximize", "false", "kiln's optimizers minimize: negate the loss")

static const KilnImportOption sgd[] = {
    SAME("lr"), SAME("momentum"), SAME("dampening"), SAME("weight_decay"), SAME("nesterov"), HOW,
    END
};
static const KilnImportOption adam[] = {
    SAME("lr"),
    SAME("betas"),
    SAME("eps"),
    SAME("weight_decay"),
    SAME("amsgrad"),
    ABSENT("decoupled_weight_decay", "false", "true is optimizer/adamw"),
    HOW,
    END,
};
static const KilnImportOption sparse_adam[] = { SAME("lr"), SAME("betas"), SAME("eps"), HOW, END };
static const KilnImportOption rmsprop[] = {
    SAME("lr"),       SAME("alpha"),    SAME("eps"), SAME("weight_decay"),
    SAME("momentum"), SAME("centered"), HOW,         END,
};
static const KilnImportOption adagrad[] = {
    SAME("lr"),
    SAME("lr_decay"),
    SAME("weight_decay"),
    SAME("initial_accumulator_value"),
    SAME("eps"),
    HOW,
    END,
};
/* Of several packages, whose names agree. */
static const KilnImportOption lion[] = { SAME("lr"),
                                         SAME("betas"),
                                         SAME("weight_decay"),
                                         ABSENT("use_triton", "false", "a kernel for GPUs"),
                                         HOW,
                                         END };
static const KilnImportOption lamb[] = {
    SAME("lr"),
    SAME("betas"),
    SAME("eps"),
    SAME("weight_decay"),
    ABSENT("bias_correction", "true", "kiln's lamb corrects always"),
    ABSENT("grad_averaging", "true", "kiln's lamb averages always"),
    ABSENT("max_grad_norm", "null", "trainer.gradient_clip_val clips gradients"),
    ABSENT("trust_clip", "false", "kiln's lamb does not clip the ratio"),
    SAME("always_adapt"),
    HOW,
    END,
};
static const KilnImportOption adan[] = {
    SAME("lr"), SAME("betas"), SAME("eps"), SAME("weight_decay"), SAME("no_prox"), HOW, END
};

/* ---- Schedulers ------------------------------------------------------------------------------ */

#define SCHEDULE                                                                                   \
    NEEDLESS("optimizer"), NEEDLESS("verbose"),                                                    \
        ABSENT("last_epoch", "-1", "a resumed run knows its epoch")
#define WHOLE_RUN "the schedule spans the whole run (trainer.max_epochs)"

static const KilnImportOption step[] = { SAME("step_size"), SAME("gamma"), SCHEDULE, END };
static const KilnImportOption multistep[] = { SAME("milestones"), SAME("gamma"), SCHEDULE, END };
static const KilnImportOption exponential[] = { SAME("gamma"), SCHEDULE, END };
static const KilnImportOption cosine[] = {
    ABSENT("T_max", NULL, WHOLE_RUN),
    { "eta_min", "min_factor", KILN_IMPORT_FRACTION, NULL, "as a fraction of optimizer.lr" },
    SCHEDULE,
    END,
};
static const KilnImportOption restarts[] = {
    { "T_0", "t_0", KILN_IMPORT_SAME, NULL, NULL },
    { "T_mult", "t_mult", KILN_IMPORT_SAME, NULL, NULL },
    { "eta_min", "min_factor", KILN_IMPORT_FRACTION, NULL, "as a fraction of optimizer.lr" },
    SCHEDULE,
    END,
};
static const KilnImportOption polynomial[] = { ABSENT("total_iters", NULL, WHOLE_RUN),
                                               SAME("power"), SCHEDULE, END };
static const KilnImportOption one_cycle[] = {
    ABSENT("max_lr", NULL, "is optimizer.lr: the cycle rises to it"),
    ABSENT("total_steps", "null", WHOLE_RUN),
    ABSENT("epochs", "null", WHOLE_RUN),
    ABSENT("steps_per_epoch", "null", WHOLE_RUN),
    SAME("pct_start"),
    { "anneal_strategy", "anneal_strategy", KILN_IMPORT_CHOICE, "cos=cos linear=linear", NULL },
    ABSENT("cycle_momentum", "false", "kiln's one_cycle leaves the momentum as it is"),
    NEEDLESS("base_momentum"),
    NEEDLESS("max_momentum"),
    SAME("div_factor"),
    SAME("final_div_factor"),
    SAME("three_phase"),
    SCHEDULE,
    END,
};
static const KilnImportOption plateau[] = {
    SAME("mode"),
    SAME("factor"),
    SAME("patience"),
    SAME("threshold"),
    SAME("threshold_mode"),
    SAME("cooldown"),
    { "min_lr", "min_factor", KILN_IMPORT_FRACTION, NULL, "as a fraction of optimizer.lr" },
    ABSENT("eps", "1e-8 1e-08", "every fall counts, however small"),
    SCHEDULE,
    END,
};
/* Functions of the package transformers. */
#define STEPS                                                                                      \
    { "num_warmup_steps", "warmup_steps", KILN_IMPORT_SAME, NULL, NULL },                          \
        ABSENT("num_training_steps", "null", WHOLE_RUN)
static const KilnImportOption warmup[] = { STEPS, SCHEDULE, END };
static const KilnImportOption warmup_cosine[] = {
    STEPS, ABSENT("num_cycles", "0.5", "the cosine falls once"), SCHEDULE, END
};
static const KilnImportOption warmup_polynomial[] = {
    STEPS,
    SAME("power"),
    { "lr_end", "min_factor", KILN_IMPORT_FRACTION, NULL, "as a fraction of optimizer.lr" },
    ABSENT("lr_init", NULL, "is optimizer.lr"),
    SCHEDULE,
    END,
};
static const KilnImportOption inverse_sqrt[] = { STEPS, ABSENT("timescale", "null", NULL), SCHEDULE,
                                                 END };
#define WARMUP "a warmup is an option of the scheduler itself: warmup_steps or warmup_epochs"

static const KilnImportOption schedule_options[] = {
    { "scheduler", NULL, KILN_IMPORT_INSIDE, NULL, NULL },
    { "interval", "interval", KILN_IMPORT_SAME,
      "scheduler/step scheduler/multistep scheduler/exponential scheduler/cosine_restarts", NULL },
    { "monitor", "monitor", KILN_IMPORT_METRIC, "scheduler/plateau", NULL },
    ABSENT("frequency", "1", "kiln's schedules change in each interval"),
    NEEDLESS("strict"),
    NEEDLESS("name"),
    NEEDLESS("reduce_on_plateau"),
    END,
};
const KilnImportClass kiln_import_schedule = {
    "lightning", "lr_scheduler", KILN_IMPORT_SCHEDULER, NULL, NULL, NULL, schedule_options
};

/* ---- Losses ---------------------------------------------------------------------------------- */

#define REDUCTION                                                                                  \
    ABSENT("reduction", "mean", "a kiln loss is a mean"), NEEDLESS("size_average"),                \
        NEEDLESS("reduce")

static const KilnImportOption cross_entropy[] = {
    { "weight", "class_weights", KILN_IMPORT_NOT_NULL, NULL, NULL },
    SAME("label_smoothing"),
    ABSENT("ignore_index", "-100", "pixels without a class have the label -100"),
    REDUCTION,
    END,
};
static const KilnImportOption binary_cross_entropy[] = {
    { "pos_weight", "pos_weight", KILN_IMPORT_NOT_NULL, NULL, NULL },
    ABSENT("weight", "null", "pos_weight counts labels"),
    REDUCTION,
    END,
};
static const KilnImportOption reduction[] = { REDUCTION, END };
static const KilnImportOption huber[] = { SAME("delta"), REDUCTION, END };
static const KilnImportOption smooth_l1[] = {
    { "beta", "delta", KILN_IMPORT_SAME, NULL, "Huber's loss is delta times as large" },
    REDUCTION,
    END,
};
#define LOGITS "kiln's networks give logits: loss/cross_entropy, loss/binary_cross_entropy"

/* ---- Loading --------------------------------------------------------------------------------- */

#define LOADER                                                                                     \
    SAME("batch_size"), SAME("drop_last"),                                                         \
        ABSENT("num_workers", NULL, "is trainer.num_workers: threads, not processes"),             \
        NEEDLESS("pin_memory"), NEEDLESS("pin_memory_device"), NEEDLESS("persistent_workers"),     \
        NEEDLESS("prefetch_factor"), NEEDLESS("timeout"), NEEDLESS("multiprocessing_context"),     \
        NEEDLESS("worker_init_fn"), NEEDLESS("generator"), NEEDLESS("in_order"),                   \
        ABSENT("shuffle", "true", "training shuffles, evaluation does not: datamodule.sampler")

static const KilnImportOption loader[] = {
    { "dataset", NULL, KILN_IMPORT_INSIDE, NULL, NULL },
    LOADER,
    ABSENT("sampler", "null", "datamodule.sampler: shuffle, weighted, balanced, subset"),
    ABSENT("batch_sampler", "null", "datamodule.buckets, of texts"),
    ABSENT("collate_fn", "null", "features of varying length are padded"),
    END,
};
static const KilnImportOption own_data[] = { LOADER, END };
const KilnImportClass kiln_import_own_data = { "",   "a datamodule", KILN_IMPORT_DATA, NULL,
                                               NULL, NULL,           own_data };
static const KilnImportOption own_task[] = {
    ABSENT("lr", NULL, "is optimizer.lr"),
    ABSENT("learning_rate", NULL, "is optimizer.lr"),
    ABSENT("weight_decay", NULL, "is optimizer.weight_decay"),
    ABSENT("batch_size", NULL, "is datamodule.batch_size"),
    NEEDLESS("compile"),
    END,
};
const KilnImportClass kiln_import_own_task = {
    "", "a LightningModule", KILN_IMPORT_TASK, NULL, NULL, NULL, own_task
};

/* ---- Optuna ---------------------------------------------------------------------------------- */

static const KilnImportOption optuna[] = {
    SAME("n_trials"),
    { "direction", "mode", KILN_IMPORT_CHOICE, "minimize=min maximize=max", NULL },
    { "params", "params", KILN_IMPORT_PARAMS, NULL, NULL },
    { "search_space", "params", KILN_IMPORT_PARAMS, NULL, NULL },
    { "sampler", NULL, KILN_IMPORT_INSIDE, NULL, NULL },
    ABSENT("n_jobs", "1", "is kiln.launcher.n_jobs"),
    ABSENT("storage", "null",
           "a sweep's folder has its journal; kiln.sweep.optuna=true writes it "
           "for Optuna, too"),
    NEEDLESS("study_name"),
    ABSENT("max_failure_rate", "0.0", "a failed job does not end a sweep"),
    ABSENT("custom_search_space", "null", "write the space in params"),
    END,
};
static const KilnImportOption sampler[] = {
    { "seed", "seed", KILN_IMPORT_NOT_NULL, NULL, NULL },
    { "n_startup_trials", "startup_trials", KILN_IMPORT_SAME, NULL, NULL },
    { "n_ei_candidates", "candidates", KILN_IMPORT_SAME, NULL, NULL },
    ABSENT("multivariate", "false true", NULL),
    ABSENT("group", "false true", NULL),
    ABSENT("constant_liar", "false true", NULL),
    END,
};
static const KilnImportOption seed[] = { { "seed", "seed", KILN_IMPORT_NOT_NULL, NULL, NULL },
                                         END };

#define OPTIMIZER(name, component, options)                                                        \
    {                                                                                              \
        "torch", name, KILN_IMPORT_OPTIMIZER, "optimizer/" component, NULL, NULL, options          \
    }
#define NO_OPTIMIZER(name)                                                                         \
    NONE("torch", name, KILN_IMPORT_OPTIMIZER,                                                     \
         "the nearest is optimizer/adamw; another optimizer is a plugin")
#define SCHEDULER(library, name, component, note, options)                                         \
    {                                                                                              \
        library, name, KILN_IMPORT_SCHEDULER, "scheduler/" component, NULL, note, options          \
    }
#define LOSS(name, component, note, options)                                                       \
    {                                                                                              \
        "torch", name, KILN_IMPORT_LOSS, "loss/" component, NULL, note, options                    \
    }
#define SAMPLER(name, component, options)                                                          \
    {                                                                                              \
        "optuna", name, KILN_IMPORT_SAMPLER, "sweeper/" component, NULL, NULL, options             \
    }

const KilnImportClass kiln_import_torch[] = {
    OPTIMIZER("SGD", "sgd", sgd),
    OPTIMIZER("Adam", "adam", adam),
    OPTIMIZER("AdamW", "adamw", adam),
    OPTIMIZER("RMSprop", "rmsprop", rmsprop),
    OPTIMIZER("Adagrad", "adagrad", adagrad),
    { "torch", "SparseAdam", KILN_IMPORT_OPTIMIZER, "optimizer/adam", "sparse: true", NULL,
      sparse_adam },
    NO_OPTIMIZER("ASGD"),
    NO_OPTIMIZER("Adadelta"),
    NO_OPTIMIZER("Adafactor"),
    NO_OPTIMIZER("Adamax"),
    NO_OPTIMIZER("LBFGS"),
    NO_OPTIMIZER("Muon"),
    NO_OPTIMIZER("NAdam"),
    NO_OPTIMIZER("RAdam"),
    NO_OPTIMIZER("Rprop"),
    { "lion_pytorch", "Lion", KILN_IMPORT_OPTIMIZER, "optimizer/lion", NULL, NULL, lion },
    { "timm", "Lion", KILN_IMPORT_OPTIMIZER, "optimizer/lion", NULL, NULL, lion },
    { "timm", "Lamb", KILN_IMPORT_OPTIMIZER, "optimizer/lamb", NULL, NULL, lamb },
    { "timm", "Adan", KILN_IMPORT_OPTIMIZER, "optimizer/adan", NULL, NULL, adan },
    SCHEDULER("torch", "StepLR", "step", NULL, step),
    SCHEDULER("torch", "MultiStepLR", "multistep", NULL, multistep),
    SCHEDULER("torch", "ExponentialLR", "exponential", NULL, exponential),
    SCHEDULER("torch", "CosineAnnealingLR", "cosine", NULL, cosine),
    SCHEDULER("torch", "CosineAnnealingWarmRestarts", "cosine_restarts", NULL, restarts),
    SCHEDULER("torch", "PolynomialLR", "polynomial", NULL, polynomial),
    SCHEDULER("torch", "OneCycleLR", "one_cycle", NULL, one_cycle),
    SCHEDULER("torch", "ReduceLROnPlateau", "plateau", NULL, plateau),
    SCHEDULER("transformers", "get_constant_schedule", "constant", NULL, warmup),
    SCHEDULER("transformers", "get_constant_schedule_with_warmup", "constant", NULL, warmup),
    SCHEDULER("transformers", "get_linear_schedule_with_warmup", "linear", NULL, warmup),
    SCHEDULER("transformers", "get_cosine_schedule_with_warmup", "cosine", NULL, warmup_cosine),
    SCHEDULER("transformers", "get_polynomial_decay_schedule_with_warmup", "polynomial", NULL,
              warmup_polynomial),
    SCHEDULER("transformers", "get_inverse_sqrt_schedule", "inverse_sqrt", NULL, inverse_sqrt),
    NONE("torch", "LinearLR", KILN_IMPORT_SCHEDULER, WARMUP "; a fall to a fraction is linear"),
    NONE("torch", "ConstantLR", KILN_IMPORT_SCHEDULER, WARMUP),
    NONE("torch", "SequentialLR", KILN_IMPORT_SCHEDULER, WARMUP),
    NONE("torch", "ChainedScheduler", KILN_IMPORT_SCHEDULER, WARMUP),
    NONE("torch", "LambdaLR", KILN_IMPORT_SCHEDULER, "a schedule of your own is a plugin"),
    NONE("torch", "MultiplicativeLR", KILN_IMPORT_SCHEDULER, "a schedule of your own is a plugin"),
    NONE("torch", "CyclicLR", KILN_IMPORT_SCHEDULER,
         "one cycle is scheduler/one_cycle; restarts are scheduler/cosine_restarts"),
    LOSS("CrossEntropyLoss", "cross_entropy", NULL, cross_entropy),
    LOSS("BCEWithLogitsLoss", "binary_cross_entropy", NULL, binary_cross_entropy),
    LOSS("MSELoss", "mse", NULL, reduction),
    LOSS("L1Loss", "mae", NULL, reduction),
    LOSS("HuberLoss", "huber", NULL, huber),
    LOSS("SmoothL1Loss", "huber", NULL, smooth_l1),
    NONE("torch", "NLLLoss", KILN_IMPORT_LOSS, LOGITS),
    NONE("torch", "BCELoss", KILN_IMPORT_LOSS, LOGITS),
    { "torch", "DataLoader", KILN_IMPORT_DATA, NULL, NULL,
      "a kiln datamodule loads all splits itself", loader },
    { "hydra_plugins", "OptunaSweeper", KILN_IMPORT_SWEEPER, "sweeper/tpe", NULL, NULL, optuna },
    SAMPLER("TPESampler", "tpe", sampler),
    SAMPLER("RandomSampler", "random", seed),
    SAMPLER("CmaEsSampler", "cmaes", seed),
    SAMPLER("GPSampler", "gp", seed),
    SAMPLER("NSGAIISampler", "nsga2", seed),
    SAMPLER("QMCSampler", "halton", seed),
    { .name = NULL },
};

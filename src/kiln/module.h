/* Modules (Lightning's LightningModule), optimizers and schedulers: what each implements, and the
 * functions that it may call. */
#ifndef KILN_MODULE_H
#define KILN_MODULE_H

#include "kiln/model.h"
#include "kiln/state.h"

/* The position in training. */
typedef struct KilnProgress {
    int64_t step;            /* optimizer steps done */
    int64_t epoch;           /* epochs done */
    int64_t steps_per_epoch; /* of the first epoch, if a callback changes the accumulation */
    int64_t total_steps;     /* planned, from max_epochs and max_steps; below 1: no end */
    int64_t total_epochs;
} KilnProgress;

/* ---- Steps ---------------------------------------------------------------- */

KILN_API KilnGraph *kiln_step_graph(const KilnStep *step);
/* Whether this is a training step: dropout and batch statistics are on. */
KILN_API bool kiln_step_training(const KilnStep *step);
/* Where a training step is in the run; NULL: this step does not train. A number that depends on it
 * (an annealed weight) is the same after a resume; kiln_graph_scalar makes it data. All batches of
 * an optimizer step have the same position. Borrowed until the next step. */
KILN_API const KilnProgress *kiln_step_progress(KilnStep *step);
/* Samples in this batch. */
KILN_API int64_t kiln_step_batch_size(const KilnStep *step);
/* The batch's feature of that name, [batch, ...]. With batch transforms that mix labels, "label" is
 * f32 [batch, classes] in training. If there is no such feature, a poisoned tensor whose error
 * lists the features; likewise if this set of samples lacks it, or it is a text. */
KILN_API KilnTensor *kiln_step_input(KilnStep *step, const char *name);
/* Whether this batch has the feature of that name: the data may lack it altogether, or in this set
 * of samples (labels of a prediction's input). */
KILN_API bool kiln_step_has(const KilnStep *step, const char *name);
/* How many training samples have each class of the data, [n_classes], and how many there are; the
 * same while a checkpoint of the run is evaluated. Borrowed until the run ends. NULL, after which
 * the step fails: they are not known. */
KILN_API const int64_t *kiln_step_class_counts(KilnStep *step, int64_t *ret_samples);
/* i32 [batch]: the length of each sample's feature `name`, which varies. If there is no such
 * feature, or it does not vary, a poisoned tensor. */
KILN_API KilnTensor *kiln_step_lengths(KilnStep *step, const char *name);
/* i32 [2], different in every step: the key for kiln_dropout. */
KILN_API KilnTensor *kiln_step_dropout_key(KilnStep *step);
/* The next number for kiln_dropout's `stream` in this step. */
KILN_API int64_t kiln_step_stream(KilnStep *step);

/* A step of generating continues earlier ones: its first row stands at a position of its own in
 * each sample, and layers that look back keep their rows in caches. In all other steps rows begin
 * at 0, and a cache is what it is given, so a model has one forward for both. */

/* i32 [batch]: the position of each sample's first row; NULL: the step continues no other. */
KILN_API KilnTensor *kiln_step_position(KilnStep *step);
/* i32 [batch, rows]: the positions of `rows` rows. */
KILN_API KilnTensor *kiln_step_places(KilnStep *step, int64_t rows);
/* The rows of earlier steps along `axis`, with those of x at their positions: more rows than are
 * filled, so attention needs kiln_cache_mask. In bf16 precisions they are bf16, as attention reads
 * them. x itself in a step that continues no other. Each step must ask for the same caches in the
 * same order. */
KILN_API KilnTensor *kiln_step_cache(KilnStep *step, KilnTensor *x, int axis);

/* How to log a value. 0 is Lightning's default: on_step in training, on_epoch in validation and
 * test. A value with both flags is logged as NAME_step and NAME_epoch. */
typedef enum KilnLogFlags {
    KILN_LOG_STEP = 1,     /* each step's value */
    KILN_LOG_EPOCH = 2,    /* one value per epoch: the mean, weighted by batch size */
    KILN_LOG_PROG_BAR = 4, /* show in the progress bar */
    /* A measurement (time, rate, memory) that differs between runs: excluded from checkpoints and
     * from everything that a repeated or resumed run must reproduce. */
    KILN_LOG_MEASURED = 8,
    /* With KILN_LOG_EPOCH: the minimum, maximum or sum instead of the mean (reduce_fx; at most one)
     */
    KILN_LOG_MIN = 16,
    KILN_LOG_MAX = 32,
    KILN_LOG_SUM = 64,
    KILN_LOG_NO_LOGGER = 128, /* only for callbacks and the progress bar (logger=False) */
    /* Which direction is better; for a loss, LOWER. With neither flag the value has no best, and
     * whatever monitors it needs mode=min or mode=max. */
    KILN_LOG_HIGHER_IS_BETTER = 256,
    KILN_LOG_LOWER_IS_BETTER = 512,
    KILN_LOG_CELL = 1024,  /* one of many values, such as a matrix's: for loggers, not the screen */
    KILN_LOG_FORKED = 2048 /* in KilnMetric only: logged with STEP and EPOCH; the name ends in _step
                            * or _epoch */
} KilnLogFlags;

/* Log a scalar tensor under `name` ("train/loss"); its value is read after the step ran. `name` is
 * copied. */
KILN_API void kiln_step_log(KilnStep *step, const char *name, KilnTensor *value, unsigned flags);
/* Make a tensor an output of the step, under `name` ("probabilities"); f32 [batch, ...]. */
KILN_API void kiln_step_output(KilnStep *step, const char *name, KilnTensor *value);

/* ---- Modules ---------------------------------------------------------------- */

#define KILN_MAX_OPTIMIZERS 4

/* One optimizer of a module. The instances are the module's children; texts outlive the module. */
typedef struct KilnOptimizerUse {
    const char *name; /* "generator", for checkpoints and metrics; NULL if it is the only one */
    KilnInstance *optimizer;
    KilnInstance *scheduler; /* NULL: constant learning rate */
    /* Name patterns of the parameters that it trains, NULL-terminated: * ? [...] as in the shell; *
     * also matches dots. NULL: all. A parameter may have several optimizers, or none. */
    const char *const *params;
} KilnOptimizerUse;

/* The optimizers of a module. More than one needs manual_step. */
typedef struct KilnOptimizers {
    KilnOptimizerUse use[KILN_MAX_OPTIMIZERS];
    size_t n;
} KilnOptimizers;

/* A training batch of a module that makes its own steps (kiln/manual.h). */
typedef struct KilnManual KilnManual;
/* Results beyond a recorded step (kiln/tools/row_results.h). */
typedef struct KilnResults KilnResults;

struct KilnModuleOps {
    /* The models in its options, and the features of the data that it reads itself, by name (a
     * label). Both are checked with the config and again before setup. NULL: none. */
    const KilnModelUse *models;
    size_t n_models;
    const KilnTensorSpec *features;
    size_t n_features;
    /* Declare parameters under `scope` for these data. KILN_E_SHAPE for data that the module cannot
     * use, with what it needs and what it got. */
    KilnStatus (*setup)(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err);
    /* Record forward and loss; returns the scalar loss. NULL skips the batch: no gradients, no
     * update, no optimizer step; logged values count. (Not in the dry build before the run, on a
     * batch without data.) */
    KilnTensor *(*training_step)(KilnInstance *self, KilnStep *step);
    /* Manual optimization, instead of training_step: trains on a batch with any number of steps of
     * any of its optimizers (kiln/manual.h). Each batch counts as one step of the run. Also called
     * once before the run, on a batch without data: it must then make each kind of its steps. */
    KilnStatus (*manual_step)(KilnInstance *self, KilnManual *manual, KilnError *err);
    void (*validation_step)(KilnInstance *self, KilnStep *step);
    /* NULL: validation_step, which then chooses the names that it logs. */
    void (*test_step)(KilnInstance *self, KilnStep *step);
    void (*predict_step)(KilnInstance *self, KilnStep *step);
    /* May be NULL with manual_step: no optimizer. */
    KilnStatus (*configure_optimizers)(KilnInstance *self, KilnOptimizers *ret, KilnError *err);
    /* Optional: the module's hooks (kiln/trainer.h), called after those of plain callbacks. Their
     * state_dict saves the module's state that is not a parameter. */
    const KilnCallbackOps *hooks;
    /* Optional, of language models, for `kiln generate`: from the feature "tokens" [batch, time],
     * record the logits of each next token as the output "logits" [batch, time, tokens]. */
    void (*generate_step)(KilnInstance *self, KilnStep *step);
    /* Optional: called when a step of validation, test or prediction has run, for results that no
     * recorded step can give (kiln/tools/row_results.h): decoded sequences, texts. Predictions may
     * call it in several threads at once. */
    KilnStatus (*finish_step)(KilnInstance *self, KilnResults *results, KilnError *err);
    /* Optional, of modules that read whole sets (kiln_trainer_table) instead of batches, such as
     * boosted trees; with manual_step. Returns the training steps of an epoch, at least 1. Each is
     * a batch of all samples without data, as is the only batch of an evaluated set; predictions
     * have ordinary batches. Options that choose, repeat or change samples are refused. */
    int64_t (*whole_sets)(const KilnInstance *self);
    /* Optional, for `kiln explain-prediction`, of modules that know what each column adds to a
     * score (trees): record the output "contributions" [batch, columns + 1], of several scores
     * [batch, scores, columns + 1]. Columns are those of the data's rows and vectors in the order
     * of the features; the last is the score without any. Of two classes one score is that of the
     * second.
     */
    void (*contributions_step)(KilnInstance *self, KilnStep *step);
};

/* ---- Optimizers ---------------------------------------------------------------- */

/* Options for the parameters whose names match. */
typedef struct KilnParamGroup {
    char **params; /* patterns of full names: * ? [...] as in the shell; * also matches dots */
    size_t params_count;
    double lr_scale;      /* multiplies the learning rate; 0: frozen */
    double *weight_decay; /* NULL: the optimizer's */
} KilnParamGroup;
typedef struct KilnNamedGroup {
    char *key;
    KilnParamGroup value;
} KilnNamedGroup;
KILN_API_TABLE const KilnField kiln_param_group_fields[4];

/* The first members of every optimizer's options struct, and their rows in the options
 * table. `lr_` and `decay_` are the defaults as YAML text. */
#define KILN_OPTIMIZER_OPTIONS                                                                     \
    double lr, weight_decay;                                                                       \
    bool no_decay_norms;                                                                           \
    KilnNamedGroup *groups;                                                                        \
    size_t groups_count;                                                                           \
    double layer_decay
#define KILN_OPTIMIZER_FIELDS(T, lr_, decay_, decay_help)                                          \
    KILN_FIELD_F64(T, lr, lr_, 0.0, 1e6, "learning rate, before the scheduler's factor"),          \
        KILN_FIELD_F64(T, weight_decay, decay_, 0.0, 1e3, decay_help),                             \
        KILN_FIELD_BOOL(T, no_decay_norms, "false",                                                \
                        "no weight decay on parameters with one axis or none: norms, biases"),     \
        KILN_FIELD_STRUCT_MAP(T, groups, KilnNamedGroup, kiln_param_group_fields, "{}",            \
                              "named groups of parameters with their own learning rate or weight " \
                              "decay; a parameter is in the first group that matches"),            \
        KILN_FIELD_F64(T, layer_decay, "1.0", 1e-6, 1.0,                                           \
                       "learning rates fall by this factor with each layer below the last, as in " \
                       "fine-tuning BERT (0.8 to 0.95); 1: all the same")

/* The row of an option `sparse` (bool), for optimizers that can update single rows (KilnFlat in
 * kiln/ops/updates.h) and pass it on as KilnOptimizerCommon.sparse. */
#define KILN_OPTIMIZER_SPARSE_FIELD(T)                                                             \
    KILN_FIELD_BOOL(T, sparse, "false",                                                            \
                    "update only the rows of embeddings that a step used, as PyTorch's "           \
                    "SparseAdam; needs no weight decay on them")

/* These options, for the trainer; borrowed. */
typedef struct KilnOptimizerCommon {
    double lr, weight_decay;
    bool no_decay_norms;
    const KilnNamedGroup *groups;
    size_t groups_count;
    /* Only for some optimizers: momentum, or the first of betas; 0: none. */
    double momentum;
    bool sparse; /* only for some optimizers: `update` is also recorded for rows of embeddings */
    double layer_decay; /* factor on the learning rate per layer below the last; 0 reads as 1 */
} KilnOptimizerCommon;
#define KILN_OPTIMIZER_COMMON(opts, momentum_)                                                     \
    ((KilnOptimizerCommon) { .momentum = (momentum_),                                              \
                             .lr = (opts)->lr,                                                     \
                             .weight_decay = (opts)->weight_decay,                                 \
                             .no_decay_norms = (opts)->no_decay_norms,                             \
                             .groups = (opts)->groups,                                             \
                             .groups_count = (opts)->groups_count,                                 \
                             .layer_decay = (opts)->layer_decay })

#define KILN_MAX_HYPER 8

struct KilnOptimizerOps {
    /* Fill the zeroed *ret with the common options (KILN_OPTIMIZER_COMMON), from which the trainer
     * makes the segments of KilnFlat. */
    void (*common)(const KilnInstance *self, KilnOptimizerCommon *ret);
    /* Names of the state tensors, each as large as the parameters and initially zero. Fills at most
     * KILN_MAX_SLOTS and returns their number. Names are PyTorch's ("exp_avg") and static; NULL is
     * an unused slot before others, which takes no memory. */
    size_t (*slots)(const KilnInstance *self, const char *names[KILN_MAX_SLOTS]);
    /* The numbers of this step (learning rate, bias corrections, ...) for the
     * `hyper` leaf; `step` counts updates from 1. Returns their number. */
    size_t (*hyper)(const KilnInstance *self, double lr, int64_t step, float ret[KILN_MAX_HYPER]);
    /* Record the update of the flat parameters: a function of kiln/ops.h, operations and
     * kiln_store, or an operation of its own (kiln/custom_op.h). Segments with factor 0 must stay
     * as they are. An update that leaves `norms` alone has the trainer measure them. */
    void (*update)(const KilnInstance *self, const KilnFlat *flat);
    /* Each parameter tensor is a segment of its own, for norms per layer. */
    bool per_parameter;
};

/* For the check of optimizers with bias-corrected averages: the option "betas" must have `want`
 * numbers (2 or 3) from 0 to below 1, else KILN_E_RANGE and *ret_option. */
KILN_API KILN_NODISCARD KilnStatus kiln_adam_check_betas(const double *betas, size_t n, size_t want,
                                                         const char **ret_option, KilnError *err);
/* Their `hyper` for update number `step`: the learning rate and the n bias corrections
 * 1 - beta^step. Returns n + 1. */
KILN_API size_t kiln_adam_hyper(const double *betas, size_t n, double lr, int64_t step,
                                float ret[KILN_MAX_HYPER]);

/* ---- Schedulers ----------------------------------------------------------------- */

struct KilnSchedulerOps {
    /* The factor on the base learning rate for the next step: a function of the position and, for
     * schedules with state, of the observed values. */
    double (*factor)(const KilnInstance *self, const KilnProgress *at);
    /* Optional. Refuse a run that does not fit the schedule, such as one shorter than the warmup;
     * `at` is its start. */
    KilnStatus (*check)(const KilnInstance *self, const KilnProgress *at, KilnError *err);
    /* Optional. Whether the factor is constant within an epoch. */
    bool (*by_epoch)(const KilnInstance *self);
    /* A schedule that follows a metric implements all of these: the metric's name with the option
     * `mode` (KilnMode); receive its value at the end of each epoch that logged one, and whether a
     * higher one is better; save and load the state. */
    const char *(*monitor)(const KilnInstance *self, int64_t *ret_mode);
    void (*observe)(KilnInstance *self, double value, bool higher_is_better);
    void (*state_dict)(KilnInstance *self, KilnState *state);
    KilnStatus (*load_state_dict)(KilnInstance *self, const KilnState *state, KilnError *err);
};

/* Warmup options, which most schedules have: the members, and their rows. */
typedef enum KilnWarmupShape { KILN_WARMUP_LINEAR, KILN_WARMUP_COSINE } KilnWarmupShape;
KILN_API_TABLE const KilnChoice kiln_warmup_shapes[3];
#define KILN_WARMUP_OPTIONS                                                                        \
    int64_t warmup_steps, warmup_shape;                                                            \
    double warmup_epochs
#define KILN_WARMUP_FIELDS(T)                                                                      \
    KILN_FIELD_I64(T, warmup_steps, "0", 0, 1000000000,                                            \
                   "steps over which the learning rate rises from 0"),                             \
        KILN_FIELD_F64(T, warmup_epochs, "0.0", 0.0, 1e6, "the same in epochs; set only one"),     \
        KILN_FIELD_ENUM(T, warmup_shape, "linear", kiln_warmup_shapes,                             \
                        "how it rises: linearly, or as half a cosine")

/* The warmup options, for the functions below. */
typedef struct KilnWarmup {
    int64_t steps, shape;
    double epochs;
} KilnWarmup;
#define KILN_WARMUP(opts)                                                                          \
    ((KilnWarmup) { .steps = (opts)->warmup_steps,                                                 \
                    .shape = (opts)->warmup_shape,                                                 \
                    .epochs = (opts)->warmup_epochs })

/* For a component's check: KILN_E_RANGE if both steps and epochs are set. */
KILN_API KILN_NODISCARD KilnStatus kiln_warmup_check(KilnWarmup warmup, const char **ret_option,
                                                     KilnError *err);
/* For a schedule's check: an error if the warmup does not end within the run. */
KILN_API KILN_NODISCARD KilnStatus kiln_warmup_fits(KilnWarmup warmup, const KilnProgress *at,
                                                    KilnError *err);
/* The warmup's length in steps. */
KILN_API double kiln_warmup_steps(KilnWarmup warmup, const KilnProgress *at);
/* The warmup's factor: (step + 1) / length during the warmup, then 1. */
KILN_API double kiln_warmup_factor(KilnWarmup warmup, const KilnProgress *at);
/* The finished share of the run after the warmup, from 0 to 1; 0 during the warmup, and always in a
 * run without an end. */
KILN_API double kiln_warmup_rest(KilnWarmup warmup, const KilnProgress *at);

/* What a schedule counts: epochs or steps, as Lightning's `interval`. */
typedef enum KilnInterval { KILN_INTERVAL_EPOCH, KILN_INTERVAL_STEP } KilnInterval;
KILN_API_TABLE const KilnChoice kiln_intervals[3];
KILN_API int64_t kiln_interval_count(int64_t interval, const KilnProgress *at);

#endif

/* Modules (what a task trains), models (networks), optimizers and schedulers. */
#ifndef KILN_MODULE_H
#define KILN_MODULE_H

#include "kiln/data.h"
#include "kiln/nn.h"
#include "kiln/state.h"

/* ---- Steps ---------------------------------------------------------------- */

/* One training, validation, test or predict step while it is recorded. */
typedef struct KilnStep KilnStep;

KILN_API KilnGraph *kiln_step_graph(const KilnStep *step);
/* True in a training step: dropout and batch statistics are on. */
KILN_API bool kiln_step_training(const KilnStep *step);
/* Samples in this batch. */
KILN_API int64_t kiln_step_batch_size(const KilnStep *step);
/* The batch's feature of that name, [batch, ...]. With batch transforms of soft labels "label"
 * is f32 [batch, classes] in training. A poisoned tensor that says
 * which features exist when there is none. */
KILN_API KilnTensor *kiln_step_input(KilnStep *step, const char *name);
/* i32 [batch]: the length of each sample, in a batch with features that vary. */
KILN_API KilnTensor *kiln_step_lengths(KilnStep *step);
/* i32 [2] that differs in every step: the key for kiln_dropout. */
KILN_API KilnTensor *kiln_step_dropout_key(KilnStep *step);
/* A number for kiln_dropout's `stream`, counted up within the step. */
KILN_API int64_t kiln_step_stream(KilnStep *step);

/* Flags of logging; 0 is Lightning's default for the step: on_step in training,
 * on_epoch in validation and test. With both, the names get _step and _epoch. */
typedef enum KilnLogFlags {
    KILN_LOG_STEP = 1,     /* each step's value */
    KILN_LOG_EPOCH = 2,    /* one value of the epoch: the mean, weighted by batch size, */
    KILN_LOG_PROG_BAR = 4, /* show in the progress bar */
    /* A measurement (a time, a rate, the memory in use), another one in every run: kept out of
     * what must be the same when a run is repeated or resumed, and of checkpoints. */
    KILN_LOG_MEASURED = 8,
    /* or of the epoch's values the least, the largest, the sum (reduce_fx; one at most) */
    KILN_LOG_MIN = 16,
    KILN_LOG_MAX = 32,
    KILN_LOG_SUM = 64,
    KILN_LOG_NO_LOGGER = 128, /* for callbacks and the progress bar alone (logger=False) */
    /* Which way it gets better: of a loss, LOWER. With neither it has no best value, and what
     * monitors it needs mode=min or mode=max. */
    KILN_LOG_HIGHER_IS_BETTER = 256,
    KILN_LOG_LOWER_IS_BETTER = 512,
    KILN_LOG_CELL = 1024,  /* one of many, of a matrix say: for loggers, too many for the screen */
    KILN_LOG_FORKED = 2048 /* in KilnMetric alone: it is logged with STEP and EPOCH, and its name
                            * ends in _step or _epoch */
} KilnLogFlags;

/* Log a scalar tensor under `name` ("train/loss"); its value is read after the
 * step has run. `name` is copied. */
KILN_API void kiln_step_log(KilnStep *step, const char *name, KilnTensor *value, unsigned flags);
/* Hand out a predict step's output under `name` ("probabilities"), f32 [batch, ...]. */
KILN_API void kiln_step_output(KilnStep *step, const char *name, KilnTensor *value);

/* ---- Modules and models ----------------------------------------------------- */

#define KILN_MAX_OPTIMIZERS 4

/* One optimizer; instances are the module's own children, texts outlive the module. */
typedef struct KilnOptimizerUse {
    const char *name; /* "generator", in checkpoints and metrics; NULL where it is the only one */
    KilnInstance *optimizer;
    KilnInstance *scheduler; /* NULL: constant learning rate */
    /* Patterns over the names of the parameters that it trains, NULL-terminated: * ? [...] as in
     * the shell, * also over dots. NULL: all. A parameter may have several optimizers, or none. */
    const char *const *params;
} KilnOptimizerUse;

/* What a module asks to be optimized with. More than one needs manual_step. */
typedef struct KilnOptimizers {
    KilnOptimizerUse use[KILN_MAX_OPTIMIZERS];
    size_t n;
} KilnOptimizers;

/* A training batch in the hands of a module that drives its own steps (manual.h). */
typedef struct KilnManual KilnManual;

struct KilnModuleOps {
    /* Declare parameters below `scope`, for data of this form. Refuses data it
     * can't use (KILN_E_SHAPE), saying what it needs and what there is. */
    KilnStatus (*setup)(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err);
    /* Record forward and loss; returns the scalar loss. NULL leaves the batch out: no gradients,
     * no update, and it counts for no optimizer step; what was logged counts. (Not when it is
     * asked before anything runs, on a batch without bytes.) */
    KilnTensor *(*training_step)(KilnInstance *self, KilnStep *step);
    /* Manual optimization, in the place of training_step: whatever a training batch is good for,
     * in any number of steps of any of its optimizers, or of none (manual.h). Each batch counts
     * as one step of the run. Called once before anything runs, on a batch without bytes, to see
     * what there will be: it makes each of its steps then. */
    KilnStatus (*manual_step)(KilnInstance *self, KilnManual *manual, KilnError *err);
    void (*validation_step)(KilnInstance *self, KilnStep *step);
    void (*test_step)(
        KilnInstance *self,
        KilnStep *step); /* NULL: as validation_step, "test/" names are the module's affair */
    void (*predict_step)(KilnInstance *self, KilnStep *step);
    /* With manual_step alone it may be NULL: no optimizer. */
    KilnStatus (*configure_optimizers)(KilnInstance *self, KilnOptimizers *ret, KilnError *err);
    /* Optional: the module's own hooks (trainer.h), called behind those of plain callbacks.
     * With its state_dict a checkpoint keeps what of the module is no parameter. */
    const KilnCallbackOps *hooks;
};

struct KilnModelOps {
    /* Declare parameters for one sample of shape `in` and `out` outputs (classes). */
    KilnStatus (*setup)(KilnInstance *self, const KilnScope *scope, const KilnShape *in,
                        int64_t out, KilnError *err);
    /* Record the network: f32 [N, in...] -> [N, out], or [N, ..., out] for a module that wants
     * outputs for each part of a sample. */
    KilnTensor *(*forward)(KilnInstance *self, KilnStep *step, KilnTensor *x);
};

/* Calls on a child model, for modules. */
KILN_API KILN_NODISCARD KilnStatus kiln_model_setup(KilnInstance *model, const KilnScope *scope,
                                                    const KilnShape *in, int64_t out,
                                                    KilnError *err);
/* A poisoned tensor that says what is needed when the model returns another shape than it was set
 * up for. */
KILN_API KilnTensor *kiln_model_forward(KilnInstance *model, KilnStep *step, KilnTensor *x);

/* ---- Optimizers ---------------------------------------------------------------- */

/* Parameters, chosen by name, that are trained otherwise than the rest. */
typedef struct KilnParamGroup {
    char **params; /* patterns over full names: * ? [...] as in the shell, * also over dots */
    size_t params_count;
    double lr_scale;      /* multiplies the learning rate; 0: frozen */
    double *weight_decay; /* NULL: the optimizer's */
} KilnParamGroup;
typedef struct KilnNamedGroup {
    char *key;
    KilnParamGroup value;
} KilnNamedGroup;
KILN_API extern const KilnField kiln_param_group_fields[4];

/* What the options of every optimizer begin with: the members, and their rows in
 * the options table. `lr_` and `decay_` are the defaults as YAML text. */
#define KILN_OPTIMIZER_OPTIONS                                                                     \
    double lr, weight_decay;                                                                       \
    bool no_decay_norms;                                                                           \
    KilnNamedGroup *groups;                                                                        \
    size_t groups_count
#define KILN_OPTIMIZER_FIELDS(T, lr_, decay_, decay_help)                                          \
    KILN_FIELD_F64(T, lr, lr_, 0.0, 1e6, "learning rate, before the scheduler's factor"),          \
        KILN_FIELD_F64(T, weight_decay, decay_, 0.0, 1e3, decay_help),                             \
        KILN_FIELD_BOOL(T, no_decay_norms, "false",                                                \
                        "no weight decay on parameters with one axis or none: norms, biases"),     \
        KILN_FIELD_STRUCT_MAP(T, groups, KilnNamedGroup, kiln_param_group_fields, "{}",            \
                              "parameters trained otherwise, by names for the groups; a "          \
                              "parameter is in the first that fits")

/* These options, for the trainer; borrowed. */
typedef struct KilnOptimizerCommon {
    double lr, weight_decay;
    bool no_decay_norms;
    const KilnNamedGroup *groups;
    size_t groups_count;
    /* Not an option of all: share of the last update, or of the gradients' average, that is kept
     * (momentum, the first of betas); 0: none. */
    double momentum;
} KilnOptimizerCommon;
#define KILN_OPTIMIZER_COMMON(opts, momentum_)                                                     \
    ((KilnOptimizerCommon) { .momentum = (momentum_),                                              \
                             .lr = (opts)->lr,                                                     \
                             .weight_decay = (opts)->weight_decay,                                 \
                             .no_decay_norms = (opts)->no_decay_norms,                             \
                             .groups = (opts)->groups,                                             \
                             .groups_count = (opts)->groups_count })

#define KILN_MAX_HYPER 8

struct KilnOptimizerOps {
    /* The options that all optimizers have; the trainer makes runs of them (KilnFlat). */
    KilnOptimizerCommon (*common)(const KilnInstance *self);
    /* Names of the state tensors, each as large as the parameters and zero at
     * the start; fills at most KILN_MAX_SLOTS and returns how many. Names are
     * PyTorch's ("exp_avg") and static; an unused one in front of others is NULL
     * and takes no memory. */
    size_t (*slots)(const KilnInstance *self, const char *names[KILN_MAX_SLOTS]);
    /* The numbers of this step (learning rate, bias corrections, ...) for the
     * `hyper` leaf; `step` counts updates from 1. Returns how many. */
    size_t (*hyper)(const KilnInstance *self, double lr, int64_t step, float ret[KILN_MAX_HYPER]);
    /* Record the update of the flat parameters. */
    void (*update)(const KilnInstance *self, const KilnFlat *flat);
    /* Each parameter tensor is a run of its own: for norms layer by layer. */
    bool per_parameter;
};

/* For optimizers with bias-corrected averages, in their check: the option "betas" is
 * `want` numbers (2 or 3) from 0 to below 1, or KILN_E_RANGE and *ret_option; */
KILN_API KILN_NODISCARD KilnStatus kiln_adam_check_betas(const double *betas, size_t n, size_t want,
                                                         const char **ret_option, KilnError *err);
/* and their `hyper` for update number `step`: learning rate and the n bias
 * corrections 1 - beta^step. Returns n + 1. */
KILN_API size_t kiln_adam_hyper(const double *betas, size_t n, double lr, int64_t step,
                                float ret[KILN_MAX_HYPER]);

/* ---- Schedulers ----------------------------------------------------------------- */

/* Where training is, for a schedule. */
typedef struct KilnProgress {
    int64_t step;            /* optimizer steps done */
    int64_t epoch;           /* epochs done */
    int64_t steps_per_epoch; /* of the first, where a callback changes the accumulation */
    int64_t total_steps;     /* planned; max_epochs and max_steps considered; below 1: no end */
    int64_t total_epochs;
} KilnProgress;

struct KilnSchedulerOps {
    /* Factor on the base learning rate for the next step: a function of where
     * training is and, for schedules with state, of what was observed. */
    double (*factor)(const KilnInstance *self, const KilnProgress *at);
    /* Optional. Refuse a run that the schedule does not fit (`at` its start):
     * a warmup longer than the run, say. */
    KilnStatus (*check)(const KilnInstance *self, const KilnProgress *at, KilnError *err);
    /* Optional. True when the factor is one and the same within an epoch. */
    bool (*by_epoch)(const KilnInstance *self);
    /* Schedules that follow a metric have all of these: its name, and the option `mode`
     * (KilnMode); its value at the end of each epoch that logged one, and whether a higher one is
     * better; what a checkpoint must keep, and its return. */
    const char *(*monitor)(const KilnInstance *self, int64_t *ret_mode);
    void (*observe)(KilnInstance *self, double value, bool higher_is_better);
    void (*state_dict)(KilnInstance *self, KilnState *state);
    KilnStatus (*load_state_dict)(KilnInstance *self, const KilnState *state, KilnError *err);
};

/* Warmup, which most schedules have as options: the members, and their rows. */
typedef enum KilnWarmupShape { KILN_WARMUP_LINEAR, KILN_WARMUP_COSINE } KilnWarmupShape;
KILN_API extern const KilnChoice kiln_warmup_shapes[3];
#define KILN_WARMUP_OPTIONS                                                                        \
    int64_t warmup_steps, warmup_shape;                                                            \
    double warmup_epochs
#define KILN_WARMUP_FIELDS(T)                                                                      \
    KILN_FIELD_I64(T, warmup_steps, "0", 0, 1000000000,                                            \
                   "steps over which the learning rate rises from 0"),                             \
        KILN_FIELD_F64(T, warmup_epochs, "0.0", 0.0, 1e6, "the same in epochs; give one of both"), \
        KILN_FIELD_ENUM(T, warmup_shape, "linear", kiln_warmup_shapes,                             \
                        "how it rises: in a straight line, or as half a cosine")

/* These options, for the functions below. */
typedef struct KilnWarmup {
    int64_t steps, shape;
    double epochs;
} KilnWarmup;
#define KILN_WARMUP(opts)                                                                          \
    ((KilnWarmup) { .steps = (opts)->warmup_steps,                                                 \
                    .shape = (opts)->warmup_shape,                                                 \
                    .epochs = (opts)->warmup_epochs })

/* For a component's check: at most one of steps and epochs, or KILN_E_RANGE. */
KILN_API KILN_NODISCARD KilnStatus kiln_warmup_check(KilnWarmup warmup, const char **ret_option,
                                                     KilnError *err);
/* For a schedule's check: the warmup ends within the run. */
KILN_API KILN_NODISCARD KilnStatus kiln_warmup_fits(KilnWarmup warmup, const KilnProgress *at,
                                                    KilnError *err);
/* Its length in steps; */
KILN_API double kiln_warmup_steps(KilnWarmup warmup, const KilnProgress *at);
/* the factor: (step + 1) / length in the first steps, then 1; */
KILN_API double kiln_warmup_factor(KilnWarmup warmup, const KilnProgress *at);
/* and how much of the rest of the run is over, from 0 to 1; 0 in the warmup, and
 * always in a run without an end. */
KILN_API double kiln_warmup_rest(KilnWarmup warmup, const KilnProgress *at);

/* What a schedule counts: torch.optim.lr_scheduler's are stepped once an epoch, or
 * once a step, as Lightning's `interval` says. */
typedef enum KilnInterval { KILN_INTERVAL_EPOCH, KILN_INTERVAL_STEP } KilnInterval;
KILN_API extern const KilnChoice kiln_intervals[3];
KILN_API int64_t kiln_interval_count(int64_t interval, const KilnProgress *at);

#endif

/* Modules (what a task trains), models (networks), optimizers and schedulers. */
#ifndef KILN_MODULE_H
#define KILN_MODULE_H

#include "kiln/data.h"
#include "kiln/nn.h"

/* ---- Steps ---------------------------------------------------------------- */

/* One training, validation, test or predict step while it is recorded. */
typedef struct KilnStep KilnStep;

KILN_API KilnGraph *kiln_step_graph(const KilnStep *step);
/* True in a training step: dropout and batch statistics are on. */
KILN_API bool kiln_step_training(const KilnStep *step);
/* Samples in this batch. */
KILN_API int64_t kiln_step_batch_size(const KilnStep *step);
/* The batch's feature of that name, [batch, ...]; a poisoned tensor that says
 * which features exist when there is none. */
KILN_API KilnTensor *kiln_step_input(KilnStep *step, const char *name);
/* i32 [2] that differs in every step: the key for kiln_dropout. */
KILN_API KilnTensor *kiln_step_dropout_key(KilnStep *step);
/* A number for kiln_dropout's `stream`, counted up within the step. */
KILN_API int64_t kiln_step_stream(KilnStep *step);

/* Flags of logging; 0 is Lightning's default for the step: on_step in training,
 * on_epoch in validation and test. With both, the names get _step and _epoch. */
typedef enum KilnLogFlags {
    KILN_LOG_STEP = 1,    /* each step's value */
    KILN_LOG_EPOCH = 2,   /* mean over the epoch, weighted by batch size */
    KILN_LOG_PROG_BAR = 4 /* show in the progress bar */
} KilnLogFlags;

/* Log a scalar tensor under `name` ("train/loss"); its value is read after the
 * step has run. `name` is copied. */
KILN_API void kiln_step_log(KilnStep *step, const char *name, KilnTensor *value, unsigned flags);
/* Hand out a predict step's output under `name` ("probabilities"), f32 [batch, ...]. */
KILN_API void kiln_step_output(KilnStep *step, const char *name, KilnTensor *value);

/* ---- Modules and models ----------------------------------------------------- */

/* What a module asks to be optimized with; instances are its own children. */
typedef struct KilnOptimizers {
    KilnInstance *optimizer;
    KilnInstance *scheduler; /* NULL: constant learning rate */
} KilnOptimizers;

struct KilnModuleOps {
    /* Declare parameters below `scope`, for data of this form. Refuses data it
     * can't use (KILN_E_SHAPE), saying what it needs and what there is. */
    KilnStatus (*setup)(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err);
    /* Record forward and loss; returns the scalar loss. */
    KilnTensor *(*training_step)(KilnInstance *self, KilnStep *step);
    void (*validation_step)(KilnInstance *self, KilnStep *step);
    void (*test_step)(
        KilnInstance *self,
        KilnStep *step); /* NULL: as validation_step, "test/" names are the module's affair */
    void (*predict_step)(KilnInstance *self, KilnStep *step);
    KilnStatus (*configure_optimizers)(KilnInstance *self, KilnOptimizers *ret, KilnError *err);
};

struct KilnModelOps {
    /* Declare parameters for one sample of shape `in` and `out` outputs (classes). */
    KilnStatus (*setup)(KilnInstance *self, const KilnScope *scope, const KilnShape *in,
                        int64_t out, KilnError *err);
    /* Record the network: [N, in...] -> [N, out]. */
    KilnTensor *(*forward)(KilnInstance *self, KilnStep *step, KilnTensor *x);
};

/* Calls on a child model, for modules. */
KILN_API KILN_NODISCARD KilnStatus kiln_model_setup(KilnInstance *model, const KilnScope *scope,
                                                    const KilnShape *in, int64_t out,
                                                    KilnError *err);
KILN_API KilnTensor *kiln_model_forward(KilnInstance *model, KilnStep *step, KilnTensor *x);

/* ---- Optimizers and schedulers ---------------------------------------------- */

#define KILN_MAX_HYPER 8

struct KilnOptimizerOps {
    /* Base learning rate, which a scheduler multiplies. */
    double (*learning_rate)(const KilnInstance *self);
    /* Names of the state tensors, each as large as the parameters and zero at
     * the start; fills at most KILN_MAX_SLOTS and returns how many. Names are
     * PyTorch's ("exp_avg") and static. */
    size_t (*slots)(const KilnInstance *self, const char *names[KILN_MAX_SLOTS]);
    /* The numbers of this step (learning rate, bias corrections, ...) for the
     * `hyper` leaf; `step` counts updates from 1. Returns how many. */
    size_t (*hyper)(const KilnInstance *self, double lr, int64_t step, float ret[KILN_MAX_HYPER]);
    /* Record the update of the flat parameters. */
    void (*update)(const KilnInstance *self, KilnTensor *param, KilnTensor *grad,
                   KilnTensor *const slots[KILN_MAX_SLOTS], KilnTensor *hyper);
};

/* For optimizers over kiln_adam_update, in their check: the option "betas" is two
 * numbers from 0 to below 1, or KILN_E_RANGE and *ret_option; */
KILN_API KILN_NODISCARD KilnStatus kiln_adam_check_betas(const double *betas, size_t n,
                                                         const char **ret_option, KilnError *err);
/* and their `hyper` for update number `step` (learning rate and both bias
 * corrections), from the two betas. */
KILN_API size_t kiln_adam_hyper(const double *betas, double lr, int64_t step,
                                float ret[KILN_MAX_HYPER]);

/* Where training is, for a schedule. */
typedef struct KilnProgress {
    int64_t step;  /* optimizer steps done */
    int64_t epoch; /* epochs done */
    int64_t steps_per_epoch;
    int64_t total_steps; /* planned; max_epochs and max_steps considered */
    int64_t total_epochs;
} KilnProgress;

struct KilnSchedulerOps {
    /* Factor on the base learning rate for the next step: a pure function, so
     * that resume needs no state. */
    double (*factor)(const KilnInstance *self, const KilnProgress *at);
};

#endif

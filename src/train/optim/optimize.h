/* From gradients to new weights: clipping, learning rate schedules, and the optimizers with their
 * state. */
#ifndef KILN_TRAIN_OPTIM_OPTIMIZE_H
#define KILN_TRAIN_OPTIM_OPTIMIZE_H

#include "kiln/trainer.h"
#include "nn/parameter_groups.h"

/* One optimizer of the run, with its state. */
typedef struct KilnOptimizerState {
    KilnOptimizerUse use;
    const char *slot_names[KILN_MAX_SLOTS]; /* NULL: a slot that this optimizer does not use */
    /* Each as large as all parameters, and of their type. Pages of parameters that belong to
     * another optimizer are never written, and so take no memory. */
    void *slots[KILN_MAX_SLOTS];
    size_t n_slots;
    float hyper[KILN_MAX_HYPER];
    KilnSegments segments;
    float *scales;        /* rates of the segments before callbacks scale them (learning_rates.c);
                           * NULL: none does */
    int64_t updates;      /* made since the start */
    double rate;          /* of the last one */
    bool monitors_higher; /* larger values of its scheduler's metric are better */
} KilnOptimizerState;

/* How gradients are limited; limit 0: not at all. */
typedef struct KilnClipping {
    double limit;
    bool by_norm;
} KilnClipping;

/* A learning rate that a callback set (kiln_trainer_set_learning_rate). */
typedef struct KilnRateOverride {
    bool active; /* it replaces the schedules' */
    double rate;
} KilnRateOverride;

/* Set up the optimizers and their parameter segments; check schedules against the run's length. */
KILN_NODISCARD KilnStatus kiln_optimize_set_up(KilnTrainer *trainer, KilnError *err);
/* Allocate their state, all zero. */
KILN_NODISCARD KilnStatus kiln_optimize_allocate(KilnTrainer *trainer, KilnError *err);
void kiln_optimize_release(KilnTrainer *trainer);
/* Whether the optimizer trains the parameter. */
bool kiln_optimizer_has(const KilnOptimizerState *optimizer, const KilnParam *param);
/* State tensors that all optimizers hold of a parameter. */
int64_t kiln_optimize_slots(const KilnTrainer *trainer, const KilnParam *param);
/* State `slot`, which is in use, of a parameter that the optimizer trains. */
void *kiln_optimizer_slot(const KilnOptimizerState *optimizer, size_t slot, const KilnParam *param);
/* Its name in a checkpoint: "optimizer.exp_avg.fc.weight", with the optimizer's name before the
 * slot's if it has one. Returns buf. */
const char *kiln_optimizer_slot_name(const KilnOptimizerState *optimizer, size_t slot,
                                     const KilnParam *param, char *buf, size_t size);
/* The learning rate of its next step by the schedule. */
double kiln_optimize_rate(const KilnTrainer *trainer, const KilnOptimizerState *optimizer);
/* Check that the metrics which schedulers monitor are logged. */
KILN_NODISCARD KilnStatus kiln_optimize_check(KilnTrainer *trainer, KilnError *err);
/* Record clipping and the update by optimizer at->optimizer, after the gradients. */
void kiln_optimize_record(KilnTrainer *trainer, const KilnRecording *at, KilnClipping clip);
/* Pass schedulers the metrics that they monitor, if this step logged them. */
void kiln_optimize_observe(KilnTrainer *trainer);

#endif

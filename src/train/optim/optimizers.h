/* The optimizers of a run, with their state. */
#ifndef KILN_TRAIN_OPTIM_OPTIMIZERS_H
#define KILN_TRAIN_OPTIM_OPTIMIZERS_H

#include "graph/buffer.h"
#include "kiln/trainer.h"
#include "nn/parameter_groups.h"

/* One optimizer of the run, with its state. */
typedef struct KilnOptimizerState {
    KilnOptimizerUse use;
    KilnOptimizerCommon common;
    const char *slot_names[KILN_MAX_SLOTS]; /* NULL: a slot that this optimizer does not use */
    /* Each as large as all parameters, and of their type. Pages of parameters that belong to
     * another optimizer are never written, and so take no memory. */
    KilnBuffer *slots[KILN_MAX_SLOTS];
    size_t n_slots;
    float hyper[KILN_MAX_HYPER];
    KilnSegments segments;
    float *scales;        /* rates of the segments before callbacks scale them (lr_scales.c);
                           * NULL: none does */
    float *flat_rates;    /* of the flat update (sparse_updates.c); NULL: those of the segments */
    int64_t updates;      /* made since the start */
    double rate;          /* of the last one */
    bool monitors_higher; /* larger values of its scheduler's metric are better */
} KilnOptimizerState;

/* A learning rate that a callback set (kiln_trainer_set_learning_rate). */
typedef struct KilnRateOverride {
    bool active; /* it replaces the schedules' */
    double rate;
} KilnRateOverride;

/* Set up the optimizers and their parameter segments; check schedules against the run's length. */
KILN_NODISCARD KilnStatus kiln_optimizers_set_up(KilnTrainer *trainer, KilnError *err);
/* Allocate their state, all zero. */
KILN_NODISCARD KilnStatus kiln_optimizers_allocate(KilnTrainer *trainer, KilnError *err);
void kiln_optimizers_release(KilnTrainer *trainer);
/* Whether the optimizer trains the parameter. */
bool kiln_optimizer_has(const KilnOptimizerState *optimizer, const KilnParam *param);
/* State tensors that all optimizers hold of a parameter. */
int64_t kiln_optimizers_slots(const KilnTrainer *trainer, const KilnParam *param);
/* State `slot`, which is in use, of a parameter that the optimizer trains. */
KilnLocation kiln_optimizer_slot(const KilnOptimizerState *optimizer, size_t slot,
                                 const KilnParam *param);
/* Its name in a checkpoint: "optimizer.exp_avg.fc.weight", with the optimizer's name before the
 * slot's if it has one. Returns buf. */
const char *kiln_optimizer_slot_name(const KilnOptimizerState *optimizer, size_t slot,
                                     const KilnParam *param, char *buf, size_t size);

#endif

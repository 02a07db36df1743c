/* What each of a predictor's concurrent calls has for itself: a graph with its plans and
 * activations, and the step that is recorded in it. Made on demand, and used again. */
#ifndef KILN_TRAIN_PREDICT_PREDICT_SLOTS_H
#define KILN_TRAIN_PREDICT_PREDICT_SLOTS_H

#include <pthread.h>

#include "train/step/module_step.h"

typedef struct KilnPredictSlot {
    KilnStep *step; /* of the trainer, or `own` */
    KilnStep own;
    KilnBackend *backend; /* NULL: the trainer's, with its graph */
    KilnGraph *graph;
    struct KilnPredictSlot *next; /* in the list of idle slots */
} KilnPredictSlot;

typedef struct KilnPredictSlots {
    const KilnTrainer *trainer;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t given_back;
    KilnPredictSlot **all;
    int n, most;
    KilnPredictSlot *idle; /* the one used last comes first: its memory is warm */
} KilnPredictSlots;

/* Make the first slot, with the trainer's own graph. Each slot gets an equal share of
 * trainer.plan_cache. */
KILN_NODISCARD KilnStatus kiln_predict_slots_init(KilnPredictSlots *slots, KilnTrainer *trainer,
                                                  int most, KilnError *err);
/* Accepts a zeroed struct. No slot may be in use. */
void kiln_predict_slots_release(KilnPredictSlots *slots);
/* Take an idle slot; make one if there is none; wait for one if there are `most`. */
KILN_NODISCARD KilnStatus kiln_predict_slot_take(KilnPredictSlots *slots, KilnPredictSlot **ret,
                                                 KilnError *err);
void kiln_predict_slot_give_back(KilnPredictSlots *slots, KilnPredictSlot *slot);

#endif

/* The phase of a run: which loop runs now, and so which metrics a step logs. */
#ifndef KILN_TRAIN_LOOP_PHASE_H
#define KILN_TRAIN_LOOP_PHASE_H

typedef enum KilnPhase {
    KILN_PHASE_FIT,
    KILN_PHASE_VALIDATE,
    KILN_PHASE_TEST,
    KILN_PHASE_SANITY,
    KILN_PHASE_PREDICT
} KilnPhase;

#endif

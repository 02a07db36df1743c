/* The state of a prediction's input; kiln_run_predict is declared in kiln/embed/run.h. */
#ifndef KILN_TRAIN_RUN_RUN_PREDICT_H
#define KILN_TRAIN_RUN_RUN_PREDICT_H

#include "kiln/trainer.h"

typedef struct KilnPredictInput {
    KilnUnreadSample *unread; /* samples that could not be read since the last batch ended */
    size_t n_unread, unread_capacity;
} KilnPredictInput;

#endif

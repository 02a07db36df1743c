/* The host's side of KilnPoll. */
#ifndef KILN_TRAIN_RUN_PREPARATION_H
#define KILN_TRAIN_RUN_PREPARATION_H

#include "kiln/trainer.h"

/* What is prepared now. */
typedef struct KilnPreparation {
    const char *what; /* NULL: nothing */
    double since;     /* when it began, */
    double shown;     /* and was shown last; 0: not yet */
} KilnPreparation;

/* KilnPoll.poll; `ctx` is the trainer. */
bool kiln_preparation_poll(void *ctx, const char *what, int64_t done, int64_t total);
/* It is over: nothing of it stays on the screen. */
void kiln_preparation_end(KilnTrainer *trainer);

#endif

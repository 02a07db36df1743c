/* Shows the progress of long preparations (KilnPoll), and passes on a request to stop. */
#ifndef KILN_TRAIN_RUN_PREPARATION_H
#define KILN_TRAIN_RUN_PREPARATION_H

#include "kiln/trainer.h"

/* The preparation that is running. */
typedef struct KilnPreparation {
    const char *what; /* NULL: none */
    double since;     /* when it began */
    double shown;     /* when it was shown last; 0: not yet */
} KilnPreparation;

/* KilnPoll.poll; `ctx` is the trainer. */
bool kiln_preparation_poll(void *ctx, const char *what, int64_t done, int64_t total);
/* End the preparation and clear its status line. */
void kiln_preparation_end(KilnTrainer *trainer);

#endif

/* The thread that reports a request to stop while a batch still runs. */
#ifndef KILN_TRAIN_LOOP_STOP_MONITOR_H
#define KILN_TRAIN_LOOP_STOP_MONITOR_H

#include <pthread.h>

#include "kiln/trainer.h"

typedef struct KilnStopMonitor {
    pthread_t thread;
    pthread_mutex_t lock; /* of `closing` */
    pthread_cond_t wake;
    bool running, closing;
    bool saves; /* the run ends with a checkpoint */
} KilnStopMonitor;

/* From now on, report a request to stop (KilnRunEnv.stop) as soon as it is made, on the screen
 * and in train.log. `saves`: the run then ends with a checkpoint. */
void kiln_stop_monitor_begin(KilnTrainer *trainer, bool saves);
/* Does nothing when it was not begun. */
void kiln_stop_monitor_end(KilnTrainer *trainer);

#endif

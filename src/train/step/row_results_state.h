/* The module's finish_step: its further steps, and the results that it gives rows. */
#ifndef KILN_TRAIN_STEP_ROW_RESULTS_STATE_H
#define KILN_TRAIN_STEP_ROW_RESULTS_STATE_H

#include <pthread.h>

#include "kiln/tools/row_results.h"
#include "train/step/module_step.h"

enum { KILN_RESULT_NAMES = 8 };

/* A result of the rows of a batch. */
typedef struct KilnRowResult {
    const char *name;
    char **values; /* [size] JSON; NULL: the row has none */
} KilnRowResult;

struct KilnResults {
    const KilnTrainer *trainer;
    KilnStep *step;             /* that has run */
    pthread_mutex_t *recording; /* held while a step is recorded; NULL: there is one thread */
    KilnGraph *graph;           /* of further steps */
    KilnStep own;
    KilnRowResult list[KILN_RESULT_NAMES];
    size_t n;
    int64_t size; /* rows of these */
};

/* Call finish_step of the trainer's module, if it has one, after `step` has run. The results are in
 * step->results until the next call. */
KILN_NODISCARD KilnStatus kiln_step_finish(const KilnTrainer *trainer, KilnStep *step,
                                           pthread_mutex_t *recording, KilnError *err);
/* The results of the step's rows; returns their number. */
size_t kiln_step_results(const KilnStep *step, const KilnRowResult **ret);
/* kiln_results_begin over another batch. */
KilnStep *kiln_results_begin_batch(KilnResults *results, const KilnBatch *batch);
/* Free what kiln_step_finish made, before the backend is. */
void kiln_step_release_results(KilnStep *step);

#endif

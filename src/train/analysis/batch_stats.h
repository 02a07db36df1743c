/* What callbacks that watch a run are told of its training batches. */
#ifndef KILN_TRAIN_ANALYSIS_BATCH_STATS_H
#define KILN_TRAIN_ANALYSIS_BATCH_STATS_H

#include "kiln/trainer.h"

typedef struct KilnBatchStats {
    float *norms;       /* of the gradient of each trained parameter; NULL: nobody asks */
    int64_t *norm_ends; /* where the parameters end in the flat buffers */
    size_t n_norms;
    double peak_flops; /* 0: not measured yet */
} KilnBatchStats;

/* Before the first step is recorded. */
KILN_NODISCARD KilnStatus kiln_batch_stats_set_up(KilnTrainer *trainer, KilnError *err);
void kiln_batch_stats_release(KilnBatchStats *batch_stats);
/* Let an update measure the gradients, if someone asks. */
void kiln_batch_stats_record(KilnTrainer *trainer, KilnFlat *flat);

#endif

/* Statistics of training batches for callbacks: losses, gradient norms, tokens, FLOPs. */
#ifndef KILN_TRAIN_ANALYSIS_BATCH_STATS_H
#define KILN_TRAIN_ANALYSIS_BATCH_STATS_H

#include "graph/buffer.h"
#include "kiln/trainer.h"

typedef struct KilnBatchStats {
    KilnBuffer *norms;     /* of each trained parameter's gradient; NULL: no callback needs them */
    KilnDType norms_dtype; /* f32, or f64 as the parameters */
    float *read_norms;     /* their copy for callbacks */
    double *read_f64;      /* the copy of norms of f64 */
    int64_t *norm_ends;    /* where these parameters end in the flat buffers */
    size_t n_norms;
    double peak_flops; /* 0: not measured yet */
} KilnBatchStats;

/* Allocate, before the first step is recorded. */
KILN_NODISCARD KilnStatus kiln_batch_stats_set_up(KilnTrainer *trainer, KilnError *err);
void kiln_batch_stats_release(KilnBatchStats *batch_stats);
/* Add the leaves for gradient norms to an optimizer's update, if a callback needs them; and after
 * the update, record the norms if it did not measure them itself. */
void kiln_batch_stats_prepare(KilnTrainer *trainer, KilnFlat *flat);
void kiln_batch_stats_record(KilnTrainer *trainer, const KilnFlat *flat);
/* Record the norm of one parameter's gradient. */
void kiln_batch_stats_store(KilnTrainer *trainer, const KilnParam *param, KilnTensor *norm);

#endif

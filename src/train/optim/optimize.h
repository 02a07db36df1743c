/* One optimizer step: clipping and update, recorded after the gradients. */
#ifndef KILN_TRAIN_OPTIM_OPTIMIZE_H
#define KILN_TRAIN_OPTIM_OPTIMIZE_H

#include "train/optim/optimizers.h"

/* How gradients are limited; limit 0: not at all. */
typedef struct KilnClipping {
    double limit;
    bool by_norm;
} KilnClipping;

/* The next run of neighbouring gradients that the current step computes, from parameter *next (0 at
 * first) on, in elements of the flat buffer; false when there are no more. The others may be left
 * from a step of another optimizer. Embeddings that `optimizer` updates by rows are left out; NULL:
 * none is. */
bool kiln_optimize_next_range(const KilnTrainer *trainer, const KilnOptimizerState *optimizer,
                              size_t *next, int64_t *ret_begin, int64_t *ret_count);
/* Record clipping of at->gradients, and the update by optimizer at->optimizer. */
void kiln_optimize_record(KilnTrainer *trainer, const KilnRecording *at, KilnClipping clipping);

#endif

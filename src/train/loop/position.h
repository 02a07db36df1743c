/* The position of training in its loop, as a checkpoint saves it. */
#ifndef KILN_TRAIN_LOOP_POSITION_H
#define KILN_TRAIN_LOOP_POSITION_H

#include "kiln/base.h"

typedef struct KilnPosition {
    int64_t epoch;
    int64_t batch;          /* batches of this epoch done */
    int64_t step;           /* optimizer steps done */
    int64_t batches;        /* since the start; seeds a batch's random numbers */
    int64_t samples;        /* trained on since the start */
    int64_t in_group;       /* batches of the current group done: their gradients add up until its
                             * optimizer step */
    int64_t last_val_batch; /* `batches` when the last validation ended; -1: never */
    int64_t last_end_batch; /* `batches` when the last epoch, whole or not, ended; -1: never */
    bool epoch_begun;       /* on_train_epoch_start was called */
    bool epoch_done;        /* validation and the end of the epoch are over */
    bool should_stop;       /* training was requested to end */
} KilnPosition;

static inline bool kiln_position_equal(const KilnPosition *a, const KilnPosition *b)
{
    return a->epoch == b->epoch && a->batch == b->batch && a->step == b->step &&
           a->batches == b->batches && a->last_val_batch == b->last_val_batch &&
           a->last_end_batch == b->last_end_batch && a->epoch_done == b->epoch_done &&
           a->should_stop == b->should_stop;
}

#endif

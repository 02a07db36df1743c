/* Where training is: what a checkpoint keeps of the loop. */
#ifndef KILN_TRAIN_LOOP_POSITION_H
#define KILN_TRAIN_LOOP_POSITION_H

#include "kiln/base.h"

typedef struct KilnPosition {
    int64_t epoch;
    int64_t batch;          /* batches of this epoch done */
    int64_t step;           /* optimizer steps done */
    int64_t batches;        /* since the start: the key of a batch's random numbers */
    int64_t samples;        /* trained on since the start */
    int64_t in_group;       /* batches whose gradients wait for the next optimizer step */
    int64_t last_val_batch; /* `batches` when validation was last over; -1: never */
    int64_t last_end_batch; /* `batches` when an epoch, whole or not, was last ended; -1: never */
    bool epoch_begun;       /* on_train_epoch_start was called */
    bool epoch_done;        /* validation and the end of the epoch are over */
    bool should_stop;       /* someone asked training to end */
} KilnPosition;

static inline bool kiln_position_equal(const KilnPosition *a, const KilnPosition *b)
{
    return a->epoch == b->epoch && a->batch == b->batch && a->step == b->step &&
           a->batches == b->batches && a->last_val_batch == b->last_val_batch &&
           a->last_end_batch == b->last_end_batch && a->epoch_done == b->epoch_done &&
           a->should_stop == b->should_stop;
}

#endif

/* Strategies: how several processes train one network together (trainer.strategy). A strategy says
 * which of them this process is, and moves bytes between them; what is moved when is decided by
 * the trainer (train/ranks/).
 *
 * All processes run the same command. Each is a rank, from 0 to the world's size - 1. A run of W
 * ranks does what one rank does with trainer.accumulate_grad_batches multiplied by W: batch k of an
 * epoch goes to rank k mod W, and the gradients of the ranks add up. */
#ifndef KILN_STRATEGY_H
#define KILN_STRATEGY_H

#include "kiln/component.h"
#include "kiln/tensor.h"

/* The functions after `setup` are collective: every rank calls them in the same order with the same
 * sizes, from the thread that trains, and each returns when this rank's part is done. They are not
 * called when the world has one rank, and may then be NULL. `data` is the host's memory, in the
 * byte order of the machine.
 *
 * How long to wait for a rank is up to the strategy. When one has ended or does not answer, each
 * function returns an error that names it ("rank 1 ended"): a rank that fails calls `teardown` at
 * once, and the others then end with that error. */
struct KilnStrategyOps {
    /* Connect the ranks. *ret_rank: this one's number; *ret_world: how many there are, at least 1.
     * Called once, before the run is built. */
    KilnStatus (*setup)(KilnInstance *self, int *ret_rank, int *ret_world, KilnError *err);
    /* Replace `count` elements (KILN_F32, KILN_BF16 or KILN_F64) by their sums over all ranks.
     * Every rank must get the same bytes. Sums in the order of the ranks, each rounded to `dtype`
     * ((rank 0 + rank 1) + rank 2), give the bytes of one rank that accumulates. */
    KilnStatus (*all_reduce)(KilnInstance *self, void *data, int64_t count, KilnDType dtype,
                             KilnError *err);
    /* Collect `bytes` bytes of each rank, in the order of the ranks, in `all`. */
    KilnStatus (*all_gather)(KilnInstance *self, const void *mine, size_t bytes, void *all,
                             KilnError *err);
    /* Copy rank `root`'s bytes to all. */
    KilnStatus (*broadcast)(KilnInstance *self, void *data, size_t bytes, int root, KilnError *err);
    /* Disconnect; called once after `setup`, also when that failed. Must not wait for the others.
     */
    void (*teardown)(KilnInstance *self);
};

#endif

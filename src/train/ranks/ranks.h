/* The ranks of a run: the processes that train one network together (kiln/strategy.h). A run that
 * is alone has one rank, and calls nothing here that communicates.
 *
 * How ranks train: an epoch's batches are dealt out in turn, so W ranks train W batches in a
 * *round*. Every rank holds the same parameters, optimizer state, running statistics and averages
 * after each round; rank 0 alone holds the metrics of training, has the run folder, and writes.
 * In a round, all that communicates comes before anything is changed that a checkpoint holds, so
 * that a rank that ends leaves the others at the end of the round before (rounds.c). */
#ifndef KILN_TRAIN_RANKS_RANKS_H
#define KILN_TRAIN_RANKS_RANKS_H

#include "kiln/embed/run.h"
#include "kiln/strategy.h"
#include "train/loop/phase.h"

typedef struct KilnRanks {
    KilnInstance *strategy; /* NULL: alone */
    int rank, world;        /* world 0: alone, too */
    /* Of the round that is being trained: */
    int64_t ahead;   /* batches of it that come before this rank's */
    int64_t samples; /* of all ranks */
    bool ran;        /* this rank has run its batch, */
    bool computed;   /* and has its gradients */
    /* What a failed round must not change, on rank 0: copies of gradients, statistics, counters. */
    void *kept[3];
    double since_validation; /* seconds, by rank 0's clock */
    bool wants_end;          /* the caller of this rank ends the run */
} KilnRanks;

/* Build the strategy of the config and connect. Close it also after a failure. */
KILN_NODISCARD KilnStatus kiln_ranks_open(KilnRanks *ranks, KilnConfig *config,
                                          const KilnRegistry *registry, KilnError *err);
/* Disconnect, so that ranks that wait for this one fail. Accepts a zeroed and a closed one; the
 * rank's number stays. */
void kiln_ranks_close(KilnRanks *ranks);
/* Whether there is more than one rank. */
bool kiln_ranks_several(const KilnRanks *ranks);

/* ---- Moving bytes -------------------------------------------------------------------------- */

/* As the functions of a strategy; nothing happens when there is one rank. */
KILN_NODISCARD KilnStatus kiln_ranks_sum(KilnRanks *ranks, void *data, int64_t count,
                                         KilnDType dtype, KilnError *err);
KILN_NODISCARD KilnStatus kiln_ranks_gather(KilnRanks *ranks, const void *mine, size_t bytes,
                                            void *all, KilnError *err);
/* From rank 0. */
KILN_NODISCARD KilnStatus kiln_ranks_broadcast(KilnRanks *ranks, void *data, size_t bytes,
                                               KilnError *err);
/* Replace *text (heap, may be NULL) by rank 0's. */
KILN_NODISCARD KilnStatus kiln_ranks_broadcast_text(KilnRanks *ranks, char **text, KilnError *err);
/* Gather `bytes` bytes of each rank, as many as it likes. *ret_all: `*ret_stride` bytes for each
 * rank; ret_sizes: of each, [world]. Both are owned by the caller; *ret_all is NULL if nobody has
 * any. */
KILN_NODISCARD KilnStatus kiln_ranks_gather_bytes(KilnRanks *ranks, const void *mine, size_t bytes,
                                                  char **ret_all, size_t *ret_stride,
                                                  int64_t **ret_sizes, KilnError *err);

/* ---- Rounds (rounds.c) --------------------------------------------------------------------- */

/* Agree on what hooks and callers of all ranks request: to end, to stop, to skip the epoch,
 * to save. To be called where such a request is about to decide something. An error where ranks
 * are no longer at the same position. */
KILN_NODISCARD KilnStatus kiln_ranks_agree(KilnTrainer *trainer, KilnError *err);
/* Begin a round: agree, too, and report whether any rank trains a batch (`size` samples; 0: this
 * one does not). */
KILN_NODISCARD KilnStatus kiln_ranks_begin_round(KilnTrainer *trainer, int64_t size, bool *ret_any,
                                                 KilnError *err);
/* Keep a copy of what a failed round must not change, and put it back. */
KILN_NODISCARD KilnStatus kiln_ranks_keep(KilnTrainer *trainer, KilnError *err);
void kiln_ranks_put_back(KilnTrainer *trainer);
/* Replace the gradients that this step computes by their sums, and running statistics by rank
 * 0's. */
KILN_NODISCARD KilnStatus kiln_ranks_reduce(KilnTrainer *trainer, KilnError *err);
KILN_NODISCARD KilnStatus kiln_ranks_share_statistics(KilnTrainer *trainer, KilnError *err);

/* ---- Metrics (rank_metrics.c) -------------------------------------------------------------- */

/* Pass what this rank's steps of a phase have logged and counted to rank 0. `own` does so for rank
 * 0 itself, after the others have been received. */
typedef KilnStatus KilnOwnMetrics(KilnTrainer *trainer, KilnError *err);
KILN_NODISCARD KilnStatus kiln_ranks_collect_metrics(KilnTrainer *trainer, KilnPhase phase,
                                                     int64_t step, KilnOwnMetrics *own,
                                                     KilnError *err);
/* Give all ranks the values of rank 0. */
KILN_NODISCARD KilnStatus kiln_ranks_publish_metrics(KilnTrainer *trainer, KilnError *err);

#endif

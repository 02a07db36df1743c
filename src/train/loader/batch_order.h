/* Which samples are in which batch of an epoch. Knows nothing of threads. */
#ifndef KILN_TRAIN_LOADER_BATCH_ORDER_H
#define KILN_TRAIN_LOADER_BATCH_ORDER_H

#include "train/loader/loader.h"

enum { KILN_MAX_BUCKETS = 64 };

typedef struct KilnLoaderOrder {
    KilnInstance *sampler; /* NULL: all in order */
    KilnSampling sampling;
    int64_t count; /* samples an epoch, the rest that is dropped too */
    int64_t batch_size, n_batches;
    uint32_t *samples; /* [count]; NULL: in order */
    /* By length only: */
    const int64_t *buckets;
    size_t n_buckets;
    uint32_t *drawn; /* [count], the sampler's order */
    int64_t *starts; /* [n_batches + 1] in samples */
    uint32_t *open;  /* [n_buckets + 1][batch_size]: batches that are not full yet */
} KilnLoaderOrder;

/* `dataset` is borrowed. Release it also after a failure. */
KILN_NODISCARD KilnStatus kiln_loader_order_init(KilnLoaderOrder *order, const KilnLoaderSpec *spec,
                                                 const KilnDataset *dataset, KilnError *err);
void kiln_loader_order_release(KilnLoaderOrder *order);
/* Lay down the order of an epoch; KILN_E_INTERRUPTED when the sampling's poll says to stop. */
KILN_NODISCARD KilnStatus kiln_loader_order_begin(KilnLoaderOrder *order, int64_t epoch,
                                                  KilnError *err);
/* The samples of a batch: from *ret_first on, *ret_size of them. */
void kiln_loader_order_batch(const KilnLoaderOrder *order, int64_t batch, int64_t *ret_first,
                             int64_t *ret_size);
/* The i-th sample of the epoch. */
int64_t kiln_loader_order_sample(const KilnLoaderOrder *order, int64_t i);

/* The first of n rising buckets that is not below `length`; n: none is. */
size_t kiln_bucket_of(const int64_t *buckets, size_t n, int64_t length);

#endif

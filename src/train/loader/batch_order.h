/* The order of an epoch's samples and how it is divided into batches. */
#ifndef KILN_TRAIN_LOADER_BATCH_ORDER_H
#define KILN_TRAIN_LOADER_BATCH_ORDER_H

#include "train/loader/loader.h"

enum { KILN_MAX_BUCKETS = 64 };

typedef struct KilnBatchOrder {
    KilnInstance *sampler; /* NULL: sequential */
    KilnSampling sampling;
    int64_t count; /* samples per epoch, including those that drop_last drops */
    int64_t batch_size, n_batches;
    uint32_t *samples; /* [count]; NULL: sequential */
    /* For batches by length only: */
    const int64_t *buckets;
    size_t n_buckets;
    uint32_t *drawn;  /* [count], the sampler's order */
    int64_t *lengths; /* of the features of one sample */
    size_t n_features;
    int64_t *starts;                     /* [n_batches + 1] indices in `samples` */
    int64_t sizes[KILN_MAX_BUCKETS + 1]; /* samples per batch of each bucket */
    uint32_t *open; /* [n_buckets + 1][batch_size]: batches that are not full yet */
} KilnBatchOrder;

/* `dataset` is borrowed. Release it also after a failure. */
KILN_NODISCARD KilnStatus kiln_batch_order_init(KilnBatchOrder *order, const KilnLoaderSpec *spec,
                                                const KilnDataset *dataset, KilnError *err);
void kiln_batch_order_release(KilnBatchOrder *order);
/* Compute the order of an epoch; KILN_E_INTERRUPTED when the sampling's poll says to stop. */
KILN_NODISCARD KilnStatus kiln_batch_order_begin(KilnBatchOrder *order, int64_t epoch,
                                                 KilnError *err);
/* The positions of a batch in the epoch: *ret_size from *ret_first on. */
void kiln_batch_order_batch(const KilnBatchOrder *order, int64_t batch, int64_t *ret_first,
                            int64_t *ret_size);
/* The index in the dataset of the i-th sample of the epoch. */
int64_t kiln_batch_order_sample(const KilnBatchOrder *order, int64_t i);

/* Samples in a full batch of bucket b of spec->n_buckets + 1, the last of which has all longer
 * samples. */
int64_t kiln_loader_spec_bucket_size(const KilnLoaderSpec *spec, size_t b);
/* The index of the first of n increasing buckets that holds `length`; n: none does. */
size_t kiln_bucket_of(const int64_t *buckets, size_t n, int64_t length);

#endif

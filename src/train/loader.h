/* Batches of a dataset, filled ahead of use by worker threads. The batches of an
 * epoch are a pure function of seed and epoch: they come in the same order and
 * have the same bytes for any number of workers. */
#ifndef KILN_TRAIN_LOADER_H
#define KILN_TRAIN_LOADER_H

#include "kiln/data.h"

typedef struct KilnLoader KilnLoader;

typedef struct KilnLoaderSpec {
    const KilnDataSpec *data; /* borrowed for the call */
    KilnDataset dataset;      /* must outlive the loader */
    int64_t batch_size;
    int64_t limit; /* batches an epoch; -1: all */
    uint64_t seed;
    bool shuffle;
    int workers; /* 0: batches are filled by kiln_loader_next */
    /* Told once, from the thread that calls kiln_loader_next, of every sample
     * that is left out. May be NULL. */
    void (*warn)(void *ctx, const char *message);
    void *warn_ctx;
} KilnLoaderSpec;

/* A filled batch; its bytes stay until the next call on the loader. */
typedef struct KilnBatch {
    int64_t index; /* in the epoch, counting batches whose samples were all left out */
    int64_t size;  /* samples; 0: the epoch is over */
    void *data[KILN_MAX_FEATURES];
} KilnBatch;

/* Bytes that a loader of this spec allocates. */
int64_t kiln_loader_bytes(const KilnLoaderSpec *spec);
/* Allocates all batches, and starts the workers. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_loader_new(const KilnLoaderSpec *spec, KilnLoader **ret,
                                          KilnError *err);
/* Accepts NULL. */
void kiln_loader_free(KilnLoader *loader);
/* Batches an epoch. */
int64_t kiln_loader_batches(const KilnLoader *loader);
/* Begin with batch `first` of `epoch`; what was not yet taken of an epoch
 * before is dropped. */
KILN_NODISCARD KilnStatus kiln_loader_start(KilnLoader *loader, int64_t epoch, int64_t first,
                                            KilnError *err);
/* Wait for the next batch. The error of a sample comes with the batch that it
 * belongs to. */
KILN_NODISCARD KilnStatus kiln_loader_next(KilnLoader *loader, KilnBatch *ret, KilnError *err);

#endif

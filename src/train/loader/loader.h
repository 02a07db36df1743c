/* Batches of a dataset, filled ahead of use by worker threads. The batches of an
 * epoch are a pure function of seed and epoch: they come in the same order and
 * have the same bytes for any number of workers. */
#ifndef KILN_TRAIN_LOADER_LOADER_H
#define KILN_TRAIN_LOADER_LOADER_H

#include "kiln/loading.h"

typedef struct KilnLoader KilnLoader;

/* Told, from the thread that calls kiln_loader_next, of a sample that is left out. */
typedef void KilnLeftOut(void *ctx, int64_t sample, KilnStatus status, const char *message);

typedef struct KilnLoaderSpec {
    const KilnDataSpec *data;       /* borrowed for the call */
    KilnDataset dataset;            /* must outlive the loader */
    const KilnInstance *datamodule; /* that it belongs to, for reports; NULL: none */
    int64_t batch_size;
    int64_t limit; /* batches an epoch; -1: all */
    uint64_t seed;
    bool drop_last;
    KilnInstance *sampler; /* set up by kiln_sampler_setup; borrowed. NULL: all in order */
    KilnInstance *const *batch_transforms; /* borrowed */
    size_t n_batch_transforms;
    const int64_t *buckets; /* rising lengths that batches are padded to; borrowed */
    size_t n_buckets;
    bool by_length; /* a batch holds samples of one bucket, instead of the sampler's order */
    int workers;    /* 0: batches are filled by kiln_loader_next */
    /* Samples that can't be read are left out, whatever is wrong with them (but memory). */
    bool tolerant;
    KilnLeftOut *left_out; /* once for each sample. May be NULL */
    void *ctx;             /* of left_out */
    /* While not zero, waiting for a batch ends with KILN_E_INTERRUPTED. May be NULL. */
    const volatile int *stop;
    const volatile int *pause; /* the same; the caller will come again. May be NULL */
    const KilnPoll *poll;      /* for samplers, and counting lengths. May be NULL */
} KilnLoaderSpec;

/* A filled batch; its bytes stay until the next call on the loader. */
typedef struct KilnBatch {
    int64_t index;          /* in the epoch, counting batches whose samples were all left out */
    int64_t size;           /* samples; 0: the epoch is over */
    const int64_t *samples; /* which ones: [size] indices in the dataset */
    void *data[KILN_MAX_FEATURES];
    int64_t length;         /* of the first axis of features that vary; 0: as the feature says */
    const int32_t *lengths; /* [size], of the samples; NULL: no feature varies */
} KilnBatch;

/* Show a sampler its data; also when it is NULL. KILN_E_NOMEM, before it takes memory, when there
 * is too little for it. */
KILN_NODISCARD KilnStatus kiln_sampler_setup(const KilnLoaderSpec *spec, KilnError *err);
/* The features of its batches: the data's, as batch transforms change them. Those are set up. */
KILN_NODISCARD KilnStatus kiln_loader_spec_features(const KilnLoaderSpec *spec, KilnDataSpec *ret,
                                                    KilnError *err);
/* What a loader of this spec will have: batches an epoch, samples in the largest, and the
 * bytes that it allocates. */
int64_t kiln_loader_spec_batches(const KilnLoaderSpec *spec);
int64_t kiln_loader_spec_batch(const KilnLoaderSpec *spec);
int64_t kiln_loader_spec_bytes(const KilnLoaderSpec *spec);
/* Of these, what the order of an epoch takes. */
int64_t kiln_loader_spec_order_bytes(const KilnLoaderSpec *spec);
/* Allocates all batches, and starts the workers. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_loader_new(const KilnLoaderSpec *spec, KilnLoader **ret,
                                          KilnError *err);
/* Accepts NULL. */
void kiln_loader_free(KilnLoader *loader);
/* Batches an epoch. */
int64_t kiln_loader_batches(const KilnLoader *loader);
/* Begin with batch `first` of `epoch`; what was not yet taken of an epoch
 * before is dropped. KILN_E_INTERRUPTED when spec.poll says to stop. */
KILN_NODISCARD KilnStatus kiln_loader_start(KilnLoader *loader, int64_t epoch, int64_t first,
                                            KilnError *err);
/* Wait for the next batch. The error of a sample comes with the batch that it
 * belongs to. */
KILN_NODISCARD KilnStatus kiln_loader_next(KilnLoader *loader, KilnBatch *ret, KilnError *err);

/* Measured since kiln_loader_start. */
typedef struct KilnLoaderTimes {
    int64_t taken, filled; /* batches that the caller took, and that were filled */
    double waited_s;       /* the caller waited for them, */
    double fill_s, cpu_s;  /* filling them took, and the processors worked at it (0 without
                            * workers: not known) */
} KilnLoaderTimes;

void kiln_loader_times(KilnLoader *loader, KilnLoaderTimes *ret);

#endif

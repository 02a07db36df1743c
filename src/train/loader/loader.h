/* Loads batches of a dataset ahead of use in worker threads. The batches of an epoch depend only on
 * seed and epoch: their order and bytes are the same for any number of workers. loader.c has the
 * threads; batch_order.c decides which samples are in a batch, batch_fill.c reads them,
 * batch_transform.c transforms the batch. */
#ifndef KILN_TRAIN_LOADER_LOADER_H
#define KILN_TRAIN_LOADER_LOADER_H

#include "kiln/loading.h"

typedef struct KilnLoader KilnLoader;

/* A sample that is left out. */
typedef struct KilnSkip {
    int64_t sample;
    KilnStatus status;
    char *name;    /* NULL: it has none */
    char *message; /* with the name */
    size_t reason; /* where the reason begins in the message, after the name */
} KilnSkip;

/* Called for a sample that is skipped, in the thread that calls kiln_loader_next. */
typedef void KilnOnSkip(void *ctx, const KilnSkip *skip);

typedef struct KilnLoaderSpec {
    const KilnDataSpec *data;       /* must outlive the loader */
    KilnDataset dataset;            /* must outlive the loader */
    const KilnInstance *datamodule; /* its owner, for error messages; NULL: none */
    const char *split;              /* its name, likewise ("train"); NULL: none */
    int64_t batch_size;
    int64_t limit; /* batches per epoch; -1: all */
    /* Of each `world` batches the loader gives the one with number `rank`. World 0: all. */
    int rank, world;
    uint64_t seed;
    bool drop_last;
    KilnInstance *sampler; /* set up by kiln_sampler_setup; borrowed. NULL: sequential */
    KilnInstance *const *batch_transforms; /* borrowed */
    size_t n_batch_transforms;
    const int64_t *buckets; /* increasing lengths that batches are padded to; borrowed */
    size_t n_buckets;
    bool by_length; /* group samples of one bucket into a batch */
    /* Padded tokens per batch at most; a batch of longer samples has fewer of them than batch_size.
     * 0: no limit. Without by_length every batch has as many samples as the longest would allow. */
    int64_t max_tokens;
    /* Above 0: so many batches per epoch, each of all samples in order, without data. Nothing is
     * read; of the members above only data, dataset, datamodule and limit count. 0: batches have
     * data. */
    int64_t whole;
    int workers; /* 0: kiln_loader_next fills batches itself */
    /* Skip samples that can't be read for any reason but memory. */
    bool tolerant;
    KilnOnSkip *on_skip; /* called once per sample. May be NULL */
    void *ctx;           /* of on_skip */
    /* While not zero, kiln_loader_next returns KILN_E_INTERRUPTED instead of waiting. May be
     * NULL. */
    const volatile int *stop;
    const volatile int *pause; /* the same, but the caller will call again. May be NULL */
    const KilnPoll *poll;      /* for samplers and for reading lengths. May be NULL */
} KilnLoaderSpec;

/* One feature of a batch. */
typedef struct KilnBatchFeature {
    void *data;       /* [size, ...]; of a text char *[size]; NULL: absent */
    int64_t padded;   /* length of the first axis, if it varies; else 0 */
    int32_t *lengths; /* [size], of the samples; NULL: it does not vary */
} KilnBatchFeature;

/* A filled batch, valid until the next call on the loader. */
typedef struct KilnBatch {
    int64_t index;                    /* in the epoch, counting batches whose samples were all
                                       * skipped */
    int64_t size;                     /* samples; 0: the epoch is over */
    const int64_t *samples;           /* [size] indices in the dataset */
    const KilnBatchFeature *features; /* in the order of the spec; NULL: a batch without data */
    const KilnDataset *dataset;       /* that the samples are of; NULL: none */
} KilnBatch;

/* Set up spec->sampler, if any. KILN_E_NOMEM, before it allocates, when there is too little memory
 * for it. (batch_order.c) */
KILN_NODISCARD KilnStatus kiln_sampler_setup(const KilnLoaderSpec *spec, KilnError *err);
/* Set up the batch transforms; *ret becomes what batches hold: the data's features as the
 * transforms change them. They are written to `features`, which has room for all of them and
 * belongs to the caller. (batch_transform.c) */
KILN_NODISCARD KilnStatus kiln_loader_spec_features(const KilnLoaderSpec *spec,
                                                    KilnFeature *features, KilnDataSpec *ret,
                                                    KilnError *err);
/* Of a loader with this spec: batches per epoch, samples in the largest batch, and the bytes that
 * it allocates. */
int64_t kiln_loader_spec_batches(const KilnLoaderSpec *spec);
int64_t kiln_loader_spec_batch_size(const KilnLoaderSpec *spec);
int64_t kiln_loader_spec_bytes(const KilnLoaderSpec *spec);
/* The part of these bytes for the order of an epoch. */
int64_t kiln_loader_spec_order_bytes(const KilnLoaderSpec *spec);
/* Allocates all batches, and starts the workers. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_loader_new(const KilnLoaderSpec *spec, KilnLoader **ret,
                                          KilnError *err);
/* Accepts NULL. */
void kiln_loader_free(KilnLoader *loader);
/* Batches per epoch. */
int64_t kiln_loader_batches(const KilnLoader *loader);
/* Start at batch `first` of `epoch`; batches of an earlier epoch that were not taken are discarded.
 * KILN_E_INTERRUPTED when spec.poll says to stop. */
KILN_NODISCARD KilnStatus kiln_loader_start(KilnLoader *loader, int64_t epoch, int64_t first,
                                            KilnError *err);
/* Wait for the next batch. A sample's error is returned when its batch is due. A batch whose
 * samples were all skipped is left out; with a world of several, it is returned with size 0, as
 * other ranks train the batches beside it. */
KILN_NODISCARD KilnStatus kiln_loader_next(KilnLoader *loader, KilnBatch *ret, KilnError *err);

/* Measured since kiln_loader_start. */
typedef struct KilnLoaderTimes {
    int64_t taken, filled; /* batches taken by the caller, and filled */
    double waited_s;       /* that the caller waited for batches */
    double fill_s;         /* spent filling batches, all workers together */
    double transform_s;    /* the part of it spent on batch transforms */
    double cpu_s;          /* CPU time of the workers; 0 without workers: unknown */
} KilnLoaderTimes;

void kiln_loader_times(KilnLoader *loader, KilnLoaderTimes *ret);

#endif

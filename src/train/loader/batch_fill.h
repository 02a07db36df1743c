/* Fills one batch with samples; loader.c runs this in its worker threads. */
#ifndef KILN_TRAIN_LOADER_BATCH_FILL_H
#define KILN_TRAIN_LOADER_BATCH_FILL_H

#include "train/loader/batch_order.h"

/* The memory of a batch. */
typedef struct KilnBatchSlot {
    KilnBatchFeature *features; /* in the order of the source's spec */
    /* As long as `features`, for the sample that is being read or the batch being transformed: */
    void **data;
    int64_t *lengths_of_sample;
    KilnFeature *shapes; /* varying features as long as they are padded */
    int64_t batch;       /* index of the batch that it holds or is being filled with */
    int64_t size;        /* samples in it */
    int64_t *samples;    /* [batch_size], their indices in the dataset */
    int32_t *labels;     /* [batch_size], classes before they become soft labels */
    KilnSkip *skips; /* [batch_size], until the caller's thread reports them. message NULL: memory
                      * ran out */
    size_t n_skips;
    KilnStatus status;
    KilnError error;
    bool ready;         /* loader.c: filled, under its mutex */
    int64_t reading;    /* index of the sample being read, atomic; -1: none */
    double transform_s; /* spent on batch transforms by the last fill */
} KilnBatchSlot;

/* Where the samples of batches come from, and how they are read and transformed. */
typedef struct KilnBatchSource {
    KilnDataset dataset;
    const KilnInstance *datamodule; /* owner of the dataset; NULL: none */
    const char *split;              /* KilnLoaderSpec.split */
    KilnDataSpec spec;              /* of batches, after batch transforms */
    KilnFeature *features;          /* of the spec */
    size_t *bytes;                  /* of each feature in the longest possible sample */
    size_t *slot_bytes;             /* of each feature in the largest possible batch */
    size_t label;                   /* index of the label feature; n_features: none */
    size_t soft;                    /* index of the soft labels; n_features: none */
    bool varies;                    /* a feature does */
    bool measures;                  /* the dataset reports no lengths: reading a sample sets them */
    const int64_t *buckets;
    size_t n_buckets;
    KilnInstance *const *transforms;
    size_t n_transforms;
    int64_t batch_size;
    uint64_t seed;
    bool tolerant;
    bool (*cancelled)(const void *ctx); /* checked between samples: stop filling the batch */
    const void *ctx;
} KilnBatchSource;

/* KILN_E_RANGE when batches would be too large. Release it after success. */
KILN_NODISCARD KilnStatus kiln_batch_source_init(KilnBatchSource *source,
                                                 const KilnLoaderSpec *spec, KilnError *err);
void kiln_batch_source_release(KilnBatchSource *source);
/* Bytes of a slot. */
int64_t kiln_batch_source_slot_bytes(const KilnBatchSource *source);
/* Allocate a slot. Release it also after a failure. */
KILN_NODISCARD KilnStatus kiln_batch_slot_init(KilnBatchSlot *slot, const KilnBatchSource *source,
                                               KilnError *err);
void kiln_batch_slot_release(KilnBatchSlot *slot, const KilnBatchSource *source);
void kiln_batch_slot_clear_skips(KilnBatchSlot *slot);
/* Fill the slot with batch slot->batch of `epoch`; sets slot->status and slot->error.
 * KILN_E_INTERRUPTED: cancelled, must be filled again. */
void kiln_batch_slot_fill(KilnBatchSlot *slot, const KilnBatchSource *source,
                          const KilnBatchOrder *order, int64_t epoch);
/* "sample 7 (cat/007.png)" */
void kiln_sample_text(const KilnDataset *dataset, int64_t sample, char *ret, size_t room);

#endif

/* Filling one batch: reading its samples into place. Knows nothing of threads. */
#ifndef KILN_TRAIN_LOADER_BATCH_FILL_H
#define KILN_TRAIN_LOADER_BATCH_FILL_H

#include "train/loader/batch_order.h"

/* A sample that was left out, until the caller's thread hears of it. */
typedef struct KilnSkip {
    int64_t sample;
    KilnStatus status;
    char *message; /* NULL: memory was out */
} KilnSkip;

/* A batch and its memory. */
typedef struct KilnSlot {
    void *data[KILN_MAX_FEATURES];
    int64_t batch;    /* which one it holds or is being filled with */
    int64_t size;     /* samples in it */
    int64_t *samples; /* [batch_size], which ones */
    int32_t *labels;  /* [batch_size], classes before they become soft labels; NULL: they don't */
    int32_t *lengths; /* [batch_size]; NULL: no feature varies */
    int64_t length;   /* that features are padded to; 0: none varies */
    KilnSkip *skips;  /* [batch_size] */
    size_t n_skips;
    KilnStatus status;
    KilnError error;
    bool ready;      /* the ring's */
    int64_t reading; /* the sample that is being read now, atomic; -1: none */
} KilnSlot;

/* What batches are filled from. */
typedef struct KilnFilling {
    KilnDataset dataset;
    const KilnInstance *datamodule;  /* that the dataset belongs to; NULL: none */
    KilnDataSpec spec;               /* of the batches */
    size_t bytes[KILN_MAX_FEATURES]; /* of one sample, the longest there can be */
    size_t label;                    /* the feature with the class, soft or not; n_features: none */
    size_t soft;                     /* the feature with soft labels; n_features: none */
    int64_t longest;                 /* of features that vary; 0: none does */
    const int64_t *buckets;
    size_t n_buckets;
    KilnInstance *const *transforms;
    size_t n_transforms;
    int64_t batch_size;
    uint64_t seed;
    bool tolerant;
    bool (*given_up)(const void *ctx); /* nobody waits for the batch; asked between samples */
    const void *ctx;
} KilnFilling;

/* Refuses what is too large. */
KILN_NODISCARD KilnStatus kiln_filling_init(KilnFilling *filling, const KilnLoaderSpec *spec,
                                            KilnError *err);
/* Bytes of a slot, by sample. */
int64_t kiln_filling_sample_bytes(const KilnFilling *filling);
/* Release it also after a failure. */
KILN_NODISCARD KilnStatus kiln_slot_init(KilnSlot *slot, const KilnFilling *filling,
                                         KilnError *err);
void kiln_slot_release(KilnSlot *slot);
void kiln_slot_forget_skips(KilnSlot *slot);
/* Fill slot with its batch of `epoch`; slot->status and error say how it went. KILN_E_INTERRUPTED:
 * it was given up, and is to be filled again. */
void kiln_slot_fill(KilnSlot *slot, const KilnFilling *filling, const KilnLoaderOrder *order,
                    int64_t epoch);
/* "sample 7 (cat/007.png)" */
void kiln_sample_text(const KilnDataset *dataset, int64_t sample, char *ret, size_t room);

#endif

/* How samples become batches: the options that every datamodule has, and the
 * components that choose samples. */
#ifndef KILN_LOADING_H
#define KILN_LOADING_H

#include "kiln/data.h"

/* ---- Options ------------------------------------------------------------------ */

/* What the options of every datamodule begin with: the members, and their rows in the
 * options table. `batch_` is the default batch size as YAML text. */
#define KILN_LOADING_OPTIONS                                                                       \
    int64_t batch_size;                                                                            \
    bool drop_last;                                                                                \
    KilnInstance *sampler;                                                                         \
    KilnInstance **batch_transforms;                                                               \
    size_t batch_transforms_count
#define KILN_LOADING_FIELDS(T, batch_)                                                             \
    KILN_FIELD_I64(T, batch_size, batch_, 1, 1e6, "samples a batch"),                              \
        KILN_FIELD_BOOL(T, drop_last, "false",                                                     \
                        "leave out the last batch of a training epoch when it is not full"),       \
        KILN_FIELD_COMPONENT(T, sampler, KILN_KIND_SAMPLER, "shuffle",                             \
                             "which samples a training epoch takes, in which order"),              \
        KILN_FIELD_COMPONENT_LIST(T, batch_transforms, KILN_KIND_BATCH_TRANSFORM, "[]",            \
                                  "applied to each training batch in this order")

/* The same for datamodules with a feature that varies. */
#define KILN_LENGTH_OPTIONS                                                                        \
    int64_t *buckets;                                                                              \
    size_t buckets_count
#define KILN_LENGTH_FIELDS(T)                                                                      \
    KILN_FIELD_I64_LIST(T, buckets, "[]", 1, 1e9,                                                  \
                        "lengths, rising: batches are padded to the first that is enough, and "    \
                        "training batches hold samples of one such length; empty: all are padded " \
                        "to the longest there can be")

/* These options, for the trainer; borrowed. */
struct KilnLoading {
    int64_t batch_size;
    bool drop_last;        /* of the training split */
    KilnInstance *sampler; /* of the training split; NULL: all samples in order */
    KilnInstance *const *batch_transforms;
    size_t batch_transforms_count;
    const int64_t *buckets; /* NULL without KILN_LENGTH_OPTIONS */
    size_t buckets_count;
};
#define KILN_LOADING(opts)                                                                         \
    ((KilnLoading) { .batch_size = (opts)->batch_size,                                             \
                     .drop_last = (opts)->drop_last,                                               \
                     .sampler = (opts)->sampler,                                                   \
                     .batch_transforms = (opts)->batch_transforms,                                 \
                     .batch_transforms_count = (opts)->batch_transforms_count })

/* ---- Samplers ------------------------------------------------------------------- */

/* What a sampler draws from; lives as long as the sampler is asked. */
typedef struct KilnSampling {
    const KilnDataset *dataset;
    int64_t n_classes;              /* of the labels; 0: no classes */
    const char *const *class_names; /* n_classes entries */
    uint64_t seed;
    const KilnPoll *poll; /* for what takes long. May be NULL */
} KilnSampling;

/* Which samples an epoch takes, in which order. It is a function of options, data, seed
 * and epoch alone, so that resuming needs no replay. */
struct KilnSamplerOps {
    /* Optional. Look at the data, once, and refuse what does not suit. */
    KilnStatus (*setup)(KilnInstance *self, const KilnSampling *sampling, KilnError *err);
    /* Samples an epoch, at most UINT32_MAX. NULL: as many as the data set has. */
    int64_t (*count)(KilnInstance *self, const KilnSampling *sampling);
    /* Fill ret[count] with indices of samples for `epoch`. Once kiln_poll(sampling->poll, ...) says
     * to stop it may return at once: the order is not used then. */
    void (*order)(KilnInstance *self, const KilnSampling *sampling, int64_t epoch, int64_t count,
                  uint32_t *ret);
    /* Optional. Bytes that `setup` and `order` allocate for these data, asked before setup, so that
     * a run that does not fit the memory is refused. */
    int64_t (*memory)(KilnInstance *self, const KilnSampling *sampling);
    /* Samples are drawn: an epoch may hold some twice, and others than the epoch before. */
    bool draws;
};

/* Put n numbers into a random order (Fisher and Yates). n is at most UINT32_MAX. */
KILN_API void kiln_rng_shuffle(KilnRng *rng, uint32_t *numbers, int64_t n);
/* The same for orders of samples, where it can be stopped; what `numbers` hold then is not used. */
KILN_API void kiln_sampling_shuffle(const KilnSampling *sampling, KilnRng *rng, uint32_t *numbers,
                                    int64_t n);
/* The class of every sample, for a sampler's setup: ret[dataset->count], or KILN_E_MISSING
 * when the data have no classes or a sample has none. `who` begins the message. */
KILN_API KILN_NODISCARD KilnStatus kiln_sampling_labels(const KilnSampling *sampling,
                                                        const char *who, int32_t *ret,
                                                        KilnError *err);

/* ---- Batch transforms --------------------------------------------------------------- */

/* A batch of the training split whose samples are in place. */
typedef struct KilnBatchView {
    KilnDataSpec spec;             /* what a sample is here: a soft label is f32 [n_classes] */
    size_t label;                  /* number of the feature "label"; n_features: there is none */
    int64_t size;                  /* samples */
    void *data[KILN_MAX_FEATURES]; /* each [size, ...] */
} KilnBatchView;

struct KilnBatchTransformOps {
    /* Optional. Refuse data that it can't work on. */
    KilnStatus (*setup)(KilnInstance *self, const KilnDataSpec *spec, KilnError *err);
    /* Change the batch in place. Runs in several threads at once; `rng` is a stream of this
     * transform for the seed, the epoch and the batch. */
    KilnStatus (*apply)(KilnInstance *self, const KilnBatchView *batch, KilnRng *rng,
                        KilnError *err);
    /* It blends labels: the feature "label", a class as i32, is the shares of the classes in
     * training, f32 [n_classes] (kiln_cross_entropy_soft). */
    bool soft_labels;
};

/* a := share * a + (1 - share) * b, and b likewise of the old a; n numbers each. */
KILN_API void kiln_blend(float *a, float *b, int64_t n, float share);

#endif

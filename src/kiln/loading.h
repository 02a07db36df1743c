/* How samples become batches: the options that every datamodule has, samplers and batch transforms.
 */
#ifndef KILN_LOADING_H
#define KILN_LOADING_H

#include "kiln/data.h"

/* ---- Options ------------------------------------------------------------------ */

/* A file that a run downloads where it is missing. */
typedef struct KilnSource {
    char *url;
    char *sha256;
    char *to;
} KilnSource;

/* url, sha256, to */
KILN_API_TABLE const KilnField kiln_source_fields[4];

/* The first members of every datamodule's options struct, and their rows in the options table.
 * `batch_` is the default batch size as YAML text. */
#define KILN_LOADING_OPTIONS                                                                       \
    int64_t batch_size;                                                                            \
    bool drop_last;                                                                                \
    KilnInstance *sampler;                                                                         \
    KilnInstance **batch_transforms;                                                               \
    size_t batch_transforms_count;                                                                 \
    bool download;                                                                                 \
    KilnSource *sources;                                                                           \
    size_t sources_count
#define KILN_LOADING_FIELDS(T, batch_)                                                             \
    KILN_FIELD_I64(T, batch_size, batch_, 1, 1e6, "samples per batch"),                            \
        KILN_FIELD_BOOL(T, drop_last, "false",                                                     \
                        "leave out the last batch of a training epoch if it is not full"),         \
        KILN_FIELD_COMPONENT(T, sampler, KILN_KIND_SAMPLER, "shuffle",                             \
                             "which samples a training epoch takes, and in which order"),          \
        KILN_FIELD_COMPONENT_LIST(T, batch_transforms, KILN_KIND_BATCH_TRANSFORM, "[]",            \
                                  "applied to each training batch in this order"),                 \
        KILN_FIELD_BOOL(T, download, "false", "download the files in sources that are missing"),   \
        KILN_FIELD_STRUCT_LIST(T, sources, KilnSource, kiln_source_fields, "[]",                   \
                               "where files of the data can be downloaded")

/* The same for datamodules with varying features. */
#define KILN_LENGTH_OPTIONS                                                                        \
    int64_t *buckets;                                                                              \
    size_t buckets_count;                                                                          \
    int64_t max_tokens
#define KILN_LENGTH_FIELDS(T)                                                                      \
    KILN_FIELD_I64_LIST(T, buckets, "[]", 1, 1e9,                                                  \
                        "ascending lengths: a batch is padded to the smallest that fits, and "     \
                        "a training batch has samples of one such length; empty: all are padded "  \
                        "to the maximum length"),                                                  \
        KILN_FIELD_I64(T, max_tokens, "0", 0, 1e9,                                                 \
                       "padded tokens per batch: batches of short samples have batch_size "        \
                       "samples, of longer ones only as many as fit; 0: no limit")

/* The loading options, for the trainer; borrowed. */
struct KilnLoading {
    int64_t batch_size;
    bool drop_last;        /* of the training split */
    KilnInstance *sampler; /* of the training split; NULL: all samples in order */
    KilnInstance *const *batch_transforms;
    size_t batch_transforms_count;
    const int64_t *buckets; /* NULL without KILN_LENGTH_OPTIONS */
    size_t buckets_count;
    int64_t max_tokens;
    bool download;
    const KilnSource *sources;
    size_t sources_count;
};
#define KILN_LOADING(opts)                                                                         \
    ((KilnLoading) { .batch_size = (opts)->batch_size,                                             \
                     .drop_last = (opts)->drop_last,                                               \
                     .sampler = (opts)->sampler,                                                   \
                     .batch_transforms = (opts)->batch_transforms,                                 \
                     .batch_transforms_count = (opts)->batch_transforms_count,                     \
                     .download = (opts)->download,                                                 \
                     .sources = (opts)->sources,                                                   \
                     .sources_count = (opts)->sources_count })
/* The same with KILN_LENGTH_OPTIONS. */
#define KILN_LENGTH_LOADING(opts)                                                                  \
    ((KilnLoading) { .batch_size = (opts)->batch_size,                                             \
                     .drop_last = (opts)->drop_last,                                               \
                     .sampler = (opts)->sampler,                                                   \
                     .batch_transforms = (opts)->batch_transforms,                                 \
                     .batch_transforms_count = (opts)->batch_transforms_count,                     \
                     .buckets = (opts)->buckets,                                                   \
                     .buckets_count = (opts)->buckets_count,                                       \
                     .max_tokens = (opts)->max_tokens,                                             \
                     .download = (opts)->download,                                                 \
                     .sources = (opts)->sources,                                                   \
                     .sources_count = (opts)->sources_count })

/* ---- Samplers ------------------------------------------------------------------- */

/* The data that a sampler draws from; valid during each of its calls. */
typedef struct KilnSampling {
    const KilnDataset *dataset;
    int64_t n_classes;              /* of the labels; 0: no classes */
    const char *const *class_names; /* n_classes entries */
    uint64_t seed;
    const KilnPoll *poll; /* for long work. May be NULL */
} KilnSampling;

/* A sampler decides which samples an epoch takes, and in which order. The result depends only on
 * options, data, seed and epoch, so resuming needs no replay. */
struct KilnSamplerOps {
    /* Optional. Inspect the data once, and refuse unsuitable data. */
    KilnStatus (*setup)(KilnInstance *self, const KilnSampling *sampling, KilnError *err);
    /* Samples per epoch, at most UINT32_MAX. NULL: all of the data set. */
    int64_t (*count)(KilnInstance *self, const KilnSampling *sampling);
    /* Fill ret[count] with sample indices for `epoch`. If kiln_poll(sampling->poll, ...) says to
     * stop, it may return at once; the order is then not used. */
    void (*order)(KilnInstance *self, const KilnSampling *sampling, int64_t epoch, int64_t count,
                  uint32_t *ret);
    /* Optional. Bytes that `setup` and `order` allocate for these data; called before setup, for
     * the memory estimate. */
    int64_t (*memory)(KilnInstance *self, const KilnSampling *sampling);
    /* Samples are drawn: an epoch may repeat some, and epochs may differ in their samples. */
    bool draws;
};

/* Shuffle n numbers (Fisher and Yates). n is at most UINT32_MAX. */
KILN_API void kiln_rng_shuffle(KilnRng *rng, uint32_t *numbers, int64_t n);
/* The same for the order of samples; the user can stop it, and `numbers` is then not used. */
KILN_API void kiln_sampling_shuffle(const KilnSampling *sampling, KilnRng *rng, uint32_t *numbers,
                                    int64_t n);
/* The class of every sample, for a sampler's setup: ret[dataset->count]. KILN_E_MISSING if the data
 * or a sample have no class. `who` begins the message. */
KILN_API KILN_NODISCARD KilnStatus kiln_sampling_labels(const KilnSampling *sampling,
                                                        const char *who, int32_t *ret,
                                                        KilnError *err);

/* ---- Batch transforms --------------------------------------------------------------- */

/* A complete batch of the training split. */
typedef struct KilnBatchView {
    /* In which a soft label is f32 [n_classes], and varying features have the length that they are
     * padded to. */
    const KilnDataSpec *spec;
    size_t label; /* number of the feature "label"; n_features: none */
    int64_t size; /* samples */
    void *const
        *data; /* of each feature, [size, ...]; NULL: absent (KilnDataset.absent), or a text */
} KilnBatchView;

struct KilnBatchTransformOps {
    /* Optional. Refuse unsuitable data. */
    KilnStatus (*setup)(KilnInstance *self, const KilnDataSpec *spec, KilnError *err);
    /* Change the batch in place. Runs in several threads at once; `rng` is this transform's stream
     * for seed, epoch and batch. */
    KilnStatus (*apply)(KilnInstance *self, const KilnBatchView *batch, KilnRng *rng,
                        KilnError *err);
    /* It mixes labels: in training, the feature "label" is f32 [n_classes], the share of each class
     * (kiln_cross_entropy_soft), instead of i32. */
    bool soft_labels;
};

/* a := share * a + (1 - share) * b, and b likewise with the old a; n numbers each. */
KILN_API void kiln_blend(float *a, float *b, int64_t n, float share);

#endif

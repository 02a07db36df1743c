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
    KilnInstance *sampler
#define KILN_LOADING_FIELDS(T, batch_)                                                             \
    KILN_FIELD_I64(T, batch_size, batch_, 1, 1e6, "samples a batch"),                              \
        KILN_FIELD_BOOL(T, drop_last, "false",                                                     \
                        "leave out the last batch of a training epoch when it is not full"),       \
        KILN_FIELD_COMPONENT(T, sampler, KILN_KIND_SAMPLER, "shuffle",                             \
                             "which samples a training epoch takes, in which order")

/* These options, for the trainer; borrowed. */
struct KilnLoading {
    int64_t batch_size;
    bool drop_last;        /* of the training split */
    KilnInstance *sampler; /* of the training split; NULL: all samples in order */
};
#define KILN_LOADING(opts)                                                                         \
    ((KilnLoading) { .batch_size = (opts)->batch_size,                                             \
                     .drop_last = (opts)->drop_last,                                               \
                     .sampler = (opts)->sampler })

/* ---- Samplers ------------------------------------------------------------------- */

/* What a sampler draws from; lives as long as the sampler is asked. */
typedef struct KilnSampling {
    const KilnDataset *dataset;
    int64_t n_classes;              /* of the labels; 0: no classes */
    const char *const *class_names; /* n_classes entries */
    uint64_t seed;
} KilnSampling;

/* Which samples an epoch takes, in which order. It is a function of options, data, seed
 * and epoch alone, so that resuming needs no replay. */
struct KilnSamplerOps {
    /* Optional. Look at the data, once, and refuse what does not suit. */
    KilnStatus (*setup)(KilnInstance *self, const KilnSampling *sampling, KilnError *err);
    /* Samples an epoch, at most UINT32_MAX. NULL: as many as the data set has. */
    int64_t (*count)(KilnInstance *self, const KilnSampling *sampling);
    /* Fill ret[count] with indices of samples for `epoch`. */
    void (*order)(KilnInstance *self, const KilnSampling *sampling, int64_t epoch, int64_t count,
                  uint32_t *ret);
    /* Samples are drawn: an epoch may hold some twice, and others than the epoch before. */
    bool draws;
};

/* Put n numbers into a random order (Fisher and Yates). n is at most UINT32_MAX. */
KILN_API void kiln_rng_shuffle(KilnRng *rng, uint32_t *numbers, int64_t n);
/* The class of every sample, for a sampler's setup: ret[dataset->count], or KILN_E_MISSING
 * when the data have no classes or a sample has none. `who` begins the message. */
KILN_API KILN_NODISCARD KilnStatus kiln_sampling_labels(const KilnSampling *sampling,
                                                        const char *who, int32_t *ret,
                                                        KilnError *err);

#endif

/* What a datamodule yields and how: features, datasets, batches, and the
 * datamodule's own operations. */
#ifndef KILN_DATA_H
#define KILN_DATA_H

#include "kiln/component.h"
#include "kiln/rng.h"
#include "kiln/tensor.h"

#define KILN_MAX_FEATURES 8

/* One named part of a sample, e.g. "image" f32 [28, 28, 1] or "label" i32 []. */
typedef struct KilnFeature {
    const char *name;
    KilnDType dtype;
    KilnShape shape; /* of one sample; a batch puts the batch axis in front */
    /* The first axis is as long as the sample (KilnDataset.length), and shape has the
     * longest. In a batch all are brought to one length by `pad` behind them. */
    bool varies;
    double pad;
} KilnFeature;

/* What every sample looks like. Pointers belong to the datamodule's state (or
 * to the checkpoint it was read from). */
typedef struct KilnDataSpec {
    size_t n_features;
    KilnFeature features[KILN_MAX_FEATURES];
    int64_t n_classes;              /* 0: no classes */
    const char *const *class_names; /* n_classes entries */
} KilnDataSpec;

/* The feature of that name; NULL when there is none. */
KILN_API const KilnFeature *kiln_spec_feature(const KilnDataSpec *spec, const char *name);

/* The class of each sample: the feature "label", one i32 of 0 to n_classes - 1 (or below 0, which
 * losses and metrics may be told to leave out). NULL when there is no such feature. */
KILN_API const KilnFeature *kiln_spec_label(const KilnDataSpec *spec);

/* Names of `n` classes in one block: copies of `names`, or "0", "1", ... when it
 * is NULL. Owned by the caller (free); NULL when memory is out. */
KILN_API const char **kiln_class_names_copy(const char *const *names, int64_t n);

/* Choose `held` of the indices 0..n-1 by the seed, for a validation split. `ret`
 * has room for n: first the n - held that stay, then those held out, both
 * ascending. n is at most INT32_MAX. */
KILN_API KILN_NODISCARD KilnStatus kiln_hold_out(int64_t n, int64_t held, uint64_t seed,
                                                 int32_t *ret, KilnError *err);

/* Where one sample is to be written: data[i] has room for feature i. */
typedef struct KilnSample {
    void *data[KILN_MAX_FEATURES];
    int64_t length; /* of the first axis of features that vary: what KilnDataset.length said */
} KilnSample;

/* A finite, indexable set of samples. `get` is called from several threads at
 * once and must only read shared state; `rng` is this sample's own stream for
 * this epoch (augmentation). Returning KILN_E_SKIP with a message leaves the
 * sample out with one warning; any other failure stops the run. */
typedef struct KilnDataset {
    int64_t count;
    void *ctx; /* borrowed from the datamodule */
    KilnStatus (*get)(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err);
    /* Optional: a name for sample `index` (its file), for messages and predictions. */
    const char *(*name)(void *ctx, int64_t index);
    /* Optional: the class of sample `index` without reading it; -1: it has none. */
    int64_t (*label)(void *ctx, int64_t index);
    /* With a feature that varies: the length of sample `index`, without reading it. */
    int64_t (*length)(void *ctx, int64_t index);
} KilnDataset;

/* Sets of samples that a split may have. */
#define KILN_MAX_SETS 8

typedef enum KilnSplit { KILN_TRAIN, KILN_VAL, KILN_TEST, KILN_SPLIT_COUNT } KilnSplit;

/* "train", "val", "test". */
KILN_API const char *kiln_split_name(KilnSplit split);

typedef enum KilnStage {
    KILN_STAGE_FIT,     /* train and val are needed; test may be asked for later */
    KILN_STAGE_TEST,    /* only test is needed */
    KILN_STAGE_PREDICT, /* none: the spec comes from a checkpoint */
    KILN_STAGE_VALIDATE /* val is needed, or train, whose samples are then prepared as val's */
} KilnStage;

/* Passed to setup. */
typedef struct KilnDataContext {
    KilnStage stage;
    uint64_t seed;
    /* In KILN_STAGE_PREDICT what the checkpoint remembers, else NULL. */
    const KilnDataSpec *remembered;
    const KilnPoll *poll; /* for what takes long; lives as long as the datamodule. May be NULL */
} KilnDataContext;

typedef struct KilnLoading KilnLoading; /* loading.h */

/* Things that a datamodule found where it looks for samples, and does not use for one reason.
 * Texts are borrowed for the call that hands them over. */
typedef struct KilnOmission {
    int64_t count;
    const char *what;    /* in the plural: ".jpg files" */
    const char *example; /* one of them: its path, or a name that a user can look up */
    const char *reason;  /* "only .png files are read" */
} KilnOmission;

/* For KilnDataModuleOps.left_out of data in folders train, val and test: report the other folders
 * in `root` that are none of `more`, n paths. Names that start with a dot are passed over. */
KILN_API void kiln_split_folders_left_out(const char *root, const char *const more[], size_t n,
                                          void (*add)(void *ctx, const KilnOmission *omission),
                                          void *ctx);

struct KilnDataModuleOps {
    /* Open and scan the data; everything that can be wrong with it is found
     * here as far as possible. Big files may be read lazily by `dataset`. A message that begins
     * with an option ("root: x: no such folder") points to where its value was set. */
    KilnStatus (*setup)(KilnInstance *self, const KilnDataContext *context, KilnError *err);
    /* What the samples are; valid after setup, until release. */
    KilnStatus (*spec)(KilnInstance *self, KilnDataSpec *ret, KilnError *err);
    /* Optional: how many sets of samples validation or test have, at most KILN_MAX_SETS, and
     * their names; valid after setup, until release. What is logged of a set has its name behind
     * it ("val/loss/noisy"); the first one's may be "", and nothing then. NULL: one set, "". */
    size_t (*sets)(KilnInstance *self, KilnSplit split, const char *const **ret_names);
    /* The samples of one set of a split. count 0: there are none. Those of KILN_TRAIN are
     * augmented in KILN_STAGE_FIT alone. */
    KilnStatus (*dataset)(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err);
    /* Optional, for trainer.reload_dataloaders_every_n_epochs: look at the data anew, in front
     * of that epoch (a multiple of n). No dataset is in use; all are asked for again. What
     * samples are, and the sets, must stay. A run that goes on later than that is brought there
     * by one call, so it must not depend on calls before it. */
    KilnStatus (*reload)(KilnInstance *self, int64_t epoch, KilnError *err);
    /* Optional: samples from a file or folder that a user names, prepared as the
     * test split is; labels are absent (their bytes stay zero). */
    KilnStatus (*open_input)(KilnInstance *self, const char *path, KilnDataset *ret,
                             KilnError *err);
    /* How samples become batches; asked after init. */
    KilnLoading (*loading)(const KilnInstance *self);
    /* Optional. Say, at the end of an epoch, what the user should know of the reading since
     * the last call (a cache that could not be written, say). */
    void (*report)(KilnInstance *self, void (*say)(void *ctx, const char *message), void *ctx);
    /* Optional. Bytes that one thread holds, beside the batch, while it reads the most expensive
     * sample; after setup. They are counted in the run's forecast for each loader thread. */
    int64_t (*memory)(KilnInstance *self);
    /* Optional. Report what was left out of all splits, or of the input that was opened last, one
     * call of `add` for each reason; the host adds up calls with the same what and reason. Called
     * after setup, reload and open_input. The first screen of a run shows it beside the sizes of
     * the splits, the classes and the shape of samples; so do `train --plan` and summary.json. */
    void (*left_out)(KilnInstance *self, void (*add)(void *ctx, const KilnOmission *omission),
                     void *ctx);
};

#endif

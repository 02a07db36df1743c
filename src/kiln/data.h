/* What a datamodule yields and how: features, datasets, batches, and the
 * datamodule's own operations. */
#ifndef KILN_DATA_H
#define KILN_DATA_H

#include "kiln/component.h"
#include "kiln/raw.h"
#include "kiln/rng.h"
#include "kiln/tensor.h"
#include "kiln/tools/text.h"

/* What a value is, and so what may read it; with the types and axes of one sample. Bits, since what
 * a model takes may be of several kinds; a feature has exactly one. */
typedef enum KilnContent {
    KILN_IMAGE = 1,     /* f32 [height, width, channels] */
    KILN_TOKENS = 2,    /* i32 [time] */
    KILN_ROW = 4,       /* f32 or i32 [columns]: a row of a table */
    KILN_VECTOR = 8,    /* f32 [features] */
    KILN_SEQUENCE = 16, /* f32 or i32 [time, features] */
    KILN_MAP = 32,      /* f32 or i32 [height, width, channels]: a value or vector per pixel */
    KILN_LABEL = 64,    /* i32 or f32 [], [k] or [height, width]: a target */
    KILN_TEXT = 128,    /* strings on the host, for output; never in a step */
} KilnContent;

/* The name of one content ("image", "tokens", "row", ...); NULL for anything else. */
KILN_API const char *kiln_content_name(unsigned content);

/* A value that a component declares: a feature that a datamodule gives or a task needs, an input or
 * output of a model (kiln/model.h). Static. */
typedef struct KilnTensorSpec {
    const char *name;
    unsigned content; /* KilnContent; where a value is taken, several bits accept any of them */
    KilnDType dtype;
    /* A word for each axis of one sample: "height width channels"; "": a scalar; NULL: any axes. An
     * axis of an output that is called like one of an input has its size. */
    const char *axes;
    bool varies;   /* the first axis may differ between samples */
    bool optional; /* of an input, or a feature that a datamodule declares: it may be absent */
} KilnTensorSpec;

/* One column of a row. Its ids are as those of a feature; 0 and NULL: numbers. */
typedef struct KilnRowColumn {
    const char *name;
    int64_t n_ids;
    const char *const *id_names;
} KilnRowColumn;

/* One named part of a sample, e.g. "image" f32 [28, 28, 1] or "label" i32 []. */
typedef struct KilnFeature {
    const char *name;
    unsigned content; /* one KilnContent */
    KilnDType dtype;
    KilnShape shape; /* of one sample; batches add the batch axis first */
    /* The first axis varies with the sample (KilnDataset.lengths); shape has the longest. In a
     * batch all samples are padded with `pad` to one length, of this feature alone. */
    bool varies;
    double pad;
    /* Ids of an i32 feature (tokens, classes, tags, categories) are from 0 to n_ids - 1, also those
     * of `pad`. 0: unknown, or the values are numbers; of "label": the spec's classes. */
    int64_t n_ids;
    const char *const *id_names;  /* n_ids entries; NULL: they have no names */
    const KilnRowColumn *columns; /* KILN_ROW: one entry per column; NULL: all are alike */
} KilnFeature;

/* What a sample is. Pointers belong to the datamodule's state, or to the checkpoint that it was
 * read from. */
typedef struct KilnDataSpec {
    const KilnFeature *features;
    size_t n_features;
    int64_t n_classes;              /* 0: no classes */
    const char *const *class_names; /* n_classes entries */
} KilnDataSpec;

/* The feature of that name; NULL if there is none. */
KILN_API const KilnFeature *kiln_spec_feature(const KilnDataSpec *spec, const char *name);

/* Check that a feature has one content, the type and axes of it, and ids only where it has whole
 * numbers. KILN_E_SHAPE with what the content needs. */
KILN_API KILN_NODISCARD KilnStatus kiln_feature_check(const KilnFeature *feature, KilnError *err);
/* Check each feature, that each has a name of its own, and that the ids of "label" are the
 * classes. */
KILN_API KILN_NODISCARD KilnStatus kiln_spec_check(const KilnDataSpec *spec, KilnError *err);

/* The feature "label": one i32 from 0 to n_classes - 1, or -100 for samples that losses and metrics
 * ignore (KilnCrossEntropy.ignore_index sets another number). NULL if there is no such feature. */
KILN_API const KilnFeature *kiln_spec_label(const KilnDataSpec *spec);

/* The feature "labels", of samples with any number of labels: f32 [n_classes], 1 for each class
 * that the sample has, else 0. NULL if there is no such feature. */
KILN_API const KilnFeature *kiln_spec_labels(const KilnDataSpec *spec);

/* The number of ids of an i32 feature of the spec, and their names (NULL: none); of "label" its
 * classes. 0: unknown. */
KILN_API int64_t kiln_spec_ids(const KilnDataSpec *spec, const KilnFeature *feature,
                               const char *const **ret_names);

/* Names of `n` classes in one block: copies of `names`, or "0", "1", ... if it is NULL. Owned by
 * the caller (free); NULL when memory is out. */
KILN_API const char **kiln_class_names_copy(const char *const *names, int64_t n);

/* Choose `held` of the indices 0..n-1 by the seed, for a validation split. `ret` has room for n:
 * first the n - held others, then those held out, both ascending. n is at most INT32_MAX. */
KILN_API KILN_NODISCARD KilnStatus kiln_hold_out(int64_t n, int64_t held, uint64_t seed,
                                                 int32_t *ret, KilnError *err);

/* Where to write a sample. Both arrays have an entry for each feature of the spec. Of a text,
 * data[i] is a char **: set it to a string from malloc, which the batch frees; NULL: none. */
typedef struct KilnSample {
    void *const *data; /* room for feature i; of a varying one, for lengths[i]. NULL: absent */
    /* Of varying features: what KilnDataset.lengths said, to be left as it is. Without that
     * function, and in preprocess, they are to be set, and there is room for the longest sample. */
    int64_t *lengths;
} KilnSample;

/* A finite, indexable set of samples. `get` runs in several threads at once and must only read
 * shared state; `rng` is the sample's own stream for this epoch (augmentation). KILN_E_SKIP with a
 * message leaves the sample out: the run warns of the first one with a message (after the sample's
 * name and ": "), and counts all in the data report. Any other failure stops the run. */
typedef struct KilnDataset {
    int64_t count;
    void *ctx; /* borrowed from the datamodule */
    KilnStatus (*get)(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err);
    /* Optional: a name for sample `index` (its file), for messages and predictions. */
    const char *(*name)(void *ctx, int64_t index);
    /* Optional: the class of sample `index` without reading it; -1: it has none. */
    int64_t (*label)(void *ctx, int64_t index);
    /* Optional, with varying features: their lengths in sample `index`, without reading it. `ret`
     * has an entry for each feature of the spec, all 0; those of other features stay 0. NULL: `get`
     * sets KilnSample.lengths, and batches are padded after reading; training samples can't be
     * grouped by length then (datamodule.buckets). */
    void (*lengths)(void *ctx, int64_t index, int64_t *ret);
    /* Names of features that its samples lack (labels of a test split that has none), ending with
     * NULL; NULL: they have all. A step that reads one anyway is refused before the run. */
    const char *const *absent;
} KilnDataset;

/* Whether the samples have the feature of that name, one of the spec. */
KILN_API bool kiln_dataset_has(const KilnDataset *dataset, const char *name);

/* A column of a table: numbers, or texts. */
typedef struct KilnColumn {
    const char *name;
    KilnDType dtype;          /* of `data` */
    const void *data;         /* [n_rows]; NULL: texts */
    const char *const *texts; /* [n_rows] if there is no data; NULL entries are missing */
} KilnColumn;

/* All samples of a set at once, for modules that are no network (trees). */
typedef struct KilnTable {
    int64_t n_rows;
    const KilnColumn *columns;
    size_t n_columns;
    size_t label; /* number of the column to predict; n_columns: none */
} KilnTable;

/* A table of all samples of `dataset`, for KilnDataModuleOps.table: a column for each text, and for
 * each number of rows, vectors and labels; other features, and those that vary, are left out. The
 * columns of feature x are called as KilnFeature.columns says, or "x.0", "x.1", ... Owned by the
 * caller (kiln_table_free). */
KILN_API KILN_NODISCARD KilnStatus kiln_table_new(const KilnDataSpec *spec,
                                                  const KilnDataset *dataset, KilnTable **ret,
                                                  KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_table_free(KilnTable *table);

/* The maximum number of sets in a split. */
#define KILN_MAX_SETS 8

typedef enum KilnSplit { KILN_TRAIN, KILN_VAL, KILN_TEST, KILN_SPLIT_COUNT } KilnSplit;

/* "train", "val", "test". */
KILN_API const char *kiln_split_name(KilnSplit split);

typedef enum KilnStage {
    KILN_STAGE_FIT,     /* needs train and val, and maybe test later */
    KILN_STAGE_TEST,    /* needs test */
    KILN_STAGE_PREDICT, /* needs no split: the spec comes from a checkpoint */
    KILN_STAGE_VALIDATE /* needs val; or train, prepared as val */
} KilnStage;

/* All values of one feature in a set, in memory that the embedding program owns and does not change
 * until the run ends. */
typedef struct KilnArray {
    const char *name; /* of the feature */
    KilnDType dtype;  /* of `data`; the feature's, or one whose values it can represent */
    /* Sample after sample in row-major order, varying ones in their own lengths; of KILN_TEXT char
     * *[n]. */
    const void *data;
    const int64_t *lengths; /* of a varying feature [n]; else NULL */
} KilnArray;

typedef struct KilnArraySet {
    int64_t n;               /* samples */
    const KilnArray *arrays; /* labels and texts may be absent */
    size_t n_arrays;
} KilnArraySet;

/* Data of the program that embeds kiln (KilnRunEnv.data), which datamodule arrays reads. */
typedef struct KilnMemoryData {
    KilnDataSpec spec; /* class_names may be NULL: "0", "1", ... */
    KilnArraySet sets[KILN_SPLIT_COUNT];
} KilnMemoryData;

/* Passed to setup. */
typedef struct KilnDataContext {
    KilnStage stage;
    uint64_t seed;
    /* In KILN_STAGE_PREDICT the spec from the checkpoint, else NULL. Lives as long as the
     * datamodule. */
    const KilnDataSpec *remembered;
    const KilnPoll *poll; /* for long work; lives as long as the datamodule. May be NULL */
    /* The folder with what save_preprocessing wrote into the checkpoint that a run continues from,
     * is evaluated or predicts: setup reads it instead of fitting to the data. NULL: there is no
     * checkpoint, or it has none. */
    const char *fitted;
    /* Of the embedding program; lives as long as the datamodule. NULL: it gives none. */
    const KilnMemoryData *data;
} KilnDataContext;

typedef struct KilnLoading KilnLoading; /* loading.h */

/* Things that a datamodule found among its samples and leaves out, for one reason. Texts are
 * borrowed for the call. */
typedef struct KilnOmission {
    int64_t count;
    const char *what;    /* in the plural: ".jpg files" */
    const char *example; /* one of them: its path, or a name that a user can look up */
    const char *reason;  /* "only .png files are read" */
} KilnOmission;

/* How serious something is that a check of data found. */
typedef enum KilnCheckLevel {
    KILN_CHECK_PASSED,
    KILN_CHECK_NOTE,    /* good to know */
    KILN_CHECK_WARNING, /* it may harm training, or make its measurements wrong */
    KILN_CHECK_ERROR    /* it does */
} KilnCheckLevel;

/* The result of one check of data. Texts are borrowed for the call. */
typedef struct KilnDataFinding {
    KilnCheckLevel level;
    const char *check;  /* what was checked, in a few words: "missing values" */
    int64_t count;      /* of what was found: rows, files, columns; 0: nothing */
    const char *text;   /* what was found, and where; or that it is as it should be */
    const char *advice; /* what to do: an option, a command; NULL: nothing */
} KilnDataFinding;

/* For KilnDataModuleOps.left_out of data in folders train, val and test: report all other folders
 * in `root`, except `more`, n paths, and names that start with a dot. */
KILN_API void kiln_split_folders_left_out(const char *root, const char *const more[], size_t n,
                                          void (*add)(void *ctx, const KilnOmission *omission),
                                          void *ctx);

/* The value of an option that setup inferred from the data. Texts are borrowed for the call. */
typedef struct KilnInferredOption {
    const char *option; /* "target_type", of the datamodule */
    const char *key;    /* of an option that is a mapping, the entry; NULL: the value is the
                         * option's */
    const char *value;  /* as YAML writes it: "number" */
    const char *from;   /* what it was inferred from: a file */
} KilnInferredOption;

struct KilnDataModuleOps {
    /* The features, as far as they are known without data: a config whose task and model do not fit
     * them is refused before data is read. NULL: they depend on the data. */
    const KilnTensorSpec *features;
    size_t n_features;
    /* Open and scan the data, and report errors in it as far as possible; `dataset` may read big
     * files lazily. A message that begins with an option ("root: x: no such folder"), or
     * with the path that an option has (kiln_error_errno), is reported with the origin of its
     * value. */
    KilnStatus (*setup)(KilnInstance *self, const KilnDataContext *context, KilnError *err);
    /* Describe a sample; valid from setup until release. */
    KilnStatus (*spec)(KilnInstance *self, KilnDataSpec *ret, KilnError *err);
    /* Optional: the number of sets of a validation or test split, at most KILN_MAX_SETS, and their
     * names; valid from setup until release. Metrics of a set end with its name
     * ("val/loss/noisy"), which may be "" for the first set. NULL: one set, "". */
    size_t (*sets)(KilnInstance *self, KilnSplit split, const char *const **ret_names);
    /* The samples of one set of a split; count may be 0. KILN_TRAIN is augmented only in
     * KILN_STAGE_FIT. */
    KilnStatus (*dataset)(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err);
    /* Optional, for trainer.reload_dataloaders_every_n_epochs: read the data again before that
     * epoch (a multiple of n). No dataset is in use; all are requested again. The spec and the sets
     * must not change. A resumed run makes only the latest of these calls, so the result must not
     * depend on earlier ones. */
    KilnStatus (*reload)(KilnInstance *self, int64_t epoch, KilnError *err);
    /* Optional: what preprocess takes; valid from setup until release. Returns their number. */
    size_t (*raw_fields)(KilnInstance *self, const KilnRawField **ret);
    /* With raw_fields: make features of a raw sample, exactly as the test split prepares them. Runs
     * in several threads at once. `values` has an entry for each of raw_fields, in their order, of
     * a type that it takes; type 0: an optional one is absent. Features of content KILN_LABEL are
     * absent, all others must be written; of varying ones there is room for the longest, and
     * sample->lengths is to be set. */
    KilnStatus (*preprocess)(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                             KilnError *err);
    /* Optional, with preprocess: the raw samples of a user's file or folder, in a format of the
     * datamodule's own. Without it the trainer reads by raw_fields: a file, or all files below a
     * folder, where one field takes paths. */
    KilnStatus (*open_input)(KilnInstance *self, const char *path, KilnRawSet *ret, KilnError *err);
    /* Optional: write what setup fitted to the training data (a vocabulary, means) as files into
     * the empty folder `dir`, without folders in it. They become part of every checkpoint, also of
     * those with weights only, and KilnDataContext.fitted of a later setup. Called between batches,
     * while other threads may read samples: what was fitted is constant from setup to release, also
     * through reload. */
    KilnStatus (*save_preprocessing)(KilnInstance *self, const char *dir, KilnError *err);
    /* How samples become batches: fill the zeroed *ret (KILN_LOADING). Called after init. */
    void (*loading)(const KilnInstance *self, KilnLoading *ret);
    /* Optional. At the end of an epoch, print what the user should know since the last call (a
     * cache that could not be written, say). */
    void (*report)(KilnInstance *self, void (*say)(void *ctx, const char *message), void *ctx);
    /* Optional, after setup. Bytes that a thread needs, besides the batch, to read the largest
     * sample. The memory estimate counts them for each loader thread. */
    int64_t (*memory)(KilnInstance *self);
    /* Optional. Report what was left out of all splits, or of what open_input opened last: one call
     * of `add` per reason; calls with the same what and reason are summed. Called after setup,
     * reload and open_input. The data report of a run, `train --plan` and summary.json show it. */
    void (*left_out)(KilnInstance *self, void (*add)(void *ctx, const KilnOmission *omission),
                     void *ctx);
    /* Optional: one set of a split as a table, not augmented, its rows in the order of its samples.
     * Borrowed until reload or release. */
    KilnStatus (*table)(KilnInstance *self, KilnSplit split, size_t set, KilnTable *ret,
                        KilnError *err);
    /* Optional, before setup (Lightning's prepare_data): write to disk what all processes of a run
     * read, such as an index. Only rank 0 calls it, and the other ranks wait: keep nothing in
     * `self`. Not called in KILN_STAGE_PREDICT, which has no data. */
    KilnStatus (*prepare_data)(KilnInstance *self, const KilnDataContext *context, KilnError *err);
    /* Optional: the tokenizer that made the feature "tokens", ready for use from setup to release
     * (kiln/tokenizer.h). */
    const KilnInstance *(*tokenizer)(const KilnInstance *self);
    /* Optional, after setup: a line for each thing that setup found out about files because no
     * option says it, such as their format. The data report of a run and `train --plan` show
     * them. */
    void (*files)(KilnInstance *self, void (*add)(void *ctx, const char *text), void *ctx);
    /* Optional, after setup: a line for each column of a table, with what setup found it to be. The
     * same report shows them as they are, so that they may be aligned with blanks. */
    void (*columns)(KilnInstance *self, void (*add)(void *ctx, const char *text), void *ctx);
    /* Optional, after setup in KILN_STAGE_FIT, for `kiln check-data`: check what the datamodule
     * alone knows, such as its files or columns. One call of `add` per check, also if it passed.
     * What is in the samples is checked for every datamodule without this function. */
    KilnStatus (*check)(KilnInstance *self, const KilnPoll *poll,
                        void (*add)(void *ctx, const KilnDataFinding *finding), void *ctx,
                        KilnError *err);
    /* Optional, after setup in KILN_STAGE_FIT without KilnDataContext.fitted: the options that the
     * config leaves to the data, with what they turned out to be; given these values, setup comes
     * to the same result. The run writes them into its config, so that a resumed run and a copy of
     * the config have them, whatever becomes of the files. */
    void (*inferred)(KilnInstance *self, void (*add)(void *ctx, const KilnInferredOption *option),
                     void *ctx);
    /* Optional, with preprocess, for explanations: append the text that each id of feature number
     * `feature` stands for in the sample that preprocess makes of these values, each followed by a
     * NUL (kiln_tokenizer_spell). Runs in several threads at once. NULL: an id alone says it, as
     * `tokenizer` decodes it or the feature's id_names have it. */
    KilnStatus (*spell)(KilnInstance *self, const KilnRawValue *values, size_t feature,
                        KilnText *ret, KilnError *err);
    /* Processes that are forked after setup may use it, each for a run of its own: it keeps no
     * threads, pipes or connections, no lock that is taken, and no open file whose position it
     * uses, and depends on nothing but its options and what KilnDataContext says. Jobs of a sweep
     * then set up the same data once. */
    bool shareable;
};

#endif

/* The classes of a data set, and the class or labels of each of its samples: their options, the
 * classes collected from the training rows or read from a checkpoint, and the feature "label" or
 * "labels".
 *
 * In setup: kiln_data_labels_open(), kiln_data_labels_check() for each row, and, when all training
 * rows are known, kiln_data_labels_add() for each sample (datamodules/labeled_text.c). */
#ifndef KILN_DATA_LABELS_H
#define KILN_DATA_LABELS_H

#include "kiln/tools/row_labels.h"
#include "kiln/data.h"

/* ---- Options --------------------------------------------------------------------------------- */

/* Members of a datamodule's options struct, and their rows in the options table. `thing_`: what a
 * row has labels of, "an image"; `forms_`: further forms of several labels, "several words, ". */
#define KILN_LABEL_OPTIONS                                                                         \
    char *label, *label_separator;                                                                 \
    char **classes, **label_columns;                                                               \
    size_t classes_count, label_columns_count;                                                     \
    bool multilabel
#define KILN_LABEL_FIELDS(T, thing_, forms_)                                                       \
    KILN_FIELD_STR(T, label, "label", "the column of the class, or of the labels"),                \
        KILN_FIELD_BOOL(T, multilabel, "false",                                                    \
                        thing_ " has any number of labels: a list of JSON, " forms_                \
                               "or as the next two options say"),                                  \
        KILN_FIELD_STR_OPT(                                                                        \
            T, label_separator, "null",                                                            \
            "with multilabel: the text between the labels in their column, such as \"|\""),        \
        KILN_FIELD_STR_LIST(T, label_columns, "[]",                                                \
                            "with multilabel: a column for each label, with 1 where " thing_       \
                            " has it and 0 where not, instead of the column label"),               \
        KILN_FIELD_STR_LIST(T, classes, "[]",                                                      \
                            "names of the classes; empty: those of the training files, sorted")

/* The options, borrowed. */
typedef struct KilnLabelSource {
    const char *label;     /* the column, for messages */
    const char *separator; /* KilnLabelFormat.separator */
    const char *end;       /* KilnLabelFormat.end; not of KILN_LABEL_SOURCE */
    char *const *classes;  /* names of all classes; none: those of the training rows */
    size_t n_classes;
    char *const *columns; /* KilnLabelFormat.columns; they are the classes */
    size_t n_columns;
    bool several; /* a sample has any number of labels; else one class */
} KilnLabelSource;
#define KILN_LABEL_SOURCE(opts)                                                                    \
    ((KilnLabelSource) { .label = (opts)->label,                                                   \
                         .separator = (opts)->label_separator,                                     \
                         .classes = (opts)->classes,                                               \
                         .n_classes = (opts)->classes_count,                                       \
                         .columns = (opts)->label_columns,                                         \
                         .n_columns = (opts)->label_columns_count,                                 \
                         .several = (opts)->multilabel })

/* For KilnComponent.check: KILN_E_RANGE for options that exclude each other, with the name of
 * one. */
KILN_API KILN_NODISCARD KilnStatus kiln_label_source_check(const KilnLabelSource *source,
                                                           const char **ret_option, KilnError *err);
/* How many columns of a row have its labels. */
KILN_API size_t kiln_label_source_width(const KilnLabelSource *source);
/* Write the names of these columns, and of the options that name them (KilnTextWanted). */
KILN_API void kiln_label_source_columns(const KilnLabelSource *source, const char **ret_columns,
                                        const char **ret_options);

/* ---- Labels ---------------------------------------------------------------------------------- */

/* Reading is possible from any number of threads. A zeroed one may be released. */
typedef struct KilnDataLabels {
    KilnLabelSource source;
    KilnLabelFormat format;
    KilnNameList classes;
    bool collects; /* classes, from the training rows */
    KilnLabelNumbers splits[KILN_SPLIT_COUNT];
} KilnDataLabels;

/* Begin with the classes of the checkpoint if there is one (context->fitted), of the options, or
 * with none, to collect them. `source` is copied, what it points to is borrowed. */
KILN_API KILN_NODISCARD KilnStatus kiln_data_labels_open(KilnDataLabels *labels,
                                                         const KilnLabelSource *source,
                                                         const KilnDataContext *context,
                                                         KilnError *err);
/* Check the labels of a row (fields[kiln_label_source_width()]), and collect the classes of
 * training rows. Errors as of kiln_row_labels_check(). */
KILN_API KILN_NODISCARD KilnStatus kiln_data_labels_check(KilnDataLabels *labels, KilnSplit split,
                                                          const KilnString *fields, KilnError *err);
/* Append the labels of a split's next sample, which were checked. KILN_E_NOMEM. */
KILN_API KILN_NODISCARD KilnStatus kiln_data_labels_add(KilnDataLabels *labels, KilnSplit split,
                                                        const KilnString *fields, KilnError *err);
/* The feature "label" i32 [], or "labels" f32 [classes]. */
KILN_API KilnFeature kiln_data_labels_feature(const KilnDataLabels *labels);
/* The class of sample i; -1 if samples have any number of labels. */
KILN_API int64_t kiln_data_labels_class(const KilnDataLabels *labels, KilnSplit split, int64_t i);
/* Write the value of the feature for sample i. */
KILN_API void kiln_data_labels_write(const KilnDataLabels *labels, KilnSplit split, int64_t i,
                                     void *to);
/* Write the classes to classes.txt in `dir` (KilnDataModuleOps.save_preprocessing). */
KILN_API KILN_NODISCARD KilnStatus kiln_data_labels_save(const KilnDataLabels *labels,
                                                         const char *dir, KilnError *err);
/* Free the memory; zeroed afterwards. */
KILN_API void kiln_data_labels_release(KilnDataLabels *labels);

/* Both features, for KilnDataModuleOps.features: a datamodule gives one of them. */
#define KILN_LABEL_SPECS                                                                           \
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "", .optional = true },   \
    {                                                                                              \
        .name = "labels", .content = KILN_LABEL, .dtype = KILN_F32, .axes = "classes",             \
        .optional = true                                                                           \
    }

#endif

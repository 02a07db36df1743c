/* What a datamodule of tables is made of: rows of files or of an SQL query, the kinds of their
 * columns, and what is fitted to the training rows and saved with the checkpoint: means and
 * quantiles of numbers, categories, classes.
 *
 * A sample has "x" f32 [numbers], "ids" i32 [categories], "tokens" i32 [time], and "label" i32 []
 * or "target" f32 []; features without columns are left out (datamodules/table.c). */
#ifndef KILN_TABLE_DATA_H
#define KILN_TABLE_DATA_H

#include "kiln/tools/text_data.h"

/* What a column is. */
typedef enum KilnColumnKind {
    KILN_COLUMN_NUMBER,
    KILN_COLUMN_CATEGORY, /* one of the texts that the training rows have */
    KILN_COLUMN_DATE,     /* YYYY-MM-DD, with or without a time */
    KILN_COLUMN_TEXT,     /* free text; part of a sample if there is a tokenizer */
    KILN_COLUMN_IGNORED   /* no part of a sample */
} KilnColumnKind;
/* number, category, date, text, ignored. */
KILN_API_TABLE const KilnChoice kiln_column_kinds[6];

typedef enum KilnTargetType {
    KILN_TARGET_AUTO,    /* classes: texts, or at most 20 different whole numbers */
    KILN_TARGET_CLASSES, /* the feature "label" */
    KILN_TARGET_NUMBER   /* the feature "target" */
} KilnTargetType;
KILN_API_TABLE const KilnChoice kiln_target_types[4];

typedef enum KilnTableScaling {
    KILN_SCALING_NONE,
    KILN_SCALING_STANDARD, /* mean 0, deviation 1, as scikit-learn's StandardScaler */
    /* To a normal distribution by quantiles, as scikit-learn's QuantileTransformer with the noise
     * and the number of quantiles of Gorishniy et al. (2021): max(min(rows / 30, 1000), 10). */
    KILN_SCALING_QUANTILE
} KilnTableScaling;
KILN_API_TABLE const KilnChoice kiln_table_scalings[4];

typedef enum KilnTableMissing {
    KILN_MISSING_MEAN, /* a missing number is the mean of the training rows */
    KILN_MISSING_NAN   /* it stays NaN, for trees */
} KilnTableMissing;
KILN_API_TABLE const KilnChoice kiln_table_missing[3];

/* The options, borrowed. */
typedef struct KilnTableSource {
    const KilnTextFiles *files;
    KilnRecordFormat format;  /* auto, csv, tsv, jsonl */
    const char *const *names; /* of the columns; KilnRecordsSpec.columns */
    size_t n_names;
    const char *delimiter;
    const char *decimal; /* "." or "," */
    KilnTextEncoding encoding;
    const char *query; /* the files are SQLite databases, and these are the rows; NULL: no */
    KilnOnError on_error;
    const char *cache;
    const char *const *missing_values;
    size_t n_missing_values;
    const KilnPairI64 *kinds; /* KilnColumnKind by name; others are inferred */
    size_t n_kinds;
    const char *target; /* NULL: no target */
    KilnTargetType target_type;
    const char *target_end; /* a class ends before this text; NULL: it is the whole value */
    const char *group;      /* the column of the feature "query"; NULL: none */
    KilnTableMissing missing;
    bool missing_indicators; /* "x" gets a column of 0 and 1 for each number that may be missing */
    KilnTableScaling scaling;
    /* The parts of the training files' rows that validation and test get if they have no files. */
    double val_fraction, test_fraction;
    bool stratify;             /* classes have the same shares in each */
    const int64_t *split_seed; /* of these parts; NULL: the run's seed */
    /* Makes "tokens" i32 [time] of the columns of texts, at most max_length; NULL: they are left
     * out. */
    KilnInstance *tokenizer;
    int64_t max_length;
    /* Instead of fractions, the column that says "train", "val" or "test"; NULL: none. */
    const char *split_column;
    /* The column of numbers or dates whose largest values are held out; NULL: rows are drawn. */
    const char *split_order;
    /* The column of a group, whose last row is the test's and the one before it validation's,
     * instead of fractions; NULL: none. Without split_order in the order of the files. */
    const char *leave_last_out;
    /* Buckets by column: ids of these categories are hashes of their values, 2 + XXH3 of the text's
     * bytes (64 bits, seed 0) modulo the buckets (Weinberger et al., "Feature hashing for large
     * scale multitask learning", 2009). A column that is named is a category. */
    const KilnPairI64 *hash_buckets;
    size_t n_hash_buckets;
} KilnTableSource;

/* The samples of all splits. Any number of threads may read it. */
typedef struct KilnTableData KilnTableData;

/* Read the rows that `context->stage` needs. In KILN_STAGE_FIT kinds are inferred and everything is
 * fitted, from training rows alone, unless `context->fitted` has it. Rows that can't be samples
 * stop it with file and line, or are left out: too few columns, a wrong encoding, no target, a text
 * in a column of numbers. `source` must outlive the data. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_table_data_open(const KilnTableSource *source,
                                                        const KilnDataContext *context,
                                                        KilnTableData **ret, KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_table_data_free(KilnTableData *data);

/* KilnDataModuleOps.spec; points into the data. */
KILN_API void kiln_table_data_spec(const KilnTableData *data, KilnDataSpec *ret);
/* KilnDataModuleOps.dataset, and .table: owned by the data. */
KILN_API void kiln_table_data_dataset(KilnTableData *data, KilnSplit split, KilnDataset *ret);
KILN_API KILN_NODISCARD KilnStatus kiln_table_data_table(KilnTableData *data, KilnSplit split,
                                                         KilnTable *ret, KilnError *err);
/* KilnDataModuleOps.raw_fields, .preprocess and .open_input: the columns of a row by name, as texts
 * or numbers. A column may be absent if it had missing values in training. */
KILN_API size_t kiln_table_data_raw_fields(const KilnTableData *data, const KilnRawField **ret);
KILN_API KILN_NODISCARD KilnStatus kiln_table_data_preprocess(const KilnTableData *data,
                                                              const KilnRawValue *values,
                                                              KilnSample *sample, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_table_data_open_input(KilnTableData *data, const char *path,
                                                              KilnRawSet *ret, KilnError *err);
/* KilnDataModuleOps.save_preprocessing: writes table.json into `dir`. */
KILN_API KILN_NODISCARD KilnStatus kiln_table_data_save(const KilnTableData *data, const char *dir,
                                                        KilnError *err);
/* KilnDataModuleOps.columns: what each column is and has. */
KILN_API void kiln_table_data_columns(const KilnTableData *data,
                                      void (*add)(void *ctx, const char *text), void *ctx);
/* KilnDataModuleOps.inferred: the kinds of columns, as entries of the option `columns`, and
 * `target_type`. */
KILN_API void kiln_table_data_inferred(const KilnTableData *data,
                                       void (*add)(void *ctx, const KilnInferredOption *option),
                                       void *ctx);
/* KilnDataModuleOps.files: values that the training rows lack, and what looks like a mistake in
 * the data. */
KILN_API void kiln_table_data_notes(const KilnTableData *data,
                                    void (*add)(void *ctx, const char *text), void *ctx);
/* KilnDataModuleOps.check: columns that are constant or ids, missing values, columns that give the
 * target away, values that training lacks, columns that differ between splits. */
KILN_API KILN_NODISCARD KilnStatus kiln_table_data_check(
    const KilnTableData *data, const KilnPoll *poll,
    void (*add)(void *ctx, const KilnDataFinding *finding), void *ctx, KilnError *err);
/* KilnDataModuleOps.left_out: rows that were skipped. */
KILN_API void kiln_table_data_left_out(const KilnTableData *data,
                                       void (*add)(void *ctx, const KilnOmission *omission),
                                       void *ctx);

#endif

/* The samples of a table. */
#ifndef KILN_DATA_TABLE_TABLE_DATA_H
#define KILN_DATA_TABLE_TABLE_DATA_H

#include "data/raw/raw_input.h"
#include "data/table/source.h"

/* ---- Samples --------------------------------------------------------------------------------- */

/* Rows that were skipped for one reason. */
typedef struct KilnTableSkipped {
    int64_t count;
    char example[256], reason[512];
} KilnTableSkipped;
enum { KILN_SKIP_REASONS = 5 };

/* One split. */
typedef struct KilnTableRows {
    KilnTableData *data;
    KilnSplit split, source; /* the files that have its rows */
    int64_t n;
    int64_t *rows;   /* [n]: in its source's records, for their places */
    float *x;        /* [n, numbers], by kiln_zeros */
    int32_t *ids;    /* [n, categories] */
    int32_t *labels; /* [n]; NULL: numbers, or none */
    float *targets;
    int32_t *queries;
    int32_t *tokens;       /* [n, max_length]; NULL: there are no texts */
    int64_t *lengths;      /* [n], of these */
    bool no_target;        /* the source lacks it, or has no value of it */
    const char *absent[4]; /* KilnDataset.absent */
    char place[512];
    KilnTable *table;
} KilnTableRows;

struct KilnTableData {
    KilnTableSource source;
    const KilnPoll *poll;
    KilnCellRules rules;
    KilnOpenSource sources[KILN_SPLIT_COUNT];
    KilnTablePlan plan;
    KilnTableRows splits[KILN_SPLIT_COUNT];
    KilnTableSkipped skipped[KILN_SPLIT_COUNT][KILN_SKIP_REASONS];
    KilnFeature features[5];
    size_t n_features;
    int x, ids, tokens, target, query; /* numbers of features; -1: none */
    KilnRowColumn *number_columns, *category_columns;
    KilnRawField *fields; /* one for each column that is read, in the order of the plan */
    size_t *field_columns;
    size_t n_fields;
    int64_t *field_of; /* of each column of the plan; -1: none */
    KilnArena arena;   /* names */
    char **notes;      /* warnings */
    size_t n_notes, notes_capacity;
    KilnRawInput input;
};

/* Whether a column of the plan is one of the texts that make "tokens"; whether there is one.
 * (texts.c) */
bool kiln_table_is_text(const KilnTableData *data, size_t c);
bool kiln_table_has_texts(const KilnTableData *data);
/* Train the tokenizer on rows, read it from a checkpoint, or save it; nothing without texts. */
KILN_NODISCARD KilnStatus kiln_table_train_tokenizer(const KilnTableData *data,
                                                     const KilnCells *cells,
                                                     const KilnCellColumn *columns,
                                                     KilnRowList rows, KilnError *err);
KILN_NODISCARD KilnStatus kiln_table_open_tokenizer(const KilnTableData *data, const char *fitted,
                                                    KilnError *err);
KILN_NODISCARD KilnStatus kiln_table_save_tokenizer(const KilnTableData *data, const char *dir,
                                                    KilnError *err);
/* Make "tokens" of all rows of a split, or of one raw sample. */
KILN_NODISCARD KilnStatus kiln_table_fill_tokens(KilnTableRows *rows, const KilnCells *cells,
                                                 const KilnCellColumn *columns, KilnRowList list,
                                                 KilnError *err);
KILN_NODISCARD KilnStatus kiln_table_encode_raw(const KilnTableData *data,
                                                const KilnRawValue *values, KilnSample *sample,
                                                KilnError *err);
/* Append a warning. */
void kiln_table_note(KilnTableData *data, const char *format, ...) KILN_PRINTF(2, 3);
/* Look for columns that give the target away. (leakage.c) */
KILN_NODISCARD KilnStatus kiln_table_find_leaks(KilnTableData *data, const KilnCells *cells,
                                                const KilnCellColumn *columns, KilnRowList rows,
                                                KilnError *err);
/* Make the samples of a split from rows of its source's cells; plan and features are there.
 * (fill.c) */
KILN_NODISCARD KilnStatus kiln_table_fill(KilnTableRows *rows, const KilnCells *cells,
                                          const KilnCellColumn *columns, KilnRowList list,
                                          KilnError *err);
/* The class of a cell of the target that is there; -1: it is none of training. */
int32_t kiln_table_class(const KilnTableData *data, const KilnDictionary *dictionary,
                         KilnCell cell);
/* What to do about a row that can't be a sample: end with it, or count it. (check_rows.c) */
KILN_NODISCARD KilnStatus kiln_table_skip(KilnTableData *data, KilnSplit source,
                                          const KilnError *why, KilnError *err);
/* The splits' rows, and what is fitted to those of training. (load.c) */
KILN_NODISCARD KilnStatus kiln_table_load(KilnTableData *data, const KilnDataContext *context,
                                          KilnError *err);
/* Divide the rows of the training files among the splits that have no files; lists[split] is
 * allocated. (split.c) */
typedef struct KilnSplitList {
    KilnSplit source;
    int64_t *rows; /* ascending */
    int64_t n;
} KilnSplitList;
typedef struct KilnSplitBy {
    int64_t name, order, last_of; /* split_column, split_order, leave_last_out; -1: not given */
    uint64_t seed;
} KilnSplitBy;
KILN_NODISCARD KilnStatus kiln_table_split(const KilnTableData *data, const KilnCells *cells,
                                           const KilnCellColumn *columns, const KilnSplitBy *by,
                                           KilnSplitList lists[KILN_SPLIT_COUNT], KilnError *err);
/* Make features and raw fields of the plan. (features.c) */
KILN_NODISCARD KilnStatus kiln_table_features(KilnTableData *data, KilnError *err);

#endif

/* What the files of tables share. */
#ifndef KILN_DATA_TABLE_TABLE_INTERNAL_H
#define KILN_DATA_TABLE_TABLE_INTERNAL_H

#include "data/table/cells/cells.h"
#include "kiln/tools/table_data.h"
#include "kiln/tools/text.h"

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Columns by name, while rows are read. */
typedef struct KilnCellColumn {
    const char *name;          /* borrowed from the table */
    bool as_text;              /* numbers are texts, too */
    KilnDictionary dictionary; /* of all sources */
} KilnCellColumn;

/* The cells of the rows of one source. */
typedef struct KilnCells {
    int64_t n_rows;
    size_t n_columns;
    KilnCell **cells; /* of each column, [n_rows]; NULL: this source lacks it */
    int64_t *rows;    /* [n_rows]: numbers of the rows in the source, from 0 */
    void *block;      /* what cells point into */
} KilnCells;

/* A zeroed one can be released. (cell_columns.c) */
void kiln_cells_release(KilnCells *cells);
/* Allocate n rows of the columns for which `has` says so (NULL: of all). */
KILN_NODISCARD KilnStatus kiln_cells_init(KilnCells *cells, int64_t n_rows, size_t n_columns,
                                          const bool *has, KilnError *err);
/* Room for `room` rows, with those that are there. */
KILN_NODISCARD KilnStatus kiln_cells_reserve(KilnCells *cells, int64_t room, KilnError *err);
/* Keep the rows that are not marked. */
void kiln_cells_drop(KilnCells *cells, const uint8_t *bad);

/* How rows become cells. */
typedef struct KilnCellReader {
    const KilnRecords *records;
    const KilnCellRules *rules;
    KilnCellColumn *columns; /* dictionaries get the texts */
    size_t n_columns;
    const int64_t *places; /* of each column of the records, the number in `columns`; -1: skipped */
    size_t n_places;
    const KilnPoll *poll;
} KilnCellReader;

/* Read all rows, in all threads, into ret, which has room for them. bad[row] is set where a row
 * can't be read; its message is kiln_cell_reader_why. */
KILN_NODISCARD KilnStatus kiln_cell_reader_run(const KilnCellReader *reader, KilnCells *ret,
                                               uint8_t *bad, KilnError *err);
/* Why a row can't be read, with its place. */
KilnStatus kiln_cell_reader_why(const KilnCellReader *reader, int64_t row, KilnError *err);

/* The rows of an SQL query. Names are the query's; `add_column` is called for each before the first
 * row, and `add_row` (NULL: rows are not read) for each row with a text per column (data NULL:
 * missing). KILN_E_MISSING: built
 * without SQLite. (query.c) */
typedef struct KilnQueryRows {
    void *ctx;
    KilnStatus (*add_column)(void *ctx, const char *name, KilnError *err);
    KilnStatus (*add_row)(void *ctx, const KilnString *values, size_t n, KilnError *err);
} KilnQueryRows;
/* KILN_E_MISSING: this kiln was built without SQLite. */
KILN_NODISCARD KilnStatus kiln_query_supported(KilnError *err);
KILN_NODISCARD KilnStatus kiln_query_run(const char *path, const char *query,
                                         const KilnQueryRows *rows, const KilnPoll *poll,
                                         KilnError *err);

/* ---- Columns --------------------------------------------------------------------------------- */

/* What the training rows have in a column. */
typedef struct KilnColumnFacts {
    int64_t missing, numbers, texts;
    int64_t distinct; /* different values that are not missing; of numbers at most 65 */
    bool whole;       /* all numbers are */
    bool unique;      /* numbers that are like those of rows: whole, different, close together */
    double low, high; /* of numbers */
    int64_t dates;    /* texts that are dates */
    int64_t words;    /* texts with a blank inside */
} KilnColumnFacts;

/* A column of the table. */
typedef struct KilnTableColumn {
    char *name;
    KilnColumnKind kind;
    bool given;       /* the option says so */
    const char *why;  /* it is ignored: "it has one value". Static; NULL: the user says so */
    bool has_missing; /* in the training rows */
    bool has_times;   /* of dates */
    char **names;     /* of a category: the values, sorted; ids are their places + 2 */
    size_t n_names;
    int64_t buckets; /* of a category: ids are hashes + 2, below this + 2; 0: it has names */
    KilnColumnFacts facts;
} KilnTableColumn;

/* The first ids of a category. */
enum { KILN_ID_UNKNOWN, KILN_ID_MISSING, KILN_ID_FIRST };

/* One number of "x". */
typedef struct KilnTableNumber {
    size_t column;
    int part;    /* -1: the number itself; KilnDatePart; KILN_DATE_PARTS: 1 if it is missing */
    double fill; /* instead of a missing one: the mean */
    double mean, deviation; /* KILN_SCALING_STANDARD */
    double *quantiles;      /* KILN_SCALING_QUANTILE [n_quantiles], ascending */
    size_t n_quantiles;
} KilnTableNumber;

/* What is fitted. All columns of the training files, whatever their kind. */
typedef struct KilnTablePlan {
    KilnTableColumn *columns;
    size_t n_columns;
    KilnTableNumber *numbers; /* "x" */
    size_t n_numbers;
    size_t *categories; /* "ids": numbers of columns */
    size_t n_categories;
    KilnTableScaling scaling;
    KilnTableMissing missing;
    int64_t target, group; /* numbers of columns; -1: none */
    bool classes;          /* the target is a class */
    char **class_names;
    size_t n_classes;
} KilnTablePlan;

void kiln_table_plan_release(KilnTablePlan *plan);
/* The number of a column; -1: there is none of that name. */
int64_t kiln_table_plan_find(const KilnTablePlan *plan, const char *name);
/* Write it to FOLDER/table.json; read it from there. (plan_json.c) */
KILN_NODISCARD KilnStatus kiln_table_plan_write(const KilnTablePlan *plan, const char *folder,
                                                KilnError *err);
KILN_NODISCARD KilnStatus kiln_table_plan_read(KilnTablePlan *plan, const char *folder,
                                               KilnError *err);

/* Rows of `cells` by number. */
typedef struct KilnRowList {
    const int64_t *rows;
    int64_t n;
} KilnRowList;

/* Count what the rows have in a column. (infer.c) */
KILN_NODISCARD KilnStatus kiln_column_facts(const KilnCells *cells, size_t column,
                                            const KilnDictionary *dictionary, KilnRowList rows,
                                            KilnColumnFacts *ret, KilnError *err);
/* The kind of a column by what it has; *ret_why: why it is ignored, static. */
KilnColumnKind kiln_column_infer(const KilnColumnFacts *facts, int64_t n_rows,
                                 const char **ret_why);

/* The names of a category's or class's values among the rows: sorted, and by number where all are
 * numbers. Texts of `end` (NULL: none) and after are cut off. (fit_columns.c) */
KILN_NODISCARD KilnStatus kiln_fit_names(const KilnCells *cells, size_t column,
                                         const KilnDictionary *dictionary, const char *end,
                                         KilnRowList rows, char ***ret, size_t *ret_n,
                                         KilnError *err);
/* List the numbers and categories of the plan's columns, and fit them to the rows. `columns` has
 * the dictionaries. */
KILN_NODISCARD KilnStatus kiln_table_plan_fit(KilnTablePlan *plan, const KilnCells *cells,
                                              const KilnCellColumn *columns, KilnRowList rows,
                                              bool indicators, uint64_t seed, KilnError *err);

/* The number of part `part` of a value, NaN if it is missing. */
double kiln_table_part(int part, const KilnCellValue *value);
/* Number i of "x" of n rows from that, as they stand in samples. */
void kiln_table_numbers(const KilnTablePlan *plan, size_t i, double *values, int64_t n);
/* The ids of a category column, from 0; the id of a text. */
int64_t kiln_table_n_ids(const KilnTableColumn *column);
int32_t kiln_table_id(const KilnTableColumn *column, KilnString text);
/* The place of a name; -1: it is not there. Names are sorted as kiln_fit_names does. */
int64_t kiln_names_find(char *const *names, size_t n, KilnString text);
/* The text of a number, as a name: "3", "0.5"; returns buf of 40 bytes. */
KilnString kiln_number_name(double number, char buf[40]);
/* Cut `end` and what follows off. */
KilnString kiln_cut_end(KilnString text, const char *end);

/* Quantile `p` of the standard normal distribution, 0 < p < 1: Wichura's algorithm AS 241 (1988).
 * (scaling.c) */
double kiln_normal_quantile(double p);
/* Fit the scaling to values [n] that are not missing, which are sorted and changed. */
KILN_NODISCARD KilnStatus kiln_scaling_fit(KilnTableNumber *number, KilnTableScaling scaling,
                                           double *values, int64_t n, uint64_t seed, uint64_t index,
                                           KilnError *err);
/* Scale n values; NaN stays. */
void kiln_scaling_apply(const KilnTableNumber *number, KilnTableScaling scaling, double *values,
                        int64_t n);

#endif

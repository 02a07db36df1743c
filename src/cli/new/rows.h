/* Rows of named columns, as `kiln new` sees them: how the files are written, and what their columns
 * are. */
#ifndef KILN_CLI_NEW_ROWS_H
#define KILN_CLI_NEW_ROWS_H

#include "cli/new/new_config.h"
#include "data/table/table_data.h"

/* Of a sample of the training rows. */
typedef struct KilnNewColumn {
    const char *name;
    int64_t present;     /* rows with a value */
    double words;        /* in a value, on average */
    double images;       /* share of the values that end as image files do */
    double lists;        /* share of the values that are lists */
    double commas;       /* share of the values such as 1,5 */
    const char *example; /* the first value */
} KilnNewColumn;

typedef struct KilnNewRows {
    KilnNewConfig *config;
    const KilnNewFiles *files;
    KilnRecordFormat format; /* csv, tsv, jsonl */
    bool says_format;        /* the ending does not */
    char delimiter;          /* 0: that of the format */
    bool has_header, decimal_comma;
    KilnTextEncoding encoding;
    const char *query; /* of a database; else NULL */
    KilnTargetType target_type;
    KilnPairI64 *kinds; /* of columns, as the option `columns`; in the arena */
    size_t n_kinds;
    KilnNewColumn *columns;
    const char **names; /* of the columns */
    size_t n_columns;
    int64_t n; /* training rows; of a database 0 */
    KilnTableData *table;
    /* What the table borrows. */
    KilnTextFiles paths;
    char delimiter_text[2];
    KilnTableSource source;
} KilnNewRows;

/* Find out how the files are written, and sample their rows. */
KILN_NODISCARD KilnStatus kiln_new_rows_open(KilnNewRows *rows, KilnError *err);
/* Read all training rows as a table, with the kinds of the columns: rows->table. `target` NULL:
 * none. */
KILN_NODISCARD KilnStatus kiln_new_rows_read(KilnNewRows *rows, const char *target, KilnError *err);
void kiln_new_rows_close(KilnNewRows *rows);
/* Say the format, the encoding and the columns in the config; `key` is the option that names
 * columns: "names" or "columns". */
void kiln_new_rows_set(const KilnNewRows *rows, const char *key);

/* Whether a column's name is one of them, which a NULL ends; case is ignored. */
bool kiln_new_is_named(const char *name, const char *const *names);
/* How the files of a split are opened. */
KilnRecordsSpec kiln_new_rows_spec(const KilnNewRows *rows, KilnSplit split);

/* Choose the column to predict among those that are not marked in `out`. KILN_E_USAGE if it isn't
 * clear. */
KILN_NODISCARD KilnStatus kiln_new_choose_target(const KilnNewRows *rows, const bool *out,
                                                 size_t *ret, KilnError *err);
/* Whether its values are classes, as the datamodules see it. */
bool kiln_new_is_class(const KilnNewRows *rows, size_t column);
/* The config of images, whose paths are in the column `image`: of their classes, or of the texts
 * in them. */
KILN_NODISCARD KilnStatus kiln_new_image_rows(KilnNewRows *rows, size_t image, KilnError *err);
/* The config of images of text lines. Paths are relative to `root`; NULL: to the list's folder. */
KILN_NODISCARD KilnStatus kiln_new_lines(KilnNewRows *rows, size_t image, size_t text,
                                         const char *root, KilnError *err);
/* The config of a number to predict from a column of texts; `beside`: other columns help. */
void kiln_new_text_numbers(KilnNewRows *rows, size_t text, size_t target, bool beside);
/* The config of a table. */
KILN_NODISCARD KilnStatus kiln_new_table(KilnNewRows *rows, KilnError *err);

#endif

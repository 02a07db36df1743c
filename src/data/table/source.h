/* The files, or the query, that rows come from. */
#ifndef KILN_DATA_TABLE_SOURCE_H
#define KILN_DATA_TABLE_SOURCE_H

#include "data/table/table_internal.h"

typedef struct KilnNames {
    char **list;
    size_t n, capacity;
} KilnNames;
void kiln_names_release(KilnNames *names);

/* The files of a split. A zeroed one is closed. */
typedef struct KilnOpenSource {
    char *const *paths; /* borrowed */
    size_t n_paths;
    KilnRecords *records; /* NULL: a query */
    KilnNames names;      /* of the columns */
} KilnOpenSource;

/* The columns of the table, and which of them are read. */
typedef struct KilnSourceColumns {
    KilnCellColumn *list;
    const bool *wanted;
    size_t n;
} KilnSourceColumns;

/* Gets rows that can't be read: a failure ends reading. */
typedef struct KilnTableSink {
    void *ctx;
    KilnStatus (*bad_row)(void *ctx, const KilnError *why, KilnError *err);
} KilnTableSink;

/* Open the files. Close it also after a failure. */
KILN_NODISCARD KilnStatus kiln_source_open(const KilnTableSource *source, char *const *paths,
                                           size_t n_paths, const KilnPoll *poll,
                                           KilnOpenSource *ret, KilnError *err);
/* Read the rows. Columns that the source lacks are NULL in ret, which is released also after a
 * failure. */
KILN_NODISCARD KilnStatus kiln_source_read(const KilnTableSource *source, KilnOpenSource *opened,
                                           const KilnSourceColumns *columns,
                                           const KilnCellRules *rules, const KilnPoll *poll,
                                           const KilnTableSink *sink, KilnCells *ret,
                                           KilnError *err);
/* "train.csv:17", where a row is. Returns ret. */
const char *kiln_source_place(const KilnOpenSource *opened, int64_t row, char *ret, size_t size);
void kiln_source_close(KilnOpenSource *opened);

#endif

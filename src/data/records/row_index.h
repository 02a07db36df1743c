/* Where the rows of a file begin. */
#ifndef KILN_DATA_RECORDS_ROW_INDEX_H
#define KILN_DATA_RECORDS_ROW_INDEX_H

#include "data/records/mapped_file.h"

/* What a row is. */
typedef enum KilnRowKind {
    KILN_ROW_LINE,     /* each line */
    KILN_ROW_NONBLANK, /* each line that is not blank */
    KILN_ROW_QUOTED,   /* the same, but a quoted field may have line ends (RFC 4180) */
    KILN_ROW_ITEM,     /* each value of a JSON list, which is the file */
    KILN_ROW_BLOCK     /* lines up to a blank one; those with -DOCSTART- are blank, too */
} KilnRowKind;

enum { KILN_LINES_STEP = 32 };

/* A zeroed one can be released. */
typedef struct KilnRowIndex {
    int64_t count;
    /* [count + 1]: row i is in bytes starts[i] to starts[i + 1], with blank lines, or the comma,
     * after it */
    const int64_t *starts;
    const int64_t *lines; /* the line, from 1, of each KILN_LINES_STEP-th row */
    int64_t *block;       /* what both point into */
    size_t mapped;        /* its bytes if it is a file of the cache; 0: it is allocated */
} KilnRowIndex;

/* Find the rows from `file->begin` on; `delimiter` is that of quoted fields. The index of a large
 * file is kept in the folder `cache` (NULL: nowhere). KILN_E_FORMAT: as kiln_row_scan. Release it
 * also after a failure. */
KILN_NODISCARD KilnStatus kiln_row_index_open(KilnRowIndex *index, const KilnMappedFile *file,
                                              KilnRowKind kind, char delimiter, const char *cache,
                                              const KilnPoll *poll, KilnError *err);
void kiln_row_index_release(KilnRowIndex *index);
/* The line, from 1, on which row i begins. */
int64_t kiln_row_index_line(const KilnRowIndex *index, const KilnMappedFile *file, int64_t i);

#endif

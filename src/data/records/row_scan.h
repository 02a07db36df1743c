/* Finds where the rows of a file begin. */
#ifndef KILN_DATA_RECORDS_ROW_SCAN_H
#define KILN_DATA_RECORDS_ROW_SCAN_H

#include "data/records/row_index.h"
#include "kiln/tokenizer.h"

/* The rows that were found. A zeroed one can be released. */
typedef struct KilnRowScan {
    const KilnMappedFile *file;
    KilnRowKind kind;
    char delimiter;
    int64_t lines_step;      /* the line of each n-th row is kept */
    int64_t *starts, *lines; /* [count], [count / lines_step rounded up] */
    size_t starts_capacity, lines_capacity;
    int64_t count;
    size_t size;  /* bytes that are looked at: the file's, or fewer if only a piece is scanned */
    int64_t line; /* of the next byte, from 1 */
    bool open;    /* of blocks: the last row can have more lines */
    bool cut;     /* a row may go on after `size` */
} KilnRowScan;

/* Find all rows of the file, in all threads where it is large. KILN_E_FORMAT: a quote or a list is
 * never closed, or text follows a quoted field that has line ends. Release it also after a failure.
 */
KILN_NODISCARD KilnStatus kiln_row_scan(KilnRowScan *scan, const KilnMappedFile *file,
                                        KilnRowKind kind, char delimiter, const KilnPoll *poll,
                                        KilnError *err);
/* The same for KILN_ROW_ITEM, in one thread. (item_scan.c) */
KILN_NODISCARD KilnStatus kiln_item_scan(KilnRowScan *scan, const KilnPoll *poll, KilnError *err);
/* Append a row; false: memory is out. */
bool kiln_row_scan_add(KilnRowScan *scan, size_t at, int64_t line);
void kiln_row_scan_release(KilnRowScan *scan);
/* A value of a JSON list, of what the index has for it: without what is after it. */
KilnString kiln_item_text(KilnString row);
/* Whether the file is a JSON list. */
bool kiln_is_json_list(const KilnMappedFile *file);
/* Line ends in the bytes. */
int64_t kiln_count_lines(const char *data, size_t from, size_t to);

#endif

/* The lines of a file, found once and read one by one, so that large files need no memory. */
#ifndef KILN_DATA_RAW_LINE_INDEX_H
#define KILN_DATA_RAW_LINE_INDEX_H

#include "kiln/base.h"

typedef struct KilnFileLine {
    int64_t start;    /* byte */
    const char *name; /* "questions.jsonl:7", owned */
} KilnFileLine;

/* A zeroed one is closed. */
typedef struct KilnLineIndex {
    int fd;
    const char *path; /* owned */
    int64_t size;     /* of the file, in bytes */
    KilnFileLine *lines;
    size_t count; /* without blank lines */
    size_t capacity;
} KilnLineIndex;

/* Find the lines of a regular file that are not blank. `poll` may be NULL. Close it also after a
 * failure. */
KILN_NODISCARD KilnStatus kiln_line_index_open(KilnLineIndex *lines, const char *path,
                                               const KilnPoll *poll, KilnError *err);
void kiln_line_index_close(KilnLineIndex *lines);
/* Line `i` without its end, NUL-terminated and owned by the caller, with its length; runs in
 * several threads at once. KILN_E_FORMAT when it has a NUL byte, is too long or no longer there. */
KILN_NODISCARD KilnStatus kiln_line_index_read(const KilnLineIndex *lines, int64_t i, char **ret,
                                               size_t *ret_length, KilnError *err);

#endif

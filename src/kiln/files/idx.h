/* Reading idx files, the format of MNIST and of the sets made after it: a big
 * endian header (two zero bytes, the element type, the number of axes, then the
 * size of each axis) and the elements. */
#ifndef KILN_KILN_FILES_IDX_H
#define KILN_KILN_FILES_IDX_H

#include "kiln/base.h"

#define KILN_IDX_MAX_RANK 4

/* Unsigned bytes, the first axis the slowest. */
typedef struct KilnIdx {
    int rank;
    int64_t dim[KILN_IDX_MAX_RANK];
    const uint8_t *data; /* inside `memory` */
    void *memory;        /* owned; kiln_idx_release */
} KilnIdx;

/* Read an idx file of unsigned bytes with `rank` axes (1 for labels, 3 for
 * images), plain or gzip by content. When there is no file of that name, the
 * name with ".gz" is tried. A missing file is KILN_E_IO; another format, other
 * axes, a header that does not fit the size, and gzip data that is damaged or
 * cut short are KILN_E_FORMAT with what was expected and found. At most 2^32
 * bytes. */
KILN_API KILN_NODISCARD KilnStatus kiln_idx_read(const char *path, int rank, KilnIdx *ret,
                                                 KilnError *err);
/* Accepts a zeroed one. */
KILN_API void kiln_idx_release(KilnIdx *idx);

#endif

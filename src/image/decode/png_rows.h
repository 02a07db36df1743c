/* Rows of common PNG files, faster than libpng makes them. */
#ifndef KILN_IMAGE_PNG_ROWS_H
#define KILN_IMAGE_PNG_ROWS_H

#include "image/decode/image_formats.h"

/* Decoded rows of 8-bit samples. */
typedef struct KilnPngRows {
    void *memory;
    const uint8_t *data; /* row y is at data + y * stride; in `memory` */
    size_t stride;       /* bytes */
    int64_t samples;     /* of a pixel: 1 to 4, the even ones with alpha */
} KilnPngRows;

/* Whether the header is one of those files: 8-bit samples without palette and interlacing, and not
 * too many pixels; larger images are better decoded row by row. */
bool kiln_png_is_common(const KilnImageBytes *bytes, const KilnImageHead *head);
/* Decode the rows 0 to n - 1 of such a file, whose chunks are whole up to IEND. False: it has a
 * transparent colour, is damaged, or memory is out; libpng then reads it, and reports what is
 * wrong. Release the rows in either case. */
bool kiln_png_rows_read(const KilnImageBytes *bytes, const KilnImageHead *head, int64_t n,
                        KilnPngRows *ret);
/* Accepts zeroed ones. */
void kiln_png_rows_release(KilnPngRows *rows);

#endif

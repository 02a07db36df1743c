/* Decoding image files that are in memory: what a file is, and its pixels as floats. */
#ifndef KILN_IMAGE_FORMATS_H
#define KILN_IMAGE_FORMATS_H

#include "kiln/image.h"

typedef enum KilnImageFormat {
    KILN_FORMAT_PNG,
    KILN_FORMAT_JPEG,
    KILN_FORMAT_WEBP
} KilnImageFormat;

/* A file, or its beginning. Borrowed. */
typedef struct KilnImageBytes {
    const char *name; /* for messages */
    const uint8_t *data;
    size_t size;
} KilnImageBytes;

/* What the header says. */
typedef struct KilnImageHead {
    KilnImageFormat format;
    int64_t height, width; /* as stored */
    int64_t channels;      /* 1: grey, 3: colour */
    int orientation;       /* of EXIF, 1 to 8; see kiln_exif_orientation */
} KilnImageHead;

/* What is decoded: a part of the stored image, scaled. */
typedef struct KilnImagePart {
    KilnImageHead head;
    KilnImageWindow window; /* of the stored pixels */
    int64_t channels;       /* 1 or 3 */
} KilnImagePart;

/* Read the header. The format is that of the content; a file of another kind, a damaged header, and
 * more than `max_pixels` (as in KilnPngForm) are KILN_E_FORMAT. */
KILN_NODISCARD KilnStatus kiln_image_head(const KilnImageBytes *bytes, int64_t max_pixels,
                                          KilnImageHead *ret, KilnError *err);
/* The same of one format, whose signature is there; they check neither limits nor sides of 0. */
KILN_NODISCARD KilnStatus kiln_png_head(const KilnImageBytes *bytes, KilnImageHead *ret,
                                        KilnError *err);
KILN_NODISCARD KilnStatus kiln_jpeg_head(const KilnImageBytes *bytes, KilnImageHead *ret,
                                         KilnError *err);
/* KILN_E_MISSING: this kiln was built without libwebp. */
KILN_NODISCARD KilnStatus kiln_webp_supported(KilnError *err);
KILN_NODISCARD KilnStatus kiln_webp_head(const KilnImageBytes *bytes, KilnImageHead *ret,
                                         KilnError *err);

/* The orientation in an EXIF block (a TIFF file): 1 upright, 2 mirrored, 3 turned by 180 degrees, 4
 * upside down, 5 transposed, 6 to be turned clockwise, 7 transposed along the other diagonal, 8 to
 * be turned counterclockwise. 1 if the block is damaged or does not say. */
int kiln_exif_orientation(const uint8_t *data, size_t size);

/* Decode a part of a file whose header is in part->head; `image` becomes its window's size. Not
 * upright yet. Damaged files are KILN_E_FORMAT. */
KILN_NODISCARD KilnStatus kiln_png_decode(const KilnImageBytes *bytes, const KilnImagePart *part,
                                          KilnImage *image, KilnError *err);
KILN_NODISCARD KilnStatus kiln_jpeg_decode(const KilnImageBytes *bytes, const KilnImagePart *part,
                                           KilnImage *image, KilnError *err);
KILN_NODISCARD KilnStatus kiln_webp_decode(const KilnImageBytes *bytes, const KilnImagePart *part,
                                           KilnImage *image, KilnError *err);

#endif

/* Scaling a part of an image row by row, so that the source need not be in memory as a whole. */
#ifndef KILN_IMAGE_SCALE_H
#define KILN_IMAGE_SCALE_H

#include "kiln/image.h"

/* What is scaled, in pixels of the source; between pixels where the source is itself a smaller
 * image of something. */
typedef struct KilnScaling {
    KilnImageFilter filter;
    double top, left, height, width;
} KilnScaling;

/* Whole pixels. */
typedef struct KilnRect {
    int64_t top, left, height, width;
} KilnRect;

/* The pixels of a source of height × width that count. */
KilnRect kiln_scaling_rect(const KilnScaling *scaling, int64_t height, int64_t width);

/* The weights of one axis: output i is the sum of weight[i * taps + k] times source first[i] + k,
 * for k < count[i]. */
typedef struct KilnScaleAxis {
    int64_t *first, *count;
    float *weight;
    int64_t taps;
} KilnScaleAxis;

typedef struct KilnScaler {
    KilnScaleAxis across, down;
    KilnImage *to; /* borrowed; its size is what is scaled to */
    float *row;    /* a source row, as wide as the result */
    int64_t from;  /* the next source row */
    int64_t open;  /* the first row of the result that still grows */
} KilnScaler;

/* From the pixels of `rect` (kiln_scaling_rect) to the size of `to`, whose pixels become 0. Release
 * it also after a failure. */
KILN_NODISCARD KilnStatus kiln_scaler_init(KilnScaler *scaler, const KilnScaling *scaling,
                                           const KilnRect *rect, KilnImage *to, KilnError *err);
/* The next row of the rectangle, with the channels of `to`; with the last one `to` is whole. `row`
 * has room for one float more, which is read. */
void kiln_scaler_add(KilnScaler *scaler, const float *row);
/* Accepts a zeroed scaler. */
void kiln_scaler_release(KilnScaler *scaler);

#endif

/* Scaling an image row by row, so that the source need not be in memory as a whole. */
#ifndef KILN_IMAGE_SCALE_H
#define KILN_IMAGE_SCALE_H

#include "kiln/image.h"

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

/* From images of height × width to the size of `to`, whose pixels become 0. Release it also after
 * a failure. */
KILN_NODISCARD KilnStatus kiln_scaler_init(KilnScaler *scaler, int64_t height, int64_t width,
                                           KilnImage *to, KilnError *err);
/* The next row of the source, with the channels of `to`; with the last one `to` is whole. */
void kiln_scaler_add(KilnScaler *scaler, const float *row);
/* Accepts a zeroed scaler. */
void kiln_scaler_release(KilnScaler *scaler);

#endif

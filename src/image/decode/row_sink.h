/* Takes the rows that a decoder makes: converts them to floats of the wanted channels, and scales
 * them, so that the decoded image need not be in memory as a whole. */
#ifndef KILN_IMAGE_ROW_SINK_H
#define KILN_IMAGE_ROW_SINK_H

#include "image/scale.h"

typedef struct KilnRowSink {
    KilnImage *image; /* borrowed */
    KilnRect rows;    /* the rows and columns that it takes, in order */
    int64_t row;      /* how many it has */
    bool scales;
    KilnScaler scaler;
    float *samples; /* a row of up to 4 samples a pixel */
    float *pixels;  /* the same in channels */
} KilnRowSink;

/* For what is in `window` of a decoded image that is 1/shrink of the stored one's size (rounded up,
 * height × width). `image` gets the window's size and `channels`. Release it also after a failure.
 */
KILN_NODISCARD KilnStatus kiln_row_sink_init(KilnRowSink *sink, const KilnImageWindow *window,
                                             const int64_t decoded[2], int64_t shrink,
                                             int64_t channels, KilnImage *image, KilnError *err);
/* The next of the rows sink->rows: its columns, `samples` bytes each (grey, grey and alpha, RGB,
 * RGBA). Alpha is laid over black. */
void kiln_row_sink_add(KilnRowSink *sink, const uint8_t *row, int64_t samples);
/* The same of 16-bit samples, the high byte first. */
void kiln_row_sink_add16(KilnRowSink *sink, const uint8_t *row, int64_t samples);
/* The same of floats. */
void kiln_row_sink_add_floats(KilnRowSink *sink, const float *row, int64_t samples);
/* Accepts a zeroed sink. */
void kiln_row_sink_release(KilnRowSink *sink);

#endif

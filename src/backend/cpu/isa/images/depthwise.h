/* Vector loops of depthwise convolutions, which have a kernel of their own for each channel.
 * Compiled once per level. */
#ifndef KILN_BACKEND_CPU_ISA_DEPTHWISE_H
#define KILN_BACKEND_CPU_ISA_DEPTHWISE_H

#include <stdint.h>

#include "backend/cpu/level.h"

enum { KILN_DEPTHWISE_TAPS = 7 }; /* of the widest kernel */

/* A row of dy, and the row of x that one row of the kernel meets. */
typedef struct KilnDepthwiseRow {
    const float *dy, *x;           /* their first pixels */
    int64_t dy_pixels, x_pixels;   /* in a row */
    int64_t dy_step, x_step;       /* floats from a pixel to the next */
    int64_t stride, padding, taps; /* along the row */
} KilnDepthwiseRow;

typedef struct KilnDepthwiseLoops {
    int width; /* channels at a time */
    /* sums[k][width] += the sum of dy[i] * x[i * stride + k - padding] over the pixels i of dy. */
    void (*weight_row)(const KilnDepthwiseRow *row, float *sums);
} KilnDepthwiseLoops;

KILN_DECLARE_LOOPS(KilnDepthwiseLoops, depthwise_loops);

#endif

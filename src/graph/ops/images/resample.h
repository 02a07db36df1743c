/* Resizes images. */
#ifndef KILN_GRAPH_OPS_IMAGES_RESAMPLE_H
#define KILN_GRAPH_OPS_IMAGES_RESAMPLE_H

#include "kiln/ops.h"

#define KILN_OPS_RESAMPLE(X)                                                                       \
    X(upsample)                                                                                    \
    X(upsample_grad)

typedef enum KilnUpsampleMode {
    KILN_UPSAMPLE_NEAREST,
    KILN_UPSAMPLE_BILINEAR,
    KILN_UPSAMPLE_CORNERS /* bilinear with aligned corner pixels */
} KilnUpsampleMode;

/* upsample            x [N,H,W,C] -> y;   upsample_grad: dy -> dx    KilnUpsampleAttrs */
typedef struct KilnUpsampleAttrs {
    int64_t in[2], out[2]; /* height, width */
    int64_t mode;          /* KilnUpsampleMode */
} KilnUpsampleAttrs;

/* The sources of index i of an axis of y: (1 - weight) * x[low] + weight * x[high]. */
typedef struct KilnSamplePoint {
    int64_t low, high;
    double weight;
} KilnSamplePoint;

KilnSamplePoint kiln_sample_point(int64_t mode, int64_t in, int64_t out, int64_t i);

#endif

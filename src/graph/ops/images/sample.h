/* Reads images between their pixels: grid_sample, roi_align. */
#ifndef KILN_GRAPH_OPS_IMAGES_SAMPLE_H
#define KILN_GRAPH_OPS_IMAGES_SAMPLE_H

#include "kiln/ops.h"

#define KILN_OPS_SAMPLE(X)                                                                         \
    X(grid_sample)                                                                                 \
    X(grid_sample_grad)                                                                            \
    X(roi_align)                                                                                   \
    X(roi_align_grad)

/* grid_sample         x [N,H,W,C], grid [N,h,w,2] -> y [N,h,w,C]     KilnGridAttrs
 * grid_sample_grad    dy, x, grid -> dx, dgrid                       KilnGridAttrs
 * roi_align           x [N,H,W,C], boxes [K,5] -> y [K,h,w,C]        KilnRoiAttrs
 * roi_align_grad      dy, boxes -> dx                                KilnRoiAttrs */
typedef struct KilnGridAttrs {
    int64_t nearest, padding, align_corners; /* padding: KilnGridPadding */
} KilnGridAttrs;
typedef struct KilnRoiAttrs {
    double scale;
    int64_t samples, aligned;
    int64_t size[2];  /* of y: height, width */
    int64_t image[3]; /* N, H, W of x */
} KilnRoiAttrs;

/* The pixel position along an axis of `size` that a coordinate in [-1, 1] means, and its
 * derivative by the coordinate. */
double kiln_grid_position(const KilnGridAttrs *attrs, double coordinate, int64_t size,
                          double *ret_slope);

/* Up to four pixels around a position, and their weights. */
typedef struct KilnCorners {
    int64_t pixel[4]; /* row * width + column; -1: none, or outside of the image */
    double weight[4];
    double dx[4], dy[4]; /* derivatives of the weights by the position */
} KilnCorners;

/* Bilinear, or nearest (weight 1 at one pixel). */
KilnCorners kiln_grid_corners(const KilnGridAttrs *attrs, double x, double y, int64_t height,
                              int64_t width);

/* A box [5] of the image: where its samples are. */
typedef struct KilnRoi {
    int64_t image;
    double top, left, bin_height, bin_width; /* in pixels */
    int64_t rows, columns;                   /* samples in each bin */
} KilnRoi;

KilnRoi kiln_roi_of(const KilnRoiAttrs *attrs, const double box[5]);
/* The pixels of sample (row, column) of bin (y, x) of the box. */
KilnCorners kiln_roi_corners(const KilnRoiAttrs *attrs, const KilnRoi *roi, int64_t y, int64_t x,
                             int64_t row, int64_t column);

#endif

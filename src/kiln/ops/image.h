/* Operations on images [N, H, W, C] beyond convolutions, pooling and plain resizing. Part of
 * kiln/ops.h; what differs from PyTorch's function of the same name is the order of the axes. */
#ifndef KILN_OPS_IMAGE_H
#define KILN_OPS_IMAGE_H

#include "kiln/field.h"
#include "kiln/ops/select.h"
#include "kiln/tensor.h"

/* ---- Resizing ------------------------------------------------------------------- */

/* [N, H, W, C] in another size (torch.nn.functional.interpolate with a size). */
KILN_API KilnTensor *kiln_upsample_nearest(KilnTensor *x, KilnSize size);
KILN_API KilnTensor *kiln_upsample_bilinear(KilnTensor *x, KilnSize size, bool align_corners);
KILN_API KilnTensor *kiln_upsample_bicubic(KilnTensor *x, KilnSize size, bool align_corners);
/* Mode bilinear, or bicubic, with antialias=True: where the image gets smaller, each pixel is a
 * weighted mean of all that it covers. */
KILN_API KilnTensor *kiln_resize_antialias(KilnTensor *x, KilnSize size, bool bicubic);

/* ---- Pixels and patches ------------------------------------------------------------- */

/* [N, H, W, C r²] -> [N, H r, W r, C], and back. */
KILN_API KilnTensor *kiln_pixel_shuffle(KilnTensor *x, int64_t r);
KILN_API KilnTensor *kiln_pixel_unshuffle(KilnTensor *x, int64_t r);

/* Pairs {height, width}. */
typedef struct KilnUnfold {
    int64_t kernel[2];
    int64_t stride[2];   /* 0: 1 */
    int64_t dilation[2]; /* 0: 1 */
    int64_t padding[2];  /* zeros on every side */
} KilnUnfold;

/* The patches that a convolution sees: [N, H, W, C] -> [N, places, C kh kw], each in the order of
 * a convolution's weight (PyTorch's result transposed). */
KILN_API KilnTensor *kiln_unfold(KilnTensor *x, KilnUnfold unfold);
/* The image whose pixels are the sums of what patches have there: [N, places, C kh kw] ->
 * [N, height, width, C]. */
KILN_API KilnTensor *kiln_fold(KilnTensor *x, KilnSize size, KilnUnfold unfold);

/* Largest elements of windows that share the image among height×width places. NaN where a window
 * has one; the first of equals gets the gradient. */
KILN_API KilnTensor *kiln_adaptive_max_pool2d(KilnTensor *x, int64_t height, int64_t width);

/* ---- Between pixels ------------------------------------------------------------------------ */

typedef enum KilnGridPadding {
    KILN_GRID_ZEROS,     /* outside of the image are zeros */
    KILN_GRID_BORDER,    /* the nearest pixel */
    KILN_GRID_REFLECTION /* the image mirrored at its border */
} KilnGridPadding;

/* Zeroed: PyTorch's defaults. */
typedef struct KilnGridSample {
    bool nearest; /* mode nearest; else bilinear */
    KilnGridPadding padding;
    bool align_corners;
} KilnGridSample;

/* The image at the positions (x, y) of a grid, from -1 (left, top) to 1: [N, H, W, C] and
 * [N, h, w, 2] -> [N, h, w, C]. The grid has a gradient, too; 0 for mode nearest. */
KILN_API KilnTensor *kiln_grid_sample(KilnTensor *x, KilnTensor *grid, KilnGridSample options);

typedef struct KilnRoiAlign {
    KilnSize size;
    double spatial_scale;   /* from the boxes' coordinates to pixels of x; 0: 1 */
    int64_t sampling_ratio; /* samples along each side of a bin; 0: as many as it has pixels */
    bool aligned; /* pixel centers are at .5, as they should; torchvision's default is not */
} KilnRoiAlign;

/* Boxes of an image, resized to one size by means of bilinear samples (He et al. 2017;
 * torchvision.ops.roi_align): x [N, H, W, C], boxes [K, 5] (number of the image, x1, y1, x2, y2) ->
 * [K, h, w, C]; 0 for a box of no image. Boxes have no gradient: kiln_detach them. */
KILN_API KilnTensor *kiln_roi_align(KilnTensor *x, KilnTensor *boxes, KilnRoiAlign options);

/* ---- Boxes (x1, y1, x2, y2) --------------------------------------------------------------------
 */

/* Intersection over union of each of a [n, 4] with each of b [m, 4] -> [n, m]
 * (torchvision.ops.box_iou). */
KILN_API KilnTensor *kiln_box_iou(KilnTensor *a, KilnTensor *b);
/* The boxes [n, 4] by falling scores [n], without those whose intersection over union with a better
 * one that is kept is above the threshold: places as kiln_nonzero's (torchvision.ops.nms). Equal
 * scores stay in order. */
KILN_API KilnPlaces kiln_nms(KilnTensor *boxes, KilnTensor *scores, double iou_threshold,
                             int64_t limit);
/* The same where only boxes of one group, i32 [n], suppress each other: classes, images, or a
 * number of both (torchvision.ops.batched_nms). */
KILN_API KilnPlaces kiln_batched_nms(KilnTensor *boxes, KilnTensor *scores, KilnTensor *groups,
                                     double iou_threshold, int64_t limit);

#endif

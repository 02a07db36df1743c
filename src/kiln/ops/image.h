/* Operations on images [N, H, W, C] beyond convolutions, pooling and plain resizing. Part of
 * kiln/ops.h; what differs from PyTorch's function of the same name is the order of the axes. */
#ifndef KILN_OPS_IMAGE_H
#define KILN_OPS_IMAGE_H

#include "kiln/field.h"
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

#endif

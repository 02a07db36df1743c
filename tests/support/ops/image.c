/* Samples of operations on images beyond convolutions and pooling. */
#include "tests/support/ops/case.h"

/* arg[0], arg[1]: the size; arg[2]: bicubic, with corners, area, bicubic area. */
BUILD(build_resize)
{
    const KilnSize size = { arg[0], arg[1] };

    return arg[2] < 2 ? kiln_upsample_bicubic(leaf[0], size, arg[2] == 1)
                      : kiln_resize_antialias(leaf[0], size, arg[2] == 3);
}

static const Case cases_resize[] = {
    { "bicubic", build_resize, "g", .shape = { SHAPE(2, 5, 4, 3) }, .arg = { 7, 9 } },
    { "bicubic, smaller", build_resize, "g", .shape = { SHAPE(1, 9, 8, 2) }, .arg = { 4, 3 } },
    { "bicubic, corners", build_resize, "g", .shape = { SHAPE(2, 5, 4, 3) }, .arg = { 3, 9, 1 } },
    { "bicubic, tiny", build_resize, "g", .shape = { SHAPE(1, 1, 2, 3) }, .arg = { 4, 1 } },
    { "antialias", build_resize, "g", .shape = { SHAPE(1, 11, 7, 2) }, .arg = { 4, 3, 2 } },
    { "antialias, bicubic", build_resize, "g", .shape = { SHAPE(1, 11, 7, 2) },
      .arg = { 3, 9, 3 } },
    { "antialias, large", build_resize, "g", .shape = { SHAPE(2, 67, 131, 5) },
      .arg = { 13, 29, 3 } },
};
SAMPLES(resize)

/* arg[0] ... : kernel, stride, padding, dilation, each for both axes, the second one more. */
static KilnUnfold unfold_of(const int64_t *arg)
{
    return (KilnUnfold) { .kernel = { arg[0], arg[0] + 1 },
                          .stride = { arg[1], arg[1] + 1 },
                          .padding = { arg[2], arg[2] + 1 },
                          .dilation = { arg[3], arg[3] + 1 } };
}

BUILD(build_unfold)
{
    return kiln_unfold(leaf[0], unfold_of(arg));
}

static const Case cases_unfold[] = {
    { "unfold", build_unfold, "g", .shape = { SHAPE(2, 5, 6, 3) }, .arg = { 2, 1, 0, 1 } },
    { "unfold, dilated", build_unfold, "g", .shape = { SHAPE(1, 7, 8, 2) }, .arg = { 3, 2, 1, 2 } },
    { "unfold, large", build_unfold, "g", .shape = { SHAPE(2, 31, 37, 7) }, .arg = { 3, 1, 1, 1 } },
};
SAMPLES(unfold)

/* arg[4], arg[5]: the size. */
BUILD(build_fold)
{
    return kiln_fold(leaf[0], (KilnSize) { arg[4], arg[5] }, unfold_of(arg));
}

static const Case cases_fold[] = {
    { "fold", build_fold, "g", .shape = { SHAPE(2, 8, 18) }, .arg = { 2, 1, 0, 1, 5, 6 } },
    { "fold, padded", build_fold, "g", .shape = { SHAPE(1, 2, 24) }, .arg = { 3, 2, 1, 1, 4, 3 } },
    { "fold, large", build_fold, "g", .shape = { SHAPE(2, 589, 42) },
      .arg = { 2, 1, 1, 1, 30, 37 } },
};
SAMPLES(fold)

/* arg[0], arg[1]: the places. */
BUILD(build_adaptive_max)
{
    return kiln_adaptive_max_pool2d(leaf[0], arg[0], arg[1]);
}

/* Equal elements: the first gets the gradient. */
BUILD(build_adaptive_max_relu)
{
    return kiln_adaptive_max_pool2d(kiln_relu(leaf[0]), arg[0], arg[1]);
}

static const Case cases_adaptive_max_pool2d[] = {
    { "adaptive_max_pool2d", build_adaptive_max, "g", .shape = { SHAPE(2, 5, 7, 3) },
      .arg = { 3, 2 } },
    { "adaptive_max_pool2d, more places", build_adaptive_max, "g", .shape = { SHAPE(1, 3, 2, 2) },
      .arg = { 5, 4 } },
    { "adaptive_max_pool2d, equals", build_adaptive_max_relu, "g", .shape = { SHAPE(2, 6, 7, 3) },
      .arg = { 3, 2 }, .no_differences = true },
    { "adaptive_max_pool2d, large", build_adaptive_max, "g", .shape = { SHAPE(3, 31, 29, 17) },
      .arg = { 7, 7 } },
};
SAMPLES(adaptive_max_pool2d)

/* arg[0]: nearest; arg[1]: padding; arg[2]: align_corners. The grid reaches beyond the image. */
BUILD(build_grid_sample)
{
    const KilnGridSample options = { .nearest = arg[0] != 0,
                                     .padding = (KilnGridPadding)arg[1],
                                     .align_corners = arg[2] != 0 };

    return kiln_grid_sample(leaf[0], leaf[1], options);
}

#define GRID_SMALL .shape = { SHAPE(2, 4, 5, 3), SHAPE(2, 3, 4, 2) }
static const Case cases_grid_sample[] = {
    { "grid_sample", build_grid_sample, "gg", GRID_SMALL },
    { "grid_sample, corners", build_grid_sample, "gg", GRID_SMALL, .arg = { 0, 0, 1 } },
    { "grid_sample, border", build_grid_sample, "gg", GRID_SMALL, .arg = { 0, 1 } },
    { "grid_sample, reflection", build_grid_sample, "gg", GRID_SMALL, .arg = { 0, 2 } },
    { "grid_sample, reflection, corners", build_grid_sample, "gg", GRID_SMALL, .arg = { 0, 2, 1 } },
    { "grid_sample, nearest", build_grid_sample, "gf", GRID_SMALL, .arg = { 1, 1 } },
    { "grid_sample, large", build_grid_sample, "gg",
      .shape = { SHAPE(2, 17, 23, 37), SHAPE(2, 29, 13, 2) } },
};
SAMPLES(grid_sample)
SAMPLES_OF(grid_sample_grad, grid_sample)

/* Corners and sides [K, 4] as boxes. The sum is computed in f32, as positions should be. */
static KilnTensor *boxes_of(KilnTensor *x)
{
    KilnTensor *sides = kiln_reshape(x, KILN_SHAPE(-1, 2, 2));

    return kiln_reshape(kiln_cumsum(sides, 1), KILN_SHAPE(-1, 4));
}

/* arg[0]: images; arg[1]: spatial_scale; arg[2]: sampling_ratio; arg[3]: aligned. Boxes are made of
 * positive numbers [K, 5]: image, corner, sides. */
BUILD(build_roi_align)
{
    KilnTensor *image = kiln_floor(kiln_scale(kiln_narrow(leaf[1], 1, 0, 1), (double)arg[0]));
    KilnTensor *boxes =
        kiln_concat((KilnTensor *[]) { image, boxes_of(kiln_narrow(leaf[1], 1, 1, 4)) }, 2, 1);

    return kiln_roi_align(leaf[0], boxes,
                          (KilnRoiAlign) { .size = { 3, 2 },
                                           .spatial_scale = (double)arg[1],
                                           .sampling_ratio = arg[2],
                                           .aligned = arg[3] != 0 });
}

static const Case cases_roi_align[] = {
    { "roi_align", build_roi_align, "gp", .shape = { SHAPE(2, 5, 6, 3), SHAPE(4, 5) },
      .arg = { 2, 3, 2, 1 } },
    { "roi_align, adaptive", build_roi_align, "gp", .shape = { SHAPE(2, 7, 6, 2), SHAPE(5, 5) },
      .arg = { 2, 4, 0, 0 } },
    { "roi_align, large", build_roi_align, "gp", .shape = { SHAPE(2, 31, 29, 19), SHAPE(37, 5) },
      .arg = { 2, 14, 2, 0 } },
};
SAMPLES(roi_align)
SAMPLES_OF(roi_align_grad, roi_align)

BUILD(build_box_iou)
{
    UNUSED_ARG;
    return kiln_box_iou(leaf[0], leaf[1]);
}

/* arg[0]: limit; arg[1]: the count. */
BUILD(build_nms)
{
    const KilnPlaces kept = kiln_nms(boxes_of(leaf[0]), leaf[1], 0.3, arg[0]);

    return arg[1] != 0 ? kept.count : kept.index;
}

BUILD(build_batched_nms)
{
    const KilnPlaces kept = kiln_batched_nms(boxes_of(leaf[0]), leaf[1], leaf[2], 0.3, arg[1]);

    return kiln_to_float(kept.index);
}

static const Case cases_nms[] = {
    { "batched_nms", build_batched_nms, "pfL", .shape = { SHAPE(97, 4), SHAPE(97), SHAPE(97) },
      .arg = { 3, 97 } },
    { "nms", build_nms, "pf", .shape = { SHAPE(31, 4), SHAPE(31) }, .arg = { 31 } },
    { "nms, count", build_nms, "pf", .shape = { SHAPE(257, 4), SHAPE(257) }, .arg = { 5, 1 } },
    { "nms, tiles", build_nms, "pf", .shape = { SHAPE(3001, 4), SHAPE(3001) }, .arg = { 900 } },
    { "box_iou", build_box_iou, "gg", .shape = { SHAPE(5, 4), SHAPE(3, 4) },
      .no_differences = true },
};
SAMPLES(nms)

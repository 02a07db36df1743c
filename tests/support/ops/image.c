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

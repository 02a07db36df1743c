/* Samples of pooling. */
#include "tests/support/ops/case.h"

/* The last argument, in all of these: 1 for ceil_mode. */
BUILD(build_max_pool)
{
    const KilnPool pool = {
        .kernel = arg[0], .stride = arg[1], .padding = arg[2], .ceil_mode = arg[3] != 0
    };

    return kiln_max_pool2d(leaf[0], pool);
}

/* Kernel, stride and padding of height and of width. */
BUILD(build_max_pool_apart)
{
    const KilnPool pool = {
        .kernel_hw = { arg[0], arg[1] },
        .stride_hw = { arg[2], arg[3] },
        .padding_hw = { arg[4], arg[5] },
    };

    return kiln_max_pool2d(leaf[0], pool);
}

BUILD(build_max_pool1d)
{
    return kiln_max_pool1d(leaf[0],
                           (KilnPool) { .kernel = arg[0], .stride = arg[1], .padding = arg[2] });
}

static const Case cases_max_pool2d[] = {
    { "max_pool1d", build_max_pool1d, "g", .shape = { SHAPE(2, 11, 3) }, .arg = { 3, 2, 1 } },
    { "max_pool2d, height and width apart", build_max_pool_apart, "g",
      .shape = { SHAPE(2, 9, 10, 5) }, .arg = { 3, 2, 2, 1, 1, 0 } },
    { "max_pool2d, 2x2", build_max_pool, "g", .shape = { SHAPE(2, 8, 10, 5) }, .arg = { 2, 2, 0 } },
    { "max_pool2d, 3x3", build_max_pool, "g", .shape = { SHAPE(2, 11, 9, 17) },
      .arg = { 3, 2, 1 } },
    { "max_pool2d, overlapping", build_max_pool, "g", .shape = { SHAPE(1, 7, 7, 1) },
      .arg = { 3, 1, 1 } },
    { "max_pool2d, with gaps", build_max_pool, "g", .shape = { SHAPE(3, 13, 13, 16) },
      .arg = { 2, 3, 0 } },
    { "max_pool2d, large window", build_max_pool, "g", .shape = { SHAPE(1, 19, 19, 3) },
      .arg = { 17, 2, 0 } },
    { "max_pool2d, stride of the kernel", build_max_pool, "g", .shape = { SHAPE(2, 4, 6, 2) },
      .arg = { 2, 0, 0 } },
    { "max_pool2d, small 3x3", build_max_pool, "g", .shape = { SHAPE(1, 7, 5, 2) },
      .arg = { 3, 2, 1 } },
    { "max_pool2d, ceil_mode", build_max_pool, "g", .shape = { SHAPE(2, 6, 8, 3) },
      .arg = { 3, 2, 0, 1 } },
    { "max_pool2d, ceil_mode, padded", build_max_pool, "g", .shape = { SHAPE(2, 8, 6, 23) },
      .arg = { 3, 2, 1, 1 } },
};
SAMPLES(max_pool2d)
SAMPLES_OF(max_pool2d_grad, max_pool2d)

/* Kernel, stride and padding of height and of width; 1: without padding in the mean. */
BUILD(build_avg_pool)
{
    const KilnPool pool = {
        .kernel_hw = { arg[0], arg[1] },
        .stride_hw = { arg[2], arg[3] },
        .padding_hw = { arg[4], arg[5] },
        .exclude_padding = arg[6] != 0,
        .ceil_mode = arg[7] != 0,
    };

    return kiln_avg_pool2d(leaf[0], pool);
}

BUILD(build_adaptive_pool)
{
    return kiln_adaptive_avg_pool2d(leaf[0], arg[0], arg[1]);
}

BUILD(build_avg_pool1d)
{
    return kiln_avg_pool1d(leaf[0],
                           (KilnPool) { .kernel = arg[0], .stride = arg[1], .padding = arg[2] });
}

BUILD(build_adaptive_pool1d)
{
    return kiln_adaptive_avg_pool1d(leaf[0], arg[0]);
}

static const Case cases_avg_pool2d[] = {
    { "avg_pool2d", build_avg_pool, "g", .shape = { SHAPE(2, 6, 4, 3) }, .arg = { 2, 2 } },
    { "avg_pool2d, padded", build_avg_pool, "g", .shape = { SHAPE(1, 7, 5, 17) },
      .arg = { 3, 2, 2, 1, 1, 1 } },
    { "avg_pool2d, without padding", build_avg_pool, "g", .shape = { SHAPE(2, 7, 8, 1) },
      .arg = { 3, 5, 2, 3, 1, 2, 1 } },
    { "avg_pool2d, ceil_mode", build_avg_pool, "g", .shape = { SHAPE(1, 6, 8, 5) },
      .arg = { 3, 3, 2, 2, 1, 0, 0, 1 } },
    { "avg_pool2d, ceil_mode, without padding", build_avg_pool, "g", .shape = { SHAPE(1, 6, 9, 5) },
      .arg = { 3, 5, 2, 3, 1, 2, 1, 1 } },
    { "adaptive_avg_pool2d", build_adaptive_pool, "g", .shape = { SHAPE(2, 7, 5, 3) },
      .arg = { 3, 2 } },
    { "adaptive_avg_pool2d, larger than the image", build_adaptive_pool, "g",
      .shape = { SHAPE(1, 2, 3, 5) }, .arg = { 3, 4 } },
    { "adaptive_avg_pool2d, whole image", build_adaptive_pool, "g", .shape = { SHAPE(3, 5, 7, 11) },
      .arg = { 1, 1 } },
    { "adaptive_avg_pool2d, one place", build_adaptive_pool, "g", .shape = { SHAPE(5, 1, 1, 32) },
      .arg = { 1, 1 } },
    { "adaptive_avg_pool2d, blocks", build_adaptive_pool, "g", .shape = { SHAPE(67, 4, 4, 64) },
      .arg = { 1, 1 }, .no_differences = true },
    { "avg_pool1d", build_avg_pool1d, "g", .shape = { SHAPE(2, 9, 3) }, .arg = { 3, 2, 1 } },
    { "adaptive_avg_pool1d", build_adaptive_pool1d, "g", .shape = { SHAPE(2, 7, 5) },
      .arg = { 3 } },
};
SAMPLES(avg_pool2d)
SAMPLES_OF(avg_pool2d_grad, avg_pool2d)

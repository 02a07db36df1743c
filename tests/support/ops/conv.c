/* Samples of convolutions. */
#include "tests/support/ops/samples.h"

KilnTensor *build_conv(KilnTensor *const *leaf, const int64_t *arg)
{
    const KilnConv conv = { .stride = arg[0], .padding = arg[1] };

    return kiln_conv2d(leaf[0], leaf[1], arg[2] != 0 ? leaf[2] : NULL, conv);
}

/* Stride, padding and dilation of height and of width, and groups. */
KilnTensor *build_conv_apart(KilnTensor *const *leaf, const int64_t *arg)
{
    const KilnConv conv = {
        .stride_hw = { arg[0], arg[1] },
        .padding_hw = { arg[2], arg[3] },
        .dilation_hw = { arg[4], arg[5] },
        .groups = arg[6],
    };

    return kiln_conv2d(leaf[0], leaf[1], leaf[2], conv);
}

BUILD(build_conv1d)
{
    const KilnConv conv = {
        .stride = arg[0], .padding = arg[1], .dilation = arg[2], .groups = arg[3]
    };

    return kiln_conv1d(leaf[0], leaf[1], leaf[2], conv);
}

static const Case cases_conv2d[] = {
    { "conv2d, 1x1", build_conv, "gg", .shape = { SHAPE(2, 5, 7, 3), SHAPE(4, 3, 1, 1) },
      .arg = { 1, 0, 0 } },
    { "conv2d, one channel", build_conv, "ggg",
      .shape = { SHAPE(1, 9, 11, 1), SHAPE(1, 1, 3, 3), SHAPE(1) }, .arg = { 1, 1, 1 } },
    { "conv2d, 5x5", build_conv, "ggg",
      .shape = { SHAPE(3, 13, 11, 6), SHAPE(20, 6, 5, 5), SHAPE(20) }, .arg = { 1, 2, 1 } },
    { "conv2d, stride 2", build_conv, "gg", .shape = { SHAPE(2, 12, 15, 19), SHAPE(33, 19, 3, 3) },
      .arg = { 2, 1, 0 } },
    { "conv2d, shortcut", build_conv, "gg", .shape = { SHAPE(2, 8, 8, 32), SHAPE(64, 32, 1, 1) },
      .arg = { 2, 0, 0 } },
    { "conv2d, stem", build_conv, "gg", .shape = { SHAPE(2, 23, 23, 3), SHAPE(16, 3, 7, 7) },
      .arg = { 2, 3, 0 } },
    { "conv2d, kernel as large as the image", build_conv, "gg",
      .shape = { SHAPE(3, 4, 4, 16), SHAPE(10, 16, 4, 4) }, .arg = { 1, 0, 0 } },
    { "conv2d, whole blocks", build_conv, "ggg",
      .shape = { SHAPE(2, 12, 12, 32), SHAPE(48, 32, 3, 3), SHAPE(48) }, .arg = { 1, 1, 1 } },
    { "conv2d, deep", build_conv, "ggg",
      .shape = { SHAPE(3, 5, 4, 512), SHAPE(260, 512, 3, 2), SHAPE(260) }, .arg = { 1, 1, 1 },
      .no_differences = true },
    { "conv2d, many places", build_conv, "gg",
      .shape = { SHAPE(3, 31, 29, 16), SHAPE(16, 16, 3, 3) }, .arg = { 1, 1, 0 },
      .no_differences = true },
    { "conv2d, small", build_conv, "ggg",
      .shape = { SHAPE(2, 4, 5, 2), SHAPE(3, 2, 3, 3), SHAPE(3) }, .arg = { 1, 1, 1 } },
    { "conv2d, 3x3, whole blocks, odd sizes", build_conv, "ggg",
      .shape = { SHAPE(2, 13, 15, 64), SHAPE(96, 64, 3, 3), SHAPE(96) }, .arg = { 1, 1, 1 },
      .no_differences = true },
    { "conv2d, 3x3, whole blocks, no padding", build_conv, "gg",
      .shape = { SHAPE(2, 18, 14, 32), SHAPE(32, 32, 3, 3) }, .arg = { 1, 0 },
      .no_differences = true },
    { "conv2d, 3x3, whole blocks, much padding", build_conv, "ggg",
      .shape = { SHAPE(3, 9, 10, 32), SHAPE(256, 32, 3, 3), SHAPE(256) }, .arg = { 1, 2, 1 },
      .no_differences = true },
    { "conv2d, small, stride 2", build_conv, "gg",
      .shape = { SHAPE(2, 6, 5, 2), SHAPE(3, 2, 3, 3) }, .arg = { 2, 1, 0 } },
    { "conv2d, small shortcut", build_conv, "gg", .shape = { SHAPE(1, 4, 4, 3), SHAPE(2, 3, 1, 1) },
      .arg = { 2, 0, 0 } },
    { "conv2d, 2x3, stride 3", build_conv, "ggg",
      .shape = { SHAPE(1, 7, 7, 1), SHAPE(2, 1, 2, 3), SHAPE(2) }, .arg = { 3, 2, 1 } },
    { "conv2d, depthwise", build_conv_apart, "ggg",
      .shape = { SHAPE(2, 7, 6, 5), SHAPE(5, 1, 3, 3), SHAPE(5) }, .arg = { 1, 1, 1, 1, 1, 1, 5 } },
    { "conv2d, depthwise, whole blocks, stride 2", build_conv_apart, "ggg",
      .shape = { SHAPE(2, 11, 10, 32), SHAPE(32, 1, 3, 3), SHAPE(32) },
      .arg = { 2, 2, 1, 1, 1, 1, 32 }, .no_differences = true },
    { "conv2d, depthwise, 5x5, whole blocks", build_conv_apart, "ggg",
      .shape = { SHAPE(2, 9, 11, 32), SHAPE(32, 1, 5, 5), SHAPE(32) },
      .arg = { 1, 1, 2, 2, 1, 1, 32 }, .no_differences = true },
    { "conv2d, depthwise, 5x5, whole blocks, stride 2", build_conv_apart, "gg",
      .shape = { SHAPE(3, 12, 9, 80), SHAPE(80, 1, 5, 5) }, .arg = { 2, 2, 2, 2, 1, 1, 80 },
      .no_differences = true },
    { "conv2d, depthwise, 7x7, whole blocks", build_conv_apart, "ggg",
      .shape = { SHAPE(2, 8, 17, 48), SHAPE(48, 1, 7, 7), SHAPE(48) },
      .arg = { 1, 1, 3, 3, 1, 1, 48 }, .no_differences = true },
    { "conv2d, depthwise, 6x4, whole blocks, larger than the image", build_conv_apart, "gg",
      .shape = { SHAPE(2, 3, 2, 16), SHAPE(16, 1, 6, 4) }, .arg = { 2, 3, 5, 3, 1, 1, 16 },
      .no_differences = true },
    { "conv2d, depthwise, two for each", build_conv_apart, "gg",
      .shape = { SHAPE(1, 5, 5, 3), SHAPE(6, 1, 3, 2) }, .arg = { 1, 1, 1, 0, 1, 1, 3 } },
    { "conv2d, groups", build_conv_apart, "ggg",
      .shape = { SHAPE(2, 5, 7, 6), SHAPE(9, 2, 3, 3), SHAPE(9) }, .arg = { 1, 1, 1, 1, 1, 1, 3 } },
    { "conv2d, groups of blocks", build_conv_apart, "gg",
      .shape = { SHAPE(2, 9, 9, 32), SHAPE(64, 16, 3, 3) }, .arg = { 1, 1, 1, 1, 1, 1, 2 },
      .no_differences = true },
    { "conv2d, dilated", build_conv_apart, "ggg",
      .shape = { SHAPE(1, 9, 7, 2), SHAPE(3, 2, 3, 3), SHAPE(3) }, .arg = { 1, 1, 2, 2, 2, 2, 1 } },
    { "conv2d, dilated, whole blocks", build_conv_apart, "gg",
      .shape = { SHAPE(2, 13, 13, 16), SHAPE(32, 16, 3, 3) }, .arg = { 1, 1, 3, 3, 3, 3, 1 },
      .no_differences = true },
    { "conv2d, all of height and width apart", build_conv_apart, "ggg",
      .shape = { SHAPE(2, 11, 13, 3), SHAPE(4, 3, 2, 3), SHAPE(4) },
      .arg = { 2, 3, 0, 2, 3, 1, 1 } },
    { "conv2d, rows between kernels", build_conv_apart, "gg",
      .shape = { SHAPE(1, 67, 4, 32), SHAPE(48, 32, 1, 1) }, .arg = { 3, 1, 0, 1, 1, 1, 1 },
      .no_differences = true },
    { "conv2d, rows between kernels, part of a block", build_conv_apart, "gg",
      .shape = { SHAPE(2, 7, 5, 35), SHAPE(3, 35, 1, 3) }, .arg = { 3, 2, 0, 2, 1, 1, 1 },
      .no_differences = true },
    { "conv2d, taps in the padding alone", build_conv_apart, "gg",
      .shape = { SHAPE(2, 1, 1, 3), SHAPE(4, 3, 2, 2) }, .arg = { 1, 2, 1, 1, 1, 1, 1 } },
    { "conv2d, 3x3 on 2x2, many images", build_conv, "gg",
      .shape = { SHAPE(33, 2, 2, 5), SHAPE(7, 5, 3, 3) }, .arg = { 1, 1 } },
    { "conv2d, 2x2 on 2x2, many images", build_conv, "gg",
      .shape = { SHAPE(32, 2, 2, 17), SHAPE(20, 17, 2, 2) }, .arg = { 2, 0 },
      .no_differences = true },
    { "conv2d, 2x3 on 1x3, many images", build_conv_apart, "gg",
      .shape = { SHAPE(40, 1, 3, 4), SHAPE(6, 4, 2, 3) }, .arg = { 1, 2, 1, 2, 1, 2, 1 } },
    { "conv1d", build_conv1d, "ggg", .shape = { SHAPE(2, 11, 3), SHAPE(5, 3, 4), SHAPE(5) },
      .arg = { 2, 1, 2, 1 } },
    { "conv1d, defaults", build_conv1d, "gg", .shape = { SHAPE(1, 7, 1), SHAPE(1, 1, 7) } },
    { "conv1d, groups", build_conv1d, "ggg", .shape = { SHAPE(3, 7, 4), SHAPE(6, 2, 3), SHAPE(6) },
      .arg = { 1, 2, 1, 2 } },
};
SAMPLES(conv2d)
SAMPLES_OF(conv2d_grad_input, conv2d)
SAMPLES_OF(conv2d_grad_weight, conv2d)

/* Stride, padding, dilation, groups, output padding of height and of width. */
BUILD(build_conv_transpose)
{
    const KilnConvTranspose conv = {
        .conv = { .stride = arg[0], .padding = arg[1], .dilation = arg[2], .groups = arg[3] },
        .output_padding_hw = { arg[4], arg[5] },
    };

    return kiln_conv_transpose2d(leaf[0], leaf[1], leaf[2], conv);
}

static const Case cases_conv_transpose2d[] = {
    { "conv_transpose2d", build_conv_transpose, "ggg",
      .shape = { SHAPE(2, 3, 4, 3), SHAPE(3, 2, 3, 3), SHAPE(2) }, .arg = { 2, 1, 1, 1, 1, 0 } },
    { "conv_transpose2d, one of each", build_conv_transpose, "gg",
      .shape = { SHAPE(1, 1, 1, 1), SHAPE(1, 1, 2, 3) } },
    { "conv_transpose2d, groups, dilated", build_conv_transpose, "ggg",
      .shape = { SHAPE(1, 4, 3, 4), SHAPE(4, 3, 2, 2), SHAPE(6) }, .arg = { 1, 0, 2, 2, 0, 0 } },
    { "conv_transpose2d, 2x2, stride 2", build_conv_transpose, "ggg",
      .shape = { SHAPE(2, 5, 7, 16), SHAPE(16, 32, 2, 2), SHAPE(32) }, .arg = { 2, 0, 1, 1, 0, 0 },
      .no_differences = true },
    { "conv_transpose2d, whole blocks", build_conv_transpose, "ggg",
      .shape = { SHAPE(2, 6, 5, 32), SHAPE(32, 48, 3, 3), SHAPE(48) }, .arg = { 2, 1, 1, 1, 1, 1 },
      .no_differences = true },
};
SAMPLES(conv_transpose2d)

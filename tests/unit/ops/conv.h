/* Samples of convolutions. */
#ifndef KILN_TEST_OPS_CONV_H
#define KILN_TEST_OPS_CONV_H

#include "tests/unit/ops/case.h"

BUILD(build_conv)
{
    const KilnConv conv = { .stride = arg[0], .padding = arg[1] };

    return kiln_conv2d(leaf[0], leaf[1], arg[2] != 0 ? leaf[2] : NULL, conv);
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
    { "conv2d, small", build_conv, "ggg",
      .shape = { SHAPE(2, 4, 5, 2), SHAPE(3, 2, 3, 3), SHAPE(3) }, .arg = { 1, 1, 1 } },
    { "conv2d, small, stride 2", build_conv, "gg",
      .shape = { SHAPE(2, 6, 5, 2), SHAPE(3, 2, 3, 3) }, .arg = { 2, 1, 0 } },
    { "conv2d, small shortcut", build_conv, "gg", .shape = { SHAPE(1, 4, 4, 3), SHAPE(2, 3, 1, 1) },
      .arg = { 2, 0, 0 } },
    { "conv2d, 2x3, stride 3", build_conv, "ggg",
      .shape = { SHAPE(1, 7, 7, 1), SHAPE(2, 1, 2, 3), SHAPE(2) }, .arg = { 3, 2, 1 } },
};
#define cases_conv2d_grad_input cases_conv2d
#define cases_conv2d_grad_weight cases_conv2d

#endif

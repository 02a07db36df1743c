/* Samples of matrix products. */
#ifndef KILN_TEST_OPS_PRODUCT_H
#define KILN_TEST_OPS_PRODUCT_H

#include "tests/unit/ops/case.h"

BUILD(build_matmul)
{
    return kiln_matmul(leaf[0], leaf[1], arg[0] != 0, arg[1] != 0);
}

static const Case cases_matmul[] = {
    { "matmul", build_matmul, "gg", .shape = { SHAPE(7, 11), SHAPE(11, 13) }, .arg = { 0, 0 } },
    { "matmul, a transposed", build_matmul, "gg", .shape = { SHAPE(11, 7), SHAPE(11, 13) },
      .arg = { 1, 0 } },
    { "matmul, b transposed", build_matmul, "gg", .shape = { SHAPE(7, 11), SHAPE(13, 11) },
      .arg = { 0, 1 } },
    { "matmul, both", build_matmul, "gg", .shape = { SHAPE(11, 7), SHAPE(13, 11) },
      .arg = { 1, 1 } },
    { "matmul, one row", build_matmul, "gg", .shape = { SHAPE(1, 257), SHAPE(257, 1) },
      .arg = { 0, 0 } },
    { "matmul, large", build_matmul, "gg", .shape = { SHAPE(97, 211), SHAPE(211, 83) },
      .arg = { 0, 0 } },
};

BUILD(build_linear)
{
    return kiln_linear(leaf[0], leaf[1], arg[0] != 0 ? leaf[2] : NULL);
}

static const Case cases_linear[] = {
    { "linear", build_linear, "ggg", .shape = { SHAPE(5, 7), SHAPE(3, 7), SHAPE(3) },
      .arg = { 1 } },
    { "linear, no bias", build_linear, "gg", .shape = { SHAPE(1, 13), SHAPE(17, 13) } },
    { "linear, large", build_linear, "ggg", .shape = { SHAPE(128, 211), SHAPE(97, 211), SHAPE(97) },
      .arg = { 1 } },
};

#endif

/* Samples of matrix products. */
#include "tests/support/ops/case.h"

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
    { "matmul, deep", build_matmul, "gg", .shape = { SHAPE(29, 601), SHAPE(601, 67) },
      .arg = { 0, 0 } },
    { "matmul, deep, both transposed", build_matmul, "gg",
      .shape = { SHAPE(601, 253), SHAPE(35, 601) }, .arg = { 1, 1 } },
    { "matmul, batch", build_matmul, "gg", .shape = { SHAPE(3, 2, 5, 4), SHAPE(3, 2, 4, 3) },
      .arg = { 0, 0 } },
    { "matmul, batch, both transposed", build_matmul, "gg",
      .shape = { SHAPE(3, 4, 5), SHAPE(3, 3, 4) }, .arg = { 1, 1 } },
    { "matmul, one matrix on the right", build_matmul, "gg",
      .shape = { SHAPE(3, 2, 5, 4), SHAPE(4, 3) }, .arg = { 0, 0 } },
    { "matmul, one matrix on the right, transposed", build_matmul, "gg",
      .shape = { SHAPE(3, 4, 5), SHAPE(3, 4) }, .arg = { 1, 1 } },
    { "matmul, one matrix on the left", build_matmul, "gg",
      .shape = { SHAPE(5, 4), SHAPE(3, 4, 3) }, .arg = { 0, 0 } },
    { "matmul, broadcast both ways", build_matmul, "gg",
      .shape = { SHAPE(2, 1, 3, 5, 2), SHAPE(4, 1, 2, 3) }, .arg = { 0, 0 } },
    { "matmul, broadcast both ways, transposed", build_matmul, "gg",
      .shape = { SHAPE(2, 1, 3, 2, 5), SHAPE(4, 1, 2, 3) }, .arg = { 1, 0 } },
    { "matmul, batch of heads", build_matmul, "gg",
      .shape = { SHAPE(3, 7, 33, 17), SHAPE(3, 7, 29, 17) }, .arg = { 0, 1 } },
    { "matmul, batch of one", build_matmul, "gg", .shape = { SHAPE(1, 1, 5, 7), SHAPE(1, 7, 3) },
      .arg = { 0, 0 } },
};
SAMPLES(matmul)

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
    { "linear, of a vector", build_linear, "ggg", .shape = { SHAPE(7), SHAPE(3, 7), SHAPE(3) },
      .arg = { 1 } },
    { "linear, more axes", build_linear, "ggg",
      .shape = { SHAPE(2, 3, 4, 7), SHAPE(5, 7), SHAPE(5) }, .arg = { 1 } },
};
SAMPLES(linear)

/* Samples of probabilities and losses. */
#ifndef KILN_TEST_OPS_LOSS_H
#define KILN_TEST_OPS_LOSS_H

#include "tests/unit/ops/case.h"

BUILD(build_softmax)
{
    UNUSED_ARG;
    return kiln_softmax(leaf[0], -1);
}

static const Case cases_softmax[] = {
    { "softmax", build_softmax, "g", .shape = { SHAPE(5, 3, 7) } },
    { "softmax, one class", build_softmax, "g", .shape = { SHAPE(4, 1) } },
    { "softmax, large", build_softmax, "g", .shape = { SHAPE(67, 1009) } },
};
#define cases_softmax_grad cases_softmax

BUILD(build_cross_entropy)
{
    return kiln_cross_entropy(leaf[0], leaf[1],
                              (KilnCrossEntropy) { .label_smoothing = (double)arg[0] / 10.0 });
}

static const Case cases_cross_entropy[] = {
    { "cross_entropy", build_cross_entropy, "gl", .shape = { SHAPE(5, 3), SHAPE(5) } },
    { "cross_entropy, one row", build_cross_entropy, "gl", .shape = { SHAPE(1, 11), SHAPE(1) } },
    { "cross_entropy, small, smoothed", build_cross_entropy, "gl",
      .shape = { SHAPE(5, 3), SHAPE(5) }, .arg = { 2 } },
    { "cross_entropy, smoothed", build_cross_entropy, "gl", .shape = { SHAPE(257, 10), SHAPE(257) },
      .arg = { 1 } },
};
#define cases_cross_entropy_grad cases_cross_entropy

#endif

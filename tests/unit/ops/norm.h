/* Samples of normalization. */
#ifndef KILN_TEST_OPS_NORM_H
#define KILN_TEST_OPS_NORM_H

#include "tests/unit/ops/case.h"

/* Leaves: x, weight, bias, running mean, running variance. */
BUILD(build_norm)
{
    const KilnBatchNorm norm = { .eps = 1e-5, .momentum = 0.1, .training = arg[0] != 0 };

    return kiln_batch_norm(leaf[0], leaf[1], leaf[2], leaf[3], leaf[4], norm);
}

static const Case cases_batch_norm[] = {
    { "batch_norm", build_norm, "ggfvv",
      .shape = { SHAPE(3, 5, 7, 11), SHAPE(11), SHAPE(11), SHAPE(11), SHAPE(11) }, .arg = { 1 } },
    { "batch_norm, small", build_norm, "gggvv",
      .shape = { SHAPE(3, 2, 2, 3), SHAPE(3), SHAPE(3), SHAPE(3), SHAPE(3) }, .arg = { 1 } },
    { "batch_norm of rows", build_norm, "gggvv",
      .shape = { SHAPE(37, 16), SHAPE(16), SHAPE(16), SHAPE(16), SHAPE(16) }, .arg = { 1 } },
    { "batch_norm of few rows", build_norm, "gggvv",
      .shape = { SHAPE(6, 2), SHAPE(2), SHAPE(2), SHAPE(2), SHAPE(2) }, .arg = { 1 } },
    { "batch_norm, one channel", build_norm, "gggvv",
      .shape = { SHAPE(2, 3, 1), SHAPE(1), SHAPE(1), SHAPE(1), SHAPE(1) }, .arg = { 1 } },
    { "batch_norm, large", build_norm, "gggvv",
      .shape = { SHAPE(16, 16, 16, 64), SHAPE(64), SHAPE(64), SHAPE(64), SHAPE(64) },
      .arg = { 1 } },
};
#define cases_batch_norm_grad cases_batch_norm

static const Case cases_batch_norm_eval[] = {
    { "batch_norm, evaluating", build_norm, "gggpp",
      .shape = { SHAPE(3, 5, 7, 19), SHAPE(19), SHAPE(19), SHAPE(19), SHAPE(19) } },
    { "batch_norm, evaluating, small", build_norm, "gggfp",
      .shape = { SHAPE(2, 2, 3), SHAPE(3), SHAPE(3), SHAPE(3), SHAPE(3) } },
};

#endif

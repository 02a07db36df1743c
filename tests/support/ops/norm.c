/* Samples of normalization. */
#include "tests/support/ops/case.h"

/* Leaves: x, weight, bias, running mean, running variance. */
BUILD(build_norm)
{
    const KilnBatchNorm norm = { .eps = 1e-5, .momentum = 0.1, .training = arg[0] != 0 };

    return kiln_batch_norm(leaf[0], leaf[1], leaf[2], leaf[3], leaf[4], norm);
}

/* What the pass fuse_norm joins: relu(norm(x)), then + residual, which arg[1] says to
 * be 0: none, 1: a leaf, 2: x itself. The result is used twice, and then the gradient
 * of the relu is a sum. */
BUILD(build_norm_relu)
{
    KilnTensor *y = build_norm(leaf, arg);

    if (arg[1] != 0)
        y = kiln_add(arg[1] == 1 ? leaf[5] : leaf[0], y);
    y = kiln_relu(y);
    return kiln_add(kiln_mul(y, y), kiln_scale(y, 0.5));
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
    { "batch_norm, relu", build_norm_relu, "gggvv",
      .shape = { SHAPE(3, 3, 2, 5), SHAPE(5), SHAPE(5), SHAPE(5), SHAPE(5) }, .arg = { 1 } },
    { "batch_norm, residual, relu", build_norm_relu, "gggvvg",
      .shape = { SHAPE(2, 3, 5, 3), SHAPE(3), SHAPE(3), SHAPE(3), SHAPE(3), SHAPE(2, 3, 5, 3) },
      .arg = { 1, 1 } },
    { "batch_norm, x again, relu", build_norm_relu, "gggvv",
      .shape = { SHAPE(7, 2), SHAPE(2), SHAPE(2), SHAPE(2), SHAPE(2) }, .arg = { 1, 2 } },
    { "batch_norm, residual, relu, large", build_norm_relu, "gggvvg",
      .shape = { SHAPE(5, 7, 7, 64), SHAPE(64), SHAPE(64), SHAPE(64), SHAPE(64),
                 SHAPE(5, 7, 7, 64) },
      .arg = { 1, 1 }, .no_differences = true },
    { "batch_norm, many channels", build_norm, "gggvv",
      .shape = { SHAPE(301, 131), SHAPE(131), SHAPE(131), SHAPE(131), SHAPE(131) }, .arg = { 1 },
      .no_differences = true },
};
SAMPLES(batch_norm)
SAMPLES_OF(batch_norm_grad, batch_norm)

static const Case cases_batch_norm_eval[] = {
    { "batch_norm, evaluating", build_norm, "gggpp",
      .shape = { SHAPE(3, 5, 7, 19), SHAPE(19), SHAPE(19), SHAPE(19), SHAPE(19) } },
    { "batch_norm, evaluating, small", build_norm, "gggfp",
      .shape = { SHAPE(2, 2, 3), SHAPE(3), SHAPE(3), SHAPE(3), SHAPE(3) } },
    { "batch_norm, evaluating, residual, relu", build_norm_relu, "gggppg",
      .shape = { SHAPE(2, 3, 5, 3), SHAPE(3), SHAPE(3), SHAPE(3), SHAPE(3), SHAPE(2, 3, 5, 3) },
      .arg = { 0, 1 } },
};
SAMPLES(batch_norm_eval)

/* Leaves: x, weight, bias; arg: how many axes, or groups. */
BUILD(build_layer_norm)
{
    return kiln_layer_norm(leaf[0], leaf[1], leaf[2], (int)arg[0], 1e-5);
}

BUILD(build_rms_norm)
{
    return kiln_rms_norm(leaf[0], leaf[1], (int)arg[0], 1e-6);
}

BUILD(build_group_norm)
{
    return kiln_group_norm(leaf[0], leaf[1], leaf[2], arg[0], 1e-5);
}

/* A convolution before, so that the channels lie in blocks. */
BUILD(build_conv_group_norm)
{
    KilnTensor *x = kiln_conv2d(leaf[0], leaf[3], NULL, (KilnConv) { .padding = 1 });

    return kiln_conv2d(kiln_group_norm(x, leaf[1], leaf[2], arg[0], 1e-5), leaf[3], NULL,
                       (KilnConv) { .padding = 1 });
}

static const Case cases_layer_norm[] = {
    { "layer_norm", build_layer_norm, "ggg", .shape = { SHAPE(3, 5, 7), SHAPE(7), SHAPE(7) },
      .arg = { 1 } },
    { "layer_norm, two axes", build_layer_norm, "ggg",
      .shape = { SHAPE(4, 3, 5), SHAPE(3, 5), SHAPE(3, 5) }, .arg = { 2 } },
    { "layer_norm, no weights", build_layer_norm, "g", .shape = { SHAPE(5, 17) }, .arg = { 1 } },
    { "layer_norm, no bias", build_layer_norm, "gg", .shape = { SHAPE(1, 19), SHAPE(19) },
      .arg = { 1 } },
    { "layer_norm, many", build_layer_norm, "ggg",
      .shape = { SHAPE(331, 389), SHAPE(389), SHAPE(389) }, .arg = { 1 }, .no_differences = true },
};
SAMPLES(layer_norm)
SAMPLES_OF(layer_norm_grad, layer_norm)

static const Case cases_rms_norm[] = {
    { "rms_norm", build_rms_norm, "gg", .shape = { SHAPE(3, 5, 7), SHAPE(7) }, .arg = { 1 } },
    { "rms_norm, all axes", build_rms_norm, "gg", .shape = { SHAPE(3, 7), SHAPE(3, 7) },
      .arg = { 2 } },
    { "rms_norm, no weight", build_rms_norm, "g", .shape = { SHAPE(5, 19) }, .arg = { 1 } },
    /* x / |x|: what is left of the gradient is eps, and rounding. */
    { "rms_norm, one column", build_rms_norm, "gg", .shape = { SHAPE(3, 1), SHAPE(1) },
      .arg = { 1 }, .tolerance = 1e-2 },
    { "rms_norm, many", build_rms_norm, "gg", .shape = { SHAPE(307, 401), SHAPE(401) },
      .arg = { 1 }, .no_differences = true },
};
SAMPLES(rms_norm)
SAMPLES_OF(rms_norm_grad, rms_norm)

static const Case cases_group_norm[] = {
    { "group_norm", build_group_norm, "ggg", .shape = { SHAPE(2, 3, 5, 6), SHAPE(6), SHAPE(6) },
      .arg = { 3 } },
    { "group_norm, one group of a sequence", build_group_norm, "ggg",
      .shape = { SHAPE(2, 7, 3), SHAPE(3), SHAPE(3) }, .arg = { 1 } },
    { "group_norm, a group each", build_group_norm, "g", .shape = { SHAPE(1, 5, 5, 3) },
      .arg = { 3 } },
    { "group_norm of rows", build_group_norm, "ggg",
      .shape = { SHAPE(3, 10), SHAPE(10), SHAPE(10) }, .arg = { 2 } },
    { "group_norm, many channels", build_group_norm, "ggg",
      .shape = { SHAPE(3, 7, 9, 130), SHAPE(130), SHAPE(130) }, .arg = { 13 },
      .no_differences = true },
    { "group_norm between convolutions", build_conv_group_norm, "gggg",
      .shape = { SHAPE(5, 7, 7, 32), SHAPE(32), SHAPE(32), SHAPE(32, 32, 3, 3) }, .arg = { 4 },
      .no_differences = true },
};
SAMPLES(group_norm)
SAMPLES_OF(group_norm_grad, group_norm)

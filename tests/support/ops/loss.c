/* Samples of probabilities and losses. */
#include "tests/support/ops/case.h"

/* arg[0]: the axis. */
BUILD(build_softmax)
{
    return kiln_softmax(leaf[0], (int)arg[0]);
}

static const Case cases_softmax[] = {
    { "softmax", build_softmax, "g", .shape = { SHAPE(5, 3, 7) }, .arg = { -1 } },
    { "softmax, middle axis", build_softmax, "g", .shape = { SHAPE(5, 3, 7) }, .arg = { 1 } },
    { "softmax, one class", build_softmax, "g", .shape = { SHAPE(4, 1) }, .arg = { -1 } },
    { "softmax, short rows", build_softmax, "g", .shape = { SHAPE(1031, 10) }, .arg = { -1 } },
    { "softmax, large", build_softmax, "g", .shape = { SHAPE(67, 1009) }, .arg = { -1 } },
    { "softmax, long rows", build_softmax, "g", .shape = { SHAPE(3, 9001) }, .arg = { -1 } },
};
SAMPLES(softmax)
SAMPLES_OF(softmax_grad, softmax)

BUILD(build_log_softmax)
{
    return kiln_log_softmax(leaf[0], (int)arg[0]);
}

static const Case cases_log_softmax[] = {
    { "log_softmax", build_log_softmax, "g", .shape = { SHAPE(5, 3, 7) }, .arg = { -1 } },
    { "log_softmax, first axis", build_log_softmax, "g", .shape = { SHAPE(5, 11) }, .arg = { 0 } },
    { "log_softmax, short rows", build_log_softmax, "g", .shape = { SHAPE(1031, 10) },
      .arg = { -1 } },
    { "log_softmax, long rows", build_log_softmax, "g", .shape = { SHAPE(3, 9001) },
      .arg = { -1 } },
};
SAMPLES(log_softmax)
SAMPLES_OF(log_softmax_grad, log_softmax)

/* arg[0]: labels are below it; arg[1]: label smoothing in tenths, arg[2]: reduction, arg[3]:
 * 1 + the label that is ignored, 0: none. A third leaf is the weight of the classes. */
static KilnCrossEntropy label_options(KilnTensor *const *leaf, const int64_t *arg)
{
    return (KilnCrossEntropy) { .weight = leaf[2],
                                .label_smoothing = (double)arg[1] / 10.0,
                                .ignore = arg[3] != 0,
                                .ignore_index = arg[3] - 1,
                                .reduction = (KilnReduction)arg[2] };
}

BUILD(build_nll)
{
    return kiln_nll(leaf[0], leaf[1], label_options(leaf, arg));
}

static const Case cases_nll[] = {
    { "nll", build_nll, "gL", .shape = { SHAPE(5, 3), SHAPE(5) }, .arg = { 3 } },
    { "nll, weighted", build_nll, "gLp", .shape = { SHAPE(7, 3), SHAPE(7), SHAPE(3) },
      .arg = { 3, 0, KILN_REDUCTION_MEAN, 2 }, .skips = true },
    { "nll, unreduced", build_nll, "gLp", .shape = { SHAPE(2, 3, 4), SHAPE(2, 3), SHAPE(4) },
      .arg = { 4, 0, KILN_REDUCTION_NONE }, .skips = true },
    { "nll, wrong labels", build_nll, "gL", .shape = { SHAPE(17, 3), SHAPE(17) },
      .arg = { 4, 0, KILN_REDUCTION_NONE }, .no_differences = true },
    { "nll, all ignored", build_nll, "gL", .shape = { SHAPE(5, 3), SHAPE(5) },
      .arg = { 1, 0, KILN_REDUCTION_MEAN, 1 }, .no_differences = true, .skips = true },
    { "nll, large", build_nll, "gL", .shape = { SHAPE(1031, 67), SHAPE(1031) }, .arg = { 67 } },
};
SAMPLES(nll)
SAMPLES_OF(nll_grad, nll)

BUILD(build_cross_entropy)
{
    return kiln_cross_entropy(leaf[0], leaf[1], label_options(leaf, arg));
}

static const Case cases_cross_entropy[] = {
    { "cross_entropy", build_cross_entropy, "gL", .shape = { SHAPE(5, 3), SHAPE(5) },
      .arg = { 3 } },
    { "cross_entropy, one row", build_cross_entropy, "gL", .shape = { SHAPE(1, 11), SHAPE(1) },
      .arg = { 11 } },
    { "cross_entropy, small, smoothed", build_cross_entropy, "gL",
      .shape = { SHAPE(5, 3), SHAPE(5) }, .arg = { 3, 2 } },
    { "cross_entropy, weighted", build_cross_entropy, "gLp",
      .shape = { SHAPE(5, 3), SHAPE(5), SHAPE(3) }, .arg = { 3, 0, KILN_REDUCTION_SUM },
      .skips = true },
    { "cross_entropy, weighted, smoothed, ignoring", build_cross_entropy, "gLp",
      .shape = { SHAPE(4, 3, 4), SHAPE(4, 3), SHAPE(4) }, .arg = { 4, 3, KILN_REDUCTION_MEAN, 1 },
      .skips = true },
    { "cross_entropy, all ignored", build_cross_entropy, "gL", .shape = { SHAPE(5, 3), SHAPE(5) },
      .arg = { 1, 2, KILN_REDUCTION_MEAN, 1 }, .no_differences = true, .skips = true },
    { "cross_entropy, unreduced", build_cross_entropy, "gL",
      .shape = { SHAPE(2, 3, 4), SHAPE(2, 3) }, .arg = { 4, 1, KILN_REDUCTION_NONE, 3 } },
    { "cross_entropy, wrong labels", build_cross_entropy, "gL",
      .shape = { SHAPE(17, 3), SHAPE(17) }, .arg = { 4, 1, KILN_REDUCTION_NONE },
      .no_differences = true },
    { "cross_entropy, smoothed", build_cross_entropy, "gL", .shape = { SHAPE(257, 10), SHAPE(257) },
      .arg = { 10, 1 } },
    { "cross_entropy, large", build_cross_entropy, "gLp",
      .shape = { SHAPE(19, 9001), SHAPE(19), SHAPE(9001) }, .arg = { 9001, 1 } },
};
SAMPLES(cross_entropy)
SAMPLES_OF(cross_entropy_grad, cross_entropy)

/* Leaves: logits, logits of the targets, weight. */
BUILD(build_cross_entropy_soft)
{
    KilnTensor *targets = kiln_softmax(leaf[1], -1);

    return kiln_cross_entropy_soft(leaf[0], targets, label_options(leaf, arg));
}

static const Case cases_cross_entropy_soft[] = {
    { "cross_entropy_soft", build_cross_entropy_soft, "gf", .shape = { SHAPE(5, 3), SHAPE(5, 3) } },
    { "cross_entropy_soft, weighted, smoothed", build_cross_entropy_soft, "gfp",
      .shape = { SHAPE(5, 2, 3), SHAPE(5, 2, 3), SHAPE(3) }, .arg = { 0, 2, KILN_REDUCTION_NONE } },
    { "cross_entropy_soft, large", build_cross_entropy_soft, "gfp",
      .shape = { SHAPE(129, 1001), SHAPE(129, 1001), SHAPE(1001) },
      .arg = { 0, 1, KILN_REDUCTION_MEAN } },
};
SAMPLES(cross_entropy_soft)
SAMPLES_OF(cross_entropy_soft_grad, cross_entropy_soft)

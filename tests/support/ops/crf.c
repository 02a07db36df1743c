/* Samples of conditional random fields. */
#include "tests/support/ops/case.h"

/* Lengths: arg[1] for the first sequence, and arg[2] more for each one after it. */
static KilnTensor *lengths_of(KilnTensor *emissions, const int64_t *arg)
{
    return kiln_arange(emissions->graph, KILN_I32, (double)arg[1], (double)arg[2],
                       kiln_tensor_dim(emissions, 0));
}

/* Leaves: emissions [B, T, K], start, end, transitions, tags below arg[0]. arg[3]: a factor of
 * the transitions. */
BUILD(build_crf_loss)
{
    KilnTensor *transitions = arg[3] != 0 ? kiln_scale(leaf[3], (double)arg[3]) : leaf[3];

    return kiln_crf_loss(leaf[0], leaf[4], lengths_of(leaf[0], arg), leaf[1], leaf[2], transitions);
}

/* The same leaves but tags. */
BUILD(build_crf_decode)
{
    return kiln_crf_decode(leaf[0], lengths_of(leaf[0], arg), leaf[1], leaf[2], leaf[3]);
}

static const Case cases_crf_loss[] = {
    { "crf_loss", build_crf_loss, "ggggL",
      .shape = { SHAPE(3, 5, 4), SHAPE(4), SHAPE(4), SHAPE(4, 4), SHAPE(3, 5) },
      .arg = { 4, 1, 2 } },
    { "crf_loss, one tag", build_crf_loss, "ggggL",
      .shape = { SHAPE(2, 3, 1), SHAPE(1), SHAPE(1), SHAPE(1, 1), SHAPE(2, 3) },
      .arg = { 1, 2, 1 } },
    { "crf_loss, lengths out of range", build_crf_loss, "ffffL",
      .shape = { SHAPE(4, 3, 4), SHAPE(4), SHAPE(4), SHAPE(4, 4), SHAPE(4, 3) },
      .arg = { 4, 0, 2 } },
    { "crf_loss, transitions that are as good as forbidden", build_crf_loss, "ffffL",
      .shape = { SHAPE(4, 9, 5), SHAPE(5), SHAPE(5), SHAPE(5, 5), SHAPE(4, 9) },
      .arg = { 5, 6, 1, 10000 } },
    { "crf_loss, large", build_crf_loss, "ggggL",
      .shape = { SHAPE(67, 40, 19), SHAPE(19), SHAPE(19), SHAPE(19, 19), SHAPE(67, 40) },
      .arg = { 19, 40, 0 }, .no_differences = true },
};
SAMPLES(crf_loss)
SAMPLES_OF(crf_loss_grad, crf_loss)

static const Case cases_crf_decode[] = {
    { "crf_decode", build_crf_decode, "ffff",
      .shape = { SHAPE(3, 5, 4), SHAPE(4), SHAPE(4), SHAPE(4, 4) }, .arg = { 4, 1, 2 } },
    { "crf_decode, lengths out of range", build_crf_decode, "ffff",
      .shape = { SHAPE(4, 3, 4), SHAPE(4), SHAPE(4), SHAPE(4, 4) }, .arg = { 4, 0, 2 } },
    { "crf_decode, large", build_crf_decode, "ffff",
      .shape = { SHAPE(67, 40, 19), SHAPE(19), SHAPE(19), SHAPE(19, 19) }, .arg = { 19, 40, 0 } },
};
SAMPLES(crf_decode)

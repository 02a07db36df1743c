/* Samples of connectionist temporal classification. */
#include "tests/support/ops/case.h"

/* Leaves: logits [T, N, C], targets below arg[0]. arg[1]: blank, arg[2]: reduction,
 * arg[3], arg[4]: length of the first input and target, which grow by arg[5] and 1,
 * arg[6]: zero_infinity. */
BUILD(build_ctc)
{
    const int64_t batch = kiln_tensor_dim(leaf[0], 1);
    KilnGraph *graph = leaf[0]->graph;
    KilnTensor *inputs = kiln_arange(graph, KILN_I32, (double)arg[3], (double)arg[5], batch);
    KilnTensor *targets = kiln_arange(graph, KILN_I32, (double)arg[4], 1.0, batch);
    const KilnCtc options = { .blank = arg[1],
                              .zero_infinity = arg[6] != 0,
                              .reduction = (KilnReduction)arg[2] };

    return kiln_ctc(kiln_log_softmax(leaf[0], -1), leaf[1], inputs, targets, options);
}

static const Case cases_ctc[] = {
    { "ctc", build_ctc, "gL", .shape = { SHAPE(6, 3, 4), SHAPE(3, 3) },
      .arg = { 3, 3, KILN_REDUCTION_MEAN, 6, 1, 0 } },
    { "ctc, no label, unreduced", build_ctc, "gL", .shape = { SHAPE(7, 3, 4), SHAPE(3, 2) },
      .arg = { 3, 3, KILN_REDUCTION_NONE, 5, 0, 1 } },
    { "ctc, sum", build_ctc, "gL", .shape = { SHAPE(9, 2, 3), SHAPE(2, 4) },
      .arg = { 2, 2, KILN_REDUCTION_SUM, 9, 3, 0 } },
    { "ctc, impossible", build_ctc, "gL", .shape = { SHAPE(5, 3, 4), SHAPE(3, 4) },
      .arg = { 3, 3, KILN_REDUCTION_MEAN, 2, 2, 0, 1 } },
    { "ctc, lengths out of range", build_ctc, "fL", .shape = { SHAPE(5, 3, 4), SHAPE(3, 4) },
      .arg = { 3, 3, KILN_REDUCTION_NONE, 5, 3, 0 } },
    { "ctc, large", build_ctc, "gL", .shape = { SHAPE(150, 5, 33), SHAPE(5, 34) },
      .arg = { 32, 32, KILN_REDUCTION_MEAN, 138, 30, 3 } },
};
SAMPLES(ctc)
SAMPLES_OF(ctc_grad, ctc)

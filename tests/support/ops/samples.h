/* The samples of every operation. An operation without samples does not link. */
#ifndef KILN_TESTS_SUPPORT_OPS_SAMPLES_H
#define KILN_TESTS_SUPPORT_OPS_SAMPLES_H

#include "tests/support/ops/case.h"

typedef struct OpSamples {
    const KilnOp *op;
    const Samples *samples;
} OpSamples;

/* In the order of kiln_ops. */
extern const OpSamples op_samples[];
extern const size_t op_samples_count;

#define DECLARE_SAMPLES(name) extern const Samples samples_##name;
KILN_OP_TABLE(DECLARE_SAMPLES)
#undef DECLARE_SAMPLES

/* The number of an operation's cases; 0 if an operation before it has the same ones. */
size_t samples_to_run(size_t op);

/* Builders of samples that other tests use too. */
KilnTensor *build_conv(KilnTensor *const *leaf, const int64_t *arg);
KilnTensor *build_conv_apart(KilnTensor *const *leaf, const int64_t *arg);
KilnTensor *build_dropout(KilnTensor *const *leaf, const int64_t *arg);

#endif

/* Records and runs a sample of an operation on a backend, and compares two results. */
#ifndef KILN_TESTS_SUPPORT_CASE_RUNNER_H
#define KILN_TESTS_SUPPORT_CASE_RUNNER_H

#include <stdbool.h>

#include "graph/graph.h"
#include "tests/support/cmocka.h"
#include "tests/support/ops/case.h"

typedef struct Bytes {
    void *data, *block; /* `data` lies in `block`, which is freed */
    size_t size;
    KilnDType dtype;
} Bytes;

/* What test_ops_extreme changes in the leaves of a case. */
typedef struct Extremes {
    bool unaligned; /* leaves begin one element after an aligned address */
    int leaf;       /* number of the leaf that gets `value` */
    double value;   /* stands at one element of it; 0: nowhere */
    double min;     /* differences are relative to the largest value, or to this if larger */
} Extremes;
extern Extremes extremes;

/* The output of a case, each leaf after the run, and each leaf's gradient. */
typedef struct Result {
    Bytes output, leaf[MAX_LEAVES], grad[MAX_LEAVES];
} Result;

void result_free(Result *result);

Bytes bytes_new(KilnDType dtype, const KilnShape *shape);

KilnDType leaf_dtype(char kind, KilnDType float_type);

Bytes case_leaf(const Case *c, int i, KilnDType float_type);

KilnTensor *leaf_tensor(KilnGraph *graph, const Case *c, int i, const Bytes *values, void *grad);

bool case_wants_grad(const Case *c);

/* A scalar that weights the elements of y differently, so that an error in the
 * order of their gradients shows. `weights` are freed by the caller. */
KilnTensor *loss_of(KilnGraph *graph, KilnTensor *y, Bytes *weights);

/* Record the case and its gradients; returns its output. The case itself is the first *ret_built
 * nodes. `result` and `weights` hold the leaves. */
KilnTensor *record_case(KilnGraph *graph, const Case *c, Result *result, Bytes *weights,
                        size_t *ret_built);

/* Run what is recorded; the case's output goes into the result. */
void run_recorded(KilnGraph *graph, const Case *c, KilnTensor *y, Result *result);

void run_case(KilnBackend *backend, const Case *c, Result *result);
/* The same values, as the product with 1 gives them: mixed precision keeps them as bf16. */
KilnTensor *through_product(KilnTensor *x, const float *one);
/* Whether run_case_bf16 rounds the values of leaves of this kind. */
bool rounds_to_bf16(char kind);
/* A case whose float inputs come from products and whose output goes into one. The inputs are
 * numbers that bf16 has, so that only the operation rounds. */
void run_case_bf16(KilnBackend *backend, KilnPrecision precision, const Case *c, Result *result);

/* Largest difference over the largest value. */
double difference(const Bytes *want, const Bytes *got);

/* Fails the test when the results differ by more than the case tolerates. */
void compare(const Case *c, const char *how, const Result *want, const Result *got);

bool same_result(const Result *a, const Result *b);

#endif

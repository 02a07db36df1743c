/* Runs a recorded case on a backend and compares what two backends gave. Shared
 * by the tests of the backends; each includes cmocka first. */
#ifndef KILN_TEST_BACKEND_SUPPORT_H
#define KILN_TEST_BACKEND_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "graph/backend.h"
#include "kiln/ops.h"
#include "kiln/rng.h"

enum { MAX_LEAVES = 6, MAX_NODES = 256 };

/* What a leaf is filled with and used for, one letter each. */
enum {
    LEAF_GRAD = 'g',     /* float, wants a gradient */
    LEAF_FLOAT = 'f',    /* float without one */
    LEAF_POSITIVE = 'p', /* variances, learning rates */
    LEAF_LABEL = 'l',    /* i32 below 3 */
    LEAF_VARIABLE = 'v', /* float that the operation updates, positive */
    LEAF_COUNTER = 'c'   /* i64 that the operation updates */
};

typedef struct Case {
    const char *name;
    /* Records the operation; NULL when it only updates leaves. */
    KilnTensor *(*build)(KilnTensor *const *leaf, const int64_t *arg);
    const char *leaves;
    KilnShape shape[MAX_LEAVES];
    int64_t arg[4];
} Case;

/* ---- Running a case on a backend ------------------------------------------------ */

typedef struct Bytes {
    void *data;
    size_t size;
    KilnDType dtype;
} Bytes;

/* What a case gave: the output, each leaf after the run, each leaf's gradient. */
typedef struct Result {
    Bytes output, leaf[MAX_LEAVES], grad[MAX_LEAVES];
    const KilnOp *ops[MAX_NODES]; /* that were recorded */
    size_t n_ops;
} Result;

static inline void result_free(Result *result)
{
    free(result->output.data);
    for (int i = 0; i < MAX_LEAVES; i++) {
        free(result->leaf[i].data);
        free(result->grad[i].data);
    }
}

static inline Bytes bytes_new(KilnDType dtype, const KilnShape *shape)
{
    Bytes bytes = { .dtype = dtype };

    bytes.size = (size_t)kiln_shape_count(shape) * kiln_dtype_size(dtype);
    bytes.data = calloc(1, bytes.size);
    assert_non_null(bytes.data);
    return bytes;
}

static inline Bytes leaf_new(char kind, const KilnShape *shape, uint64_t seed)
{
    Bytes bytes = bytes_new(kind == LEAF_LABEL     ? KILN_I32
                            : kind == LEAF_COUNTER ? KILN_I64
                                                   : KILN_F32,
                            shape);
    KilnRng rng;

    kiln_rng_init(&rng, seed, KILN_RNG_USER, 0, 0);
    for (int64_t i = 0; i < kiln_shape_count(shape); i++)
        if (kind == LEAF_LABEL)
            ((int32_t *)bytes.data)[i] = (int32_t)kiln_rng_below(&rng, 3);
        else if (kind == LEAF_COUNTER)
            ((int64_t *)bytes.data)[i] = 41;
        else if (kind == LEAF_POSITIVE || kind == LEAF_VARIABLE)
            ((float *)bytes.data)[i] = kiln_rng_range(&rng, 0.1f, 1.1f);
        else
            ((float *)bytes.data)[i] = kiln_rng_normal(&rng);
    return bytes;
}

static inline KilnTensor *leaf_tensor(KilnGraph *graph, const Case *c, int i, Result *result)
{
    const char kind = c->leaves[i];

    result->leaf[i] = leaf_new(kind, &c->shape[i], (uint64_t)i + 1);
    if (kind == LEAF_GRAD) {
        result->grad[i] = bytes_new(KILN_F32, &c->shape[i]);
        return kiln_graph_variable(graph, KILN_F32, c->shape[i], result->leaf[i].data, true,
                                   result->grad[i].data);
    }
    if (kind == LEAF_VARIABLE || kind == LEAF_COUNTER)
        return kiln_graph_variable(graph, result->leaf[i].dtype, c->shape[i], result->leaf[i].data,
                                   false, NULL);
    return kiln_graph_input(graph, result->leaf[i].dtype, c->shape[i], result->leaf[i].data);
}

/* A scalar that weighs the elements of y differently. */
static inline KilnTensor *loss_of(KilnGraph *graph, KilnTensor *y, Bytes *weights)
{
    const KilnShape *shape = kiln_tensor_shape(y);

    *weights = leaf_new(LEAF_FLOAT, shape, 99);
    return kiln_sum(kiln_mul(y, kiln_graph_input(graph, KILN_F32, *shape, weights->data)));
}

static inline void run_case(KilnBackend *backend, const Case *c, Result *result)
{
    KilnError err = { 0 };
    KilnGraph *graph = NULL;
    KilnTensor *leaf[MAX_LEAVES] = { NULL };
    Bytes weights = { 0 };

    memset(result, 0, sizeof(*result));
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    for (int i = 0; c->leaves[i] != '\0'; i++)
        leaf[i] = leaf_tensor(graph, c, i, result);

    KilnTensor *y = c->build(leaf, c->arg);

    if (y != NULL && !kiln_tensor_poisoned(y) && strchr(c->leaves, LEAF_GRAD) != NULL)
        kiln_graph_backward(graph, loss_of(graph, y, &weights));
    if (kiln_graph_run(graph, &y, y != NULL ? 1 : 0, &err) != KILN_OK)
        fail_msg("%s on %s: %s", c->name, backend->ops->name, err.text);
    if (y != NULL) {
        result->output = bytes_new(kiln_tensor_dtype(y), kiln_tensor_shape(y));
        memcpy(result->output.data, kiln_tensor_data(y), result->output.size);
    }
    for (size_t i = 0; i < graph->n_nodes && i < MAX_NODES; i++)
        result->ops[result->n_ops++] = graph->nodes[i]->op;
    kiln_graph_free(graph);
    free(weights.data);
}

/* ---- Comparing ------------------------------------------------------------------ */

/* Sums of hundreds of products in f32 stay below this, by Winograd's way too. */
static const double tolerance = 1e-5;

/* Largest difference over the largest value. */
static inline double difference(const Bytes *want, const Bytes *got)
{
    double worst = 0.0, scale = 1e-30;

    assert_int_equal(want->dtype, got->dtype);
    assert_int_equal(want->size, got->size);
    if (want->dtype != KILN_F32)
        return memcmp(want->data, got->data, want->size) == 0 ? 0.0 : INFINITY;
    for (size_t i = 0; i < want->size / sizeof(float); i++) {
        double a = (double)((const float *)want->data)[i];
        double b = (double)((const float *)got->data)[i];

        if (isnan(a) != isnan(b))
            return INFINITY;
        worst = fmax(worst, fabs(a - b));
        scale = fmax(scale, fabs(a));
    }
    return worst / scale;
}

static inline void compare(const Case *c, const char *how, const Result *want, const Result *got)
{
    double worst = 0.0;

    if (want->output.data != NULL)
        worst = difference(&want->output, &got->output);
    if (worst > tolerance)
        fail_msg("%s, %s: the output differs by %g", c->name, how, worst);
    for (int i = 0; c->leaves[i] != '\0'; i++) {
        double leaf = difference(&want->leaf[i], &got->leaf[i]);
        double grad = want->grad[i].data != NULL ? difference(&want->grad[i], &got->grad[i]) : 0.0;

        if (leaf > tolerance)
            fail_msg("%s, %s: leaf %d differs by %g after the run", c->name, how, i, leaf);
        if (grad > tolerance)
            fail_msg("%s, %s: the gradient of input %d differs by %g", c->name, how, i, grad);
    }
}

static inline bool same_bytes(const Bytes *a, const Bytes *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

static inline bool same_result(const Result *a, const Result *b)
{
    bool same = same_bytes(&a->output, &b->output);

    for (int i = 0; i < MAX_LEAVES; i++)
        same = same && same_bytes(&a->leaf[i], &b->leaf[i]) && same_bytes(&a->grad[i], &b->grad[i]);
    return same;
}

/* ---- Backends ------------------------------------------------------------------- */

static inline KilnBackend *ref_new(void)
{
    KilnBackend *backend = NULL;
    KilnError err = { 0 };

    if (kiln_backend_ref_new(&backend, &err) != KILN_OK)
        fail_msg("%s", err.text);
    return backend;
}

static inline KilnBackend *cpu_new(int threads, KilnConvolution conv)
{
    KilnBackend *backend = NULL;
    KilnError err = { 0 };

    if (kiln_backend_cpu_new(threads, &backend, &err) != KILN_OK)
        fail_msg("%s", err.text);
    kiln_backend_set_convolution(backend, conv);
    return backend;
}

#endif

#include "tests/support/case_runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/backend.h"
#include "kiln/ops.h"
#include "kiln/rng.h"
#include "tensor/bf16.h"

Extremes extremes;

void result_free(Result *result)
{
    free(result->output.block);
    for (int i = 0; i < MAX_LEAVES; i++) {
        free(result->leaf[i].block);
        free(result->grad[i].block);
    }
}

Bytes bytes_new(KilnDType dtype, const KilnShape *shape)
{
    Bytes bytes = { .dtype = dtype };

    bytes.size = (size_t)kiln_shape_count(shape) * kiln_dtype_size(dtype);
    bytes.block = calloc(1, bytes.size + kiln_dtype_size(dtype));
    assert_non_null(bytes.block);
    bytes.data = (char *)bytes.block + (extremes.unaligned ? kiln_dtype_size(dtype) : 0);
    return bytes;
}

KilnDType leaf_dtype(char kind, KilnDType float_type)
{
    switch (kind) {
    case LEAF_LABEL:
    case LEAF_INDEX:
        return KILN_I32;
    case LEAF_MASK:
        return KILN_U8;
    case LEAF_COUNTER:
        return KILN_I64;
    default:
        return float_type;
    }
}

static double leaf_value(char kind, const int64_t *arg, KilnRng *rng)
{
    switch (kind) {
    case LEAF_GRAD:
    case LEAF_FLOAT:
        return (double)kiln_rng_normal(rng);
    case LEAF_POSITIVE:
    case LEAF_POSITIVE_GRAD:
    case LEAF_VARIABLE:
        return (double)kiln_rng_range(rng, 0.1f, 1.1f);
    case LEAF_LABEL:
        return (double)kiln_rng_below(rng, 3);
    case LEAF_INDEX:
        return (double)kiln_rng_below(rng, (uint32_t)arg[0]);
    case LEAF_MASK:
        return (double)kiln_rng_below(rng, 2);
    case LEAF_COUNTER:
        return 41.0;
    default:
        fail_msg("'%c' is no kind of leaf", kind);
        return NAN;
    }
}

static void bytes_set(const Bytes *bytes, int64_t i, double value)
{
    switch (bytes->dtype) {
    case KILN_F32:
        ((float *)bytes->data)[i] = (float)value;
        break;
    case KILN_F64:
        ((double *)bytes->data)[i] = value;
        break;
    case KILN_I32:
        ((int32_t *)bytes->data)[i] = (int32_t)value;
        break;
    case KILN_I64:
        ((int64_t *)bytes->data)[i] = (int64_t)value;
        break;
    default:
        ((uint8_t *)bytes->data)[i] = (uint8_t)value;
        break;
    }
}

/* Always the same values for one kind, shape and seed, in any float type. */
static Bytes leaf_new(char kind, KilnDType float_type, const KilnShape *shape, const int64_t *arg,
                      uint64_t seed)
{
    Bytes bytes = bytes_new(leaf_dtype(kind, float_type), shape);
    KilnRng rng;

    kiln_rng_init(&rng, seed, KILN_RNG_USER, 0, 0);
    for (int64_t i = 0; i < kiln_shape_count(shape); i++)
        bytes_set(&bytes, i, leaf_value(kind, arg, &rng));
    return bytes;
}

Bytes case_leaf(const Case *c, int i, KilnDType float_type)
{
    Bytes leaf = leaf_new(c->leaves[i], float_type, &c->shape[i], c->arg, (uint64_t)i + 1);

    if (extremes.value != 0.0 && extremes.leaf == i)
        bytes_set(&leaf, kiln_shape_count(&c->shape[i]) / 2, extremes.value);
    return leaf;
}

KilnTensor *leaf_tensor(KilnGraph *graph, const Case *c, int i, const Bytes *values, void *grad)
{
    const char kind = c->leaves[i];

    if (leaf_wants_grad(kind) || kind == LEAF_VARIABLE || kind == LEAF_COUNTER)
        return kiln_graph_variable(graph, values->dtype, c->shape[i], values->data,
                                   leaf_wants_grad(kind), grad);
    return kiln_graph_input(graph, values->dtype, c->shape[i], values->data);
}

bool case_wants_grad(const Case *c)
{
    for (int i = 0; c->leaves[i] != '\0'; i++)
        if (leaf_wants_grad(c->leaves[i]))
            return true;
    return false;
}

KilnTensor *loss_of(KilnGraph *graph, KilnTensor *y, Bytes *weights)
{
    const KilnShape *shape = kiln_tensor_shape(y);

    if (kiln_tensor_poisoned(y))
        return y;
    *weights = leaf_new(LEAF_FLOAT, graph->float_type, shape, NULL, 99);
    return kiln_sum(kiln_mul(y, kiln_graph_input(graph, weights->dtype, *shape, weights->data)));
}

KilnTensor *record_case(KilnGraph *graph, const Case *c, Result *result, Bytes *weights,
                        size_t *ret_built)
{
    KilnTensor *leaf[MAX_LEAVES] = { NULL };

    memset(result, 0, sizeof(*result));
    assert_true(strlen(c->leaves) <= MAX_LEAVES);
    kiln_graph_begin(graph);
    for (int i = 0; c->leaves[i] != '\0'; i++) {
        result->leaf[i] = case_leaf(c, i, graph->float_type);
        if (leaf_wants_grad(c->leaves[i]))
            result->grad[i] = bytes_new(graph->float_type, &c->shape[i]);
        leaf[i] = leaf_tensor(graph, c, i, &result->leaf[i], result->grad[i].data);
    }

    KilnTensor *y = c->build(leaf, c->arg);

    *ret_built = graph->n_nodes;
    if (y != NULL && case_wants_grad(c))
        kiln_graph_backward(graph, loss_of(graph, y, weights));
    return y;
}

void run_recorded(KilnGraph *graph, const Case *c, KilnTensor *y, Result *result)
{
    KilnError err = { 0 };

    if (kiln_graph_run(graph, &y, y != NULL ? 1 : 0, &err) != KILN_OK)
        fail_msg("%s on %s: %s", c->name, graph->backend->ops->name, err.text);
    if (y == NULL)
        return;
    result->output = bytes_new(kiln_tensor_dtype(y), kiln_tensor_shape(y));
    memcpy(result->output.data, kiln_tensor_data(y), result->output.size);
}

void run_case(KilnBackend *backend, const Case *c, Result *result)
{
    KilnError err = { 0 };
    KilnGraph *graph = NULL;
    Bytes weights = { 0 };
    size_t built;

    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);

    KilnTensor *y = record_case(graph, c, result, &weights, &built);

    run_recorded(graph, c, y, result);
    kiln_graph_free(graph);
    free(weights.block);
}

KilnTensor *through_product(KilnTensor *x, const float *one)
{
    const KilnShape *shape = kiln_tensor_shape(x);
    KilnTensor *column = kiln_reshape(x, KILN_SHAPE(kiln_shape_count(shape), 1));

    return kiln_reshape(kiln_matmul(column,
                                    kiln_graph_input(x->graph, KILN_F32, KILN_SHAPE(1, 1), one),
                                    false, false),
                        *shape);
}

bool rounds_to_bf16(char kind)
{
    return leaf_wants_grad(kind) || kind == LEAF_FLOAT || kind == LEAF_POSITIVE;
}

void run_case_bf16(KilnBackend *backend, KilnPrecision precision, const Case *c, Result *result)
{
    static const float one = 1.0f;
    KilnTensor *leaf[MAX_LEAVES] = { NULL }, *y;
    KilnGraph *graph = NULL;
    Bytes weights = { 0 };
    KilnError err;

    memset(result, 0, sizeof(*result));
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_set_precision(graph, precision);
    kiln_graph_begin(graph);
    for (int i = 0; c->leaves[i] != '\0'; i++) {
        Bytes *bytes = &result->leaf[i];

        *bytes = case_leaf(c, i, KILN_F32);
        for (size_t k = 0; k < bytes->size / sizeof(float) && rounds_to_bf16(c->leaves[i]); k++)
            ((float *)bytes->data)[k] = kiln_bf16_to(kiln_bf16_of(((float *)bytes->data)[k]));
        if (leaf_wants_grad(c->leaves[i]))
            result->grad[i] = bytes_new(KILN_F32, &c->shape[i]);
        leaf[i] = leaf_tensor(graph, c, i, bytes, result->grad[i].data);
        if (rounds_to_bf16(c->leaves[i]))
            leaf[i] = through_product(leaf[i], &one);
    }
    y = c->build(leaf, c->arg);
    if (y != NULL && kiln_tensor_dtype(y) == KILN_F32)
        y = through_product(y, &one);
    if (y != NULL && case_wants_grad(c))
        kiln_graph_backward(graph, loss_of(graph, y, &weights));
    run_recorded(graph, c, y, result);
    kiln_graph_free(graph);
    free(weights.block);
}

/* Sums of hundreds of products in f32 stay below this, by Winograd's way too. */
static const double usual_tolerance = 1e-5;

static double float_at(const Bytes *bytes, size_t i)
{
    return bytes->dtype == KILN_F64 ? ((const double *)bytes->data)[i]
                                    : (double)((const float *)bytes->data)[i];
}

double difference(const Bytes *want, const Bytes *got)
{
    double worst = 0.0, scale = fmax(extremes.min, 1e-30);

    assert_int_equal(want->dtype, got->dtype);
    assert_int_equal(want->size, got->size);
    if (want->dtype != KILN_F32 && want->dtype != KILN_F64)
        return memcmp(want->data, got->data, want->size) == 0 ? 0.0 : INFINITY;
    for (size_t i = 0; i < want->size / kiln_dtype_size(want->dtype); i++) {
        double a = float_at(want, i), b = float_at(got, i);

        if (!isfinite(a) || !isfinite(b)) {
            if (isnan(a) != isnan(b) || (!isnan(a) && a != b))
                return INFINITY;
            continue;
        }
        worst = fmax(worst, fabs(a - b));
        scale = fmax(scale, fabs(a));
    }
    return worst / scale;
}

void compare(const Case *c, const char *how, const Result *want, const Result *got)
{
    const double tolerance = c->tolerance > 0.0 ? c->tolerance : usual_tolerance;
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

static bool same_bytes(const Bytes *a, const Bytes *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

bool same_result(const Result *a, const Result *b)
{
    bool same = same_bytes(&a->output, &b->output);

    for (int i = 0; i < MAX_LEAVES; i++)
        same = same && same_bytes(&a->leaf[i], &b->leaf[i]) && same_bytes(&a->grad[i], &b->grad[i]);
    return same;
}

/* Every operation over its samples (tests/unit/ops): the CPU backend against the
 * plain C reference, values and gradients, over shapes that are awkward for
 * vectors, blocks and threads; and the gradients against finite differences in
 * f64. The samples are found by the operation's name from the table of
 * operations: a missing one does not compile. */
#include "tests/unit/backend_support.h"

#include "graph/gradcheck.h"
#include "tests/unit/ops/activation.h"
#include "tests/unit/ops/cast.h"
#include "tests/unit/ops/attention.h"
#include "tests/unit/ops/conv.h"
#include "tests/unit/ops/ctc.h"
#include "tests/unit/ops/elementwise.h"
#include "tests/unit/ops/embedding.h"
#include "tests/unit/ops/index.h"
#include "tests/unit/ops/loss.h"
#include "tests/unit/ops/norm.h"
#include "tests/unit/ops/pool.h"
#include "tests/unit/ops/product.h"
#include "tests/unit/ops/recurrent.h"
#include "tests/unit/ops/reduce.h"
#include "tests/unit/ops/resample.h"
#include "tests/unit/ops/shape.h"
#include "tests/unit/ops/update.h"
#include "tensor/bf16.h"

static const struct Row {
    const KilnOp *op;
    const Case *cases;
    size_t count;
} rows[] = {
#define ROW(name) { &kiln_op_##name, cases_##name, KILN_COUNT(cases_##name) },
    KILN_OP_TABLE(ROW)
#undef ROW
};

/* Operations may share their samples, which then run once. */
static bool first_with_its_cases(size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (rows[i].cases == rows[row].cases)
            return false;
    return true;
}

/* ---- Backends against each other -------------------------------------------------- */

static void test_backends(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(rows); i++)
        for (size_t k = 0; k < rows[i].count && first_with_its_cases(i); k++)
            check_case(&rows[i].cases[k]);
}

/* ---- Gradients against finite differences ----------------------------------------- */

/* Two evaluations for each element: more would take minutes. */
enum { MOST_ELEMENTS = 300 };

static int64_t gradient_elements(const Case *c)
{
    int64_t count = 0;

    for (int i = 0; c->leaves[i] != '\0'; i++)
        if (leaf_wants_grad(c->leaves[i]))
            count += kiln_shape_count(&c->shape[i]);
    return count;
}

static bool has_differences(const Case *c)
{
    return !c->no_differences && case_wants_grad(c) && gradient_elements(c) <= MOST_ELEMENTS;
}

typedef struct Differences {
    const Case *c;
    Bytes leaf[MAX_LEAVES];
    Bytes weights;
} Differences;

/* The weighed output of a case of the variables. The other leaves are made anew,
 * for the operation may have updated them. */
static KilnTensor *weighed_case(KilnGraph *graph, KilnTensor *const *x, void *ctx)
{
    Differences *d = ctx;
    KilnTensor *leaf[MAX_LEAVES] = { NULL };

    for (int i = 0; d->c->leaves[i] != '\0'; i++) {
        if (leaf_wants_grad(d->c->leaves[i])) {
            leaf[i] = *x++;
            continue;
        }
        free(d->leaf[i].data);
        d->leaf[i] = case_leaf(d->c, i, KILN_F64);
        leaf[i] = leaf_tensor(graph, d->c, i, &d->leaf[i], NULL);
    }
    free(d->weights.data);
    d->weights = (Bytes) { 0 };
    return loss_of(graph, d->c->build(leaf, d->c->arg), &d->weights);
}

static void check_gradient(KilnBackend *backend, const Case *c)
{
    Differences d = { .c = c };
    KilnGradVariable variables[MAX_LEAVES];
    KilnGradWorst worst;
    KilnError err;
    size_t n = 0;

    for (int i = 0; c->leaves[i] != '\0'; i++)
        if (leaf_wants_grad(c->leaves[i])) {
            d.leaf[i] = case_leaf(c, i, KILN_F64);
            variables[n++] = (KilnGradVariable) { c->shape[i], d.leaf[i].data };
        }
    if (kiln_gradcheck(backend, weighed_case, &d, variables, n, 1e-5, &worst, &err) < 0)
        fail_msg("%s: %s", c->name, err.text);
    if (!(worst.error < 1e-7))
        fail_msg("%s: gradient of variable %zu, element %lld: %.10g, differences say %.10g",
                 c->name, worst.variable, (long long)worst.element, worst.gradient,
                 worst.difference);
    for (int i = 0; i < MAX_LEAVES; i++)
        free(d.leaf[i].data);
    free(d.weights.data);
}

static void test_gradients(void **unused)
{
    KilnBackend *backend = NULL;
    KilnError err;

    (void)unused;
    if (kiln_backend_ref_f64_new(&backend, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < KILN_COUNT(rows); i++)
        for (size_t k = 0; k < rows[i].count && first_with_its_cases(i); k++)
            if (has_differences(&rows[i].cases[k]))
                check_gradient(backend, &rows[i].cases[k]);
    kiln_backend_free(backend);
}

/* ---- bf16 ------------------------------------------------------------------------- */

/* The same values, as the product with 1 gives them: mixed precision keeps them
 * as bf16. */
static KilnTensor *through_product(KilnTensor *x, const float *one)
{
    const KilnShape *shape = kiln_tensor_shape(x);
    KilnTensor *column = kiln_reshape(x, KILN_SHAPE(kiln_shape_count(shape), 1));

    return kiln_reshape(kiln_matmul(column,
                                    kiln_graph_input(x->graph, KILN_F32, KILN_SHAPE(1, 1), one),
                                    false, false),
                        *shape);
}

static bool narrows(char kind)
{
    return leaf_wants_grad(kind) || kind == LEAF_FLOAT || kind == LEAF_POSITIVE;
}

/* A case whose float inputs come from products and whose output goes into one.
 * The inputs are numbers that bf16 has, so that only the operation rounds. */
static void run_narrow(KilnBackend *backend, KilnPrecision precision, const Case *c, Result *result)
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
        for (size_t k = 0; k < bytes->size / sizeof(float) && narrows(c->leaves[i]); k++)
            ((float *)bytes->data)[k] = kiln_bf16_to(kiln_bf16_of(((float *)bytes->data)[k]));
        if (leaf_wants_grad(c->leaves[i]))
            result->grad[i] = bytes_new(KILN_F32, &c->shape[i]);
        leaf[i] = leaf_tensor(graph, c, i, bytes, result->grad[i].data);
        if (narrows(c->leaves[i]))
            leaf[i] = through_product(leaf[i], &one);
    }
    y = c->build(leaf, c->arg);
    if (y != NULL && kiln_tensor_dtype(y) == KILN_F32)
        y = through_product(y, &one);
    if (y != NULL && case_wants_grad(c))
        kiln_graph_backward(graph, loss_of(graph, y, &weights));
    if (kiln_graph_run(graph, &y, y != NULL ? 1 : 0, &err) != KILN_OK)
        fail_msg("%s on %s: %s", c->name, backend->ops->name, err.text);
    if (y != NULL) {
        result->output = bytes_new(kiln_tensor_dtype(y), kiln_tensor_shape(y));
        memcpy(result->output.data, kiln_tensor_data(y), result->output.size);
    }
    kiln_graph_free(graph);
    free(weights.data);
}

static void check_narrow(const Result *want, KilnBackend *backend, const char *how, const Case *c)
{
    Result got, again;

    run_narrow(backend, KILN_BF16_MIXED, c, &got);
    run_narrow(backend, KILN_BF16_MIXED, c, &again);
    compare(c, how, want, &got);
    if (!same_result(&got, &again))
        fail_msg("%s, %s: two runs differ", c->name, how);
    result_free(&got);
    result_free(&again);
}

static void test_bf16(void **unused)
{
    KilnBackend *ref = ref_new(), *one = cpu_new(1, KILN_CONVOLUTION_AUTO);
    KilnBackend *three = cpu_new(3, KILN_CONVOLUTION_AUTO);
    KilnBackend *without = cpu_new(2, KILN_CONVOLUTION_DIRECT);

    (void)unused;
    without->bf16 = false;
    for (size_t i = 0; i < KILN_COUNT(rows); i++)
        for (size_t k = 0; k < rows[i].count && first_with_its_cases(i); k++) {
            Case c = rows[i].cases[k];
            Result want;

            /* The logarithm of the base magnifies the rounding of an exponent. */
            c.tolerance = rows[i].op == &kiln_op_power ? 5e-2 : 2e-2;
            run_narrow(ref, KILN_PRECISION_32, &c, &want);
            check_narrow(&want, ref, "reference, bf16", &c);
            check_narrow(&want, one, "cpu, bf16, 1 thread", &c);
            check_narrow(&want, three, "cpu, bf16, 3 threads", &c);
            check_narrow(&want, without, "cpu without bf16", &c);
            result_free(&want);
        }
    kiln_backend_free(without);
    kiln_backend_free(three);
    kiln_backend_free(one);
    kiln_backend_free(ref);
}

/* ---- Coverage --------------------------------------------------------------------- */

/* An operation with a gradient counts where the case itself records it, one
 * without also among the gradients of others. */
static bool records(KilnBackend *backend, const Case *c, const KilnOp *op)
{
    KilnGraph *graph = NULL;
    KilnError err;
    Result result;
    Bytes weights = { 0 };
    size_t n;
    bool found = false;

    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    record_case(graph, c, &result, &weights, &n);
    if (kiln_graph_check(graph, &err) < 0)
        fail_msg("%s: %s", c->name, err.text);
    if (op->gradient == NULL)
        n = graph->n_nodes;
    for (size_t i = 0; i < n; i++)
        found = found || graph->nodes[i]->op == op;
    kiln_graph_free(graph);
    result_free(&result);
    free(weights.data);
    return found;
}

static void test_coverage(void **unused)
{
    KilnBackend *ref = ref_new(), *cpu = cpu_new(1, KILN_CONVOLUTION_DIRECT);

    (void)unused;
    assert_int_equal(KILN_COUNT(rows), kiln_ops_count);
    for (size_t i = 0; i < KILN_COUNT(rows); i++) {
        const KilnOp *op = rows[i].op;
        bool recorded = false, differences = false;

        assert_ptr_equal(op, kiln_ops[i]);
        for (size_t k = 0; k < rows[i].count; k++)
            if (records(ref, &rows[i].cases[k], op)) {
                recorded = true;
                differences = differences || has_differences(&rows[i].cases[k]);
            }
        if (!recorded)
            fail_msg("no sample of %s records it", op->name);
        if (op->gradient != NULL && !differences)
            fail_msg("%s: no sample compares its gradient with finite differences", op->name);
        if (ref->ops->kernel(ref, op) == NULL || cpu->ops->kernel(cpu, op) == NULL)
            fail_msg("%s has no kernel on one of the backends", op->name);
    }
    kiln_backend_free(cpu);
    kiln_backend_free(ref);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backends),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_coverage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

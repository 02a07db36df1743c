/* Every operation's samples (tests/support/ops): values and gradients of the CPU backend
 * against the reference, in shapes that are awkward for vectors, blocks and threads; and
 * gradients against finite differences in f64. */
#include <stdlib.h>

#include "graph/gradcheck.h"
#include "tests/support/cmocka.h"
#include "tests/support/cpu_variants.h"
#include "tests/support/ops/samples.h"

/* ---- Backends against each other -------------------------------------------------- */

static void test_backends(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < op_samples_count; i++)
        for (size_t k = 0; k < samples_to_run(i); k++)
            check_case(&op_samples[i].samples->cases[k]);
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

/* The weighted output of a case of the variables. The other leaves are rebuilt, because the
 * operation may have updated them. */
static KilnTensor *weighted_case(KilnGraph *graph, KilnTensor *const *x, void *ctx)
{
    Differences *d = ctx;
    KilnTensor *leaf[MAX_LEAVES] = { NULL };

    for (int i = 0; d->c->leaves[i] != '\0'; i++) {
        if (leaf_wants_grad(d->c->leaves[i])) {
            leaf[i] = *x++;
            continue;
        }
        free(d->leaf[i].block);
        d->leaf[i] = case_leaf(d->c, i, KILN_F64);
        leaf[i] = leaf_tensor(graph, d->c, i, &d->leaf[i], NULL);
    }
    free(d->weights.block);
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
    if (kiln_gradcheck(backend, weighted_case, &d, variables, n, 1e-5, &worst, &err) < 0)
        fail_msg("%s: %s", c->name, err.text);
    if (!(worst.error < 1e-7))
        fail_msg("%s: gradient of variable %zu, element %lld: %.10g, differences say %.10g",
                 c->name, worst.variable, (long long)worst.element, worst.gradient,
                 worst.difference);
    for (int i = 0; i < MAX_LEAVES; i++)
        free(d.leaf[i].block);
    free(d.weights.block);
}

static void test_gradients(void **unused)
{
    KilnBackend *backend = NULL;
    KilnError err;

    (void)unused;
    if (kiln_backend_ref_f64_new(&backend, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < op_samples_count; i++)
        for (size_t k = 0; k < samples_to_run(i); k++)
            if (has_differences(&op_samples[i].samples->cases[k]))
                check_gradient(backend, &op_samples[i].samples->cases[k]);
    kiln_backend_free(backend);
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
    free(weights.block);
    return found;
}

static void test_coverage(void **unused)
{
    KilnBackend *ref = ref_new(), *cpu = cpu_new(1, KILN_CONVOLUTION_DIRECT);

    (void)unused;
    assert_int_equal(op_samples_count, kiln_ops_count);
    for (size_t i = 0; i < op_samples_count; i++) {
        const KilnOp *op = op_samples[i].op;
        bool recorded = false, differences = false;

        assert_ptr_equal(op, kiln_ops[i]);
        for (size_t k = 0; k < op_samples[i].samples->count; k++)
            if (records(ref, &op_samples[i].samples->cases[k], op)) {
                recorded = true;
                differences = differences || has_differences(&op_samples[i].samples->cases[k]);
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
        cmocka_unit_test(test_coverage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

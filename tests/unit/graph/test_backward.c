/* Backward of every operation: it records each gradient that a float input requires, or is an
 * error. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/cpu_variants.h"
#include "tests/support/ops/samples.h"

static KilnGraph *graph_new(KilnBackend *backend)
{
    KilnGraph *graph = NULL;
    KilnError err;

    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    return graph;
}

/* ---- Every operation ---------------------------------------------------------------- */

/* Its floats want gradients, but for what it updates. */
static void all_want(const Case *c, char leaves[MAX_LEAVES + 1])
{
    snprintf(leaves, MAX_LEAVES + 1, "%s", c->leaves);
    for (int i = 0; leaves[i] != '\0'; i++)
        if (leaves[i] == LEAF_FLOAT)
            leaves[i] = LEAF_GRAD;
        else if (leaves[i] == LEAF_POSITIVE)
            leaves[i] = LEAF_POSITIVE_GRAD;
}

/* Whether a node that reads the leaf has slope 0 there. */
static bool is_constant(const KilnGraph *graph, const KilnTensor *leaf)
{
    for (size_t n = 0; n < graph->n_nodes; n++)
        for (int i = 0; i < graph->nodes[n]->n_inputs; i++)
            if (graph->nodes[n]->inputs[i] == leaf && (graph->nodes[n]->op->constant >> i & 1) != 0)
                return true;
    return false;
}

static void check_gradients(KilnBackend *backend, const Case *c)
{
    char leaves[MAX_LEAVES + 1];
    KilnGraph *graph = graph_new(backend);
    Bytes weights = { 0 };
    Case wanting = *c;
    Result result;
    KilnError err = { 0 };
    size_t built;

    all_want(c, leaves);
    wanting.leaves = leaves;
    const KilnTensor *y = record_case(graph, &wanting, &result, &weights, &built);

    if (kiln_graph_check(graph, &err) < 0) {
        if (strstr(err.text, "has no gradient") == NULL &&
            strstr(err.text, "does not depend on any variable") == NULL &&
            strstr(err.text, "mul: the first must be f32") == NULL) /* results that are indices */
            fail_msg("%s: %s", c->name, err.text);
    } else {
        for (int i = 0; leaves[i] != '\0' && y != NULL && y->dtype == KILN_F32; i++)
            if (leaf_wants_grad(leaves[i]) && graph->tensors[i]->grad == NULL &&
                !is_constant(graph, graph->tensors[i]))
                fail_msg("%s: input %d gets no gradient, and no error says so", c->name, i);
    }
    result_free(&result);
    free(weights.block);
    kiln_graph_free(graph);
}

static void test_every_operation(void **unused)
{
    KilnBackend *ref = ref_new();

    (void)unused;
    for (size_t i = 0; i < op_samples_count; i++)
        for (size_t k = 0; k < samples_to_run(i); k++)
            check_gradients(ref, &op_samples[i].samples->cases[k]);
    kiln_backend_free(ref);
}

/* ---- A part of a loss ----------------------------------------------------------------- */

static float values[3] = { 1.0f, -2.0f, 3.0f }, grads[3];

static KilnTensor *variable(KilnGraph *graph)
{
    return kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(3), values, true, grads);
}

static void check_gradient(KilnGraph *graph, KilnTensor *loss, const float want[3])
{
    KilnError err;

    kiln_graph_backward(graph, loss);
    if (kiln_graph_run(graph, NULL, 0, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < 3; i++)
        if (fabsf(grads[i] - want[i]) > 1e-6f)
            fail_msg("element %d: expected %g, got %g", i, (double)want[i], (double)grads[i]);
}

static void check_error(KilnGraph *graph, KilnTensor *loss, const char *want)
{
    KilnError err = { 0 };

    kiln_graph_backward(graph, loss);
    assert_true(kiln_graph_check(graph, &err) < 0);
    if (strstr(err.text, want) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", want, err.text);
}

/* What has no gradient beside what has one. */
static void test_part_of_a_loss(void **unused)
{
    KilnBackend *ref = ref_new();
    KilnGraph *graph = graph_new(ref);
    KilnTensor *x = variable(graph);

    (void)unused;
    kiln_graph_layer(graph, "penalty");
    check_error(graph, kiln_add(kiln_sum(x), kiln_l2_norm(x)),
                "penalty: backward: l2_norm has no gradient, which its input 1 wants; kiln_detach");
    kiln_graph_begin(graph);
    x = variable(graph);
    check_error(graph, kiln_cross_entropy_soft(x, kiln_softmax(x, -1), (KilnCrossEntropy) { 0 }),
                "cross_entropy_soft has no gradient for its input 2");
    kiln_graph_begin(graph);
    x = variable(graph);
    check_gradient(graph, kiln_add(kiln_sum(x), kiln_l2_norm(kiln_detach(x))),
                   (float[]) { 1.0f, 1.0f, 1.0f });
    kiln_graph_begin(graph);
    x = variable(graph);
    check_gradient(graph, kiln_sum(kiln_mul(x, kiln_detach(x))), values);
    kiln_graph_begin(graph);
    x = variable(graph);
    KilnTensor *negative = kiln_lt(x, kiln_graph_full(graph, KILN_SHAPE(3), 0.0));
    check_gradient(graph, kiln_sum(kiln_where(negative, kiln_scale(x, 2.0), x)),
                   (float[]) { 1.0f, 2.0f, 1.0f });
    kiln_graph_begin(graph);
    x = variable(graph);
    KilnTensor *rounded = kiln_cast(kiln_cast(x, KILN_BF16), KILN_F32);
    check_gradient(graph, kiln_sum(kiln_add(x, rounded)), (float[]) { 2.0f, 2.0f, 2.0f });
    kiln_graph_free(graph);
    kiln_backend_free(ref);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_operation),
                                        cmocka_unit_test(test_part_of_a_loss) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

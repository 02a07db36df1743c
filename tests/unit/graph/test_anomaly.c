/* detect_anomaly: reports the first NaN or infinity of a step with its layer, operation and
 * inputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "graph/backend.h"

enum { N = 4 };

/* A linear layer, ReLU and a sum, with its gradients. */
static KilnStatus run(KilnBackend *backend, float *x, float *weight, bool detect, KilnError *err)
{
    float grad[N * N];
    KilnGraph *graph;

    assert_int_equal(kiln_graph_new(backend, &graph, err), KILN_OK);
    graph->detect_anomaly = detect;
    kiln_graph_begin(graph);
    kiln_graph_layer(graph, "fc1");
    KilnTensor *w = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(N, N), weight, true, grad);
    KilnTensor *y = kiln_linear(kiln_graph_input(graph, KILN_F32, KILN_SHAPE(2, N), x), w, NULL);
    kiln_graph_layer(graph, "act");
    y = kiln_relu(y);
    kiln_graph_layer(graph, NULL);
    KilnTensor *loss = kiln_sum(y);
    kiln_graph_backward(graph, loss);
    KilnStatus status = kiln_graph_run(graph, &loss, 1, err);
    kiln_graph_free(graph);
    return status;
}

static void check_message(const KilnError *err, const char *part)
{
    if (strstr(err->text, part) == NULL)
        fail_msg("\"%s\" is not in: %s", part, err->text);
}

static void test_anomaly(void **unused)
{
    float x[2 * N] = { 1, 2, 3, 4, 5, 6, 7, 8 }, weight[N * N] = { 0.5f, 0.25f };
    KilnBackend *backend;
    KilnError err;

    (void)unused;
    assert_int_equal(kiln_backend_cpu_new(2, &backend, &err), KILN_OK);
    assert_int_equal(run(backend, x, weight, true, &err), KILN_OK);

    weight[5] = NAN;
    assert_int_equal(run(backend, x, weight, false, &err), KILN_OK);
    assert_int_equal(run(backend, x, weight, true, &err), KILN_E_NUMERIC);
    check_message(&err, "fc1: linear: the result f32 [2, 4] holds NaN, first at element 1");
    check_message(&err, "input 1 f32 [2, 4] from 1 to 8");
    check_message(&err, "input 2 f32 [4, 4] from 0 to 0.5, holds NaN at element 5");

    weight[5] = 3e38f;
    assert_int_equal(run(backend, x, weight, true, &err), KILN_E_NUMERIC);
    check_message(&err, "fc1: linear: the result f32 [2, 4] holds infinity");
    kiln_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_anomaly) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A model of more than 2^31 parameters, most of them in pages that nothing writes. */
#include <math.h>

#include "graph/graph.h"
#include "nn/params.h"
#include "tests/support/cmocka.h"
#include "tests/support/param_memory.h"

enum { ROWS = 8, WIDTH = 4, SEGMENTS = 3 };
static const int64_t half = INT64_C(1) << 30;

typedef struct Net {
    KilnBackend *backend;
    KilnGraph *graph;
    KilnParams *params;
    KilnEmbedding layer;
} Net;

/* Two large parameters, and an embedding after them. False: the system refuses so much address
 * space, which is the only reason to skip. */
static bool net_init(Net *net)
{
    const KilnInit zero = { .kind = KILN_INIT_CONSTANT, .a = 0.0 };
    KilnError err = { 0 };
    KilnParam *large;

    *net = (Net) { 0 };
    assert_int_equal(kiln_backend_cpu_new(2, &net->backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(net->backend, &net->graph, &err), KILN_OK);
    assert_int_equal(kiln_params_new(1, &net->params, &err), KILN_OK);
    const KilnScope root = kiln_params_root(net->params);
    assert_int_equal(kiln_param_new(&root, "a", KILN_SHAPE(half), zero, &large, &err), KILN_OK);
    assert_int_equal(kiln_param_new(&root, "b", KILN_SHAPE(half), zero, &large, &err), KILN_OK);
    assert_int_equal(kiln_nn_embedding_init(&net->layer, &root, "words", ROWS, WIDTH, -1, &err),
                     KILN_OK);
    if (kiln_params_allocate(net->params, net->backend, &err) < 0 && err.status != KILN_E_NOMEM)
        fail_msg("%s", err.text);
    return err.status != KILN_E_NOMEM;
}

static void net_release(Net *net)
{
    kiln_graph_free(net->graph);
    kiln_params_free(net->params);
    kiln_backend_free(net->backend);
}

/* A step of SGD that trains the embedding alone. Returns the norm of all gradients. */
static double step(Net *net)
{
    static const int32_t words[2] = { 7, 2 };
    static const float hyper[2] = { 0.5f, 0.0f };
    static const float rates[2 * SEGMENTS] = { 0.0f, 0.0f, 0.0f, 0.0f, 1.0f, 0.0f };
    const int64_t begin = net->layer.weight->offset, size = begin + ROWS * WIDTH;
    const int64_t ends[SEGMENTS] = { half, begin, size };
    KilnGraph *graph = net->graph;
    KilnError err = { 0 };

    kiln_graph_begin(graph);
    KilnTensor *rows = kiln_nn_embedding(&net->layer,
                                         kiln_graph_input(graph, KILN_I32, KILN_SHAPE(2), words));
    kiln_graph_backward(graph, kiln_sum(kiln_scale(rows, 3.0)));
    const KilnFlat flat = {
        .param = kiln_params_flat_values(net->params, graph),
        .grad = kiln_params_flat_gradients(net->params, graph),
        .hyper = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(2), hyper),
        .segment_ends = kiln_graph_input(graph, KILN_I64, KILN_SHAPE(SEGMENTS), ends),
        .rates = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(SEGMENTS, 2), rates),
    };
    KilnTensor *norm = kiln_l2_norm(flat.grad);
    kiln_sgd_update(&flat, (KilnSgd) { 0 });
    if (kiln_graph_run(graph, &norm, 1, &err) < 0)
        fail_msg("%s", err.text);
    return kiln_tensor_scalar(norm);
}

static void test_step(void **unused)
{
    Net net;

    (void)unused;
    if (!net_init(&net)) {
        net_release(&net);
        skip();
    }
    assert_true(net.layer.weight->offset >= 2 * half);
    for (int time = 1; time <= 2; time++) {
        assert_true(fabs(step(&net) - 3.0 * sqrt(2.0 * WIDTH)) < 1e-6);
        const float *values = param_data(net.layer.weight);

        for (int row = 0; row < ROWS; row++)
            for (int d = 0; d < WIDTH; d++)
                assert_true(values[row * WIDTH + d] ==
                            (row == 7 || row == 2 ? -1.5f * (float)time : 0.0f));
    }
    net_release(&net);
}

/* Tensors stay below 2^31. */
static void test_refused(void **unused)
{
    Net net;
    KilnError err = { 0 };

    (void)unused;
    if (!net_init(&net)) {
        net_release(&net);
        skip();
    }
    kiln_graph_begin(net.graph);
    kiln_relu(kiln_params_flat_values(net.params, net.graph));
    assert_int_equal(kiln_graph_check(net.graph, &err), KILN_E_SHAPE);
    net_release(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_step),
                                        cmocka_unit_test(test_refused) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

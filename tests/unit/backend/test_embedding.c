/* Embedding layers: their gradient writes only the sparse rows of the batch. Other rows keep
 * their contents, and are cleared as soon as they may be wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "graph/backend.h"
#include "graph/graph.h"
#include "kiln/nn.h"
#include "tests/support/param_memory.h"

enum { ROWS = 101, WIDTH = 7, PADDING = 3 };

typedef struct Net {
    KilnBackend *backend;
    KilnGraph *graph;
    KilnParams *params;
    KilnEmbedding layer;
} Net;

static void net_init(Net *net, int64_t padding)
{
    KilnError err = { 0 };
    KilnScope root;

    assert_int_equal(kiln_backend_cpu_new(2, &net->backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(net->backend, &net->graph, &err), KILN_OK);
    assert_int_equal(kiln_params_new(1, &net->params, &err), KILN_OK);
    root = kiln_params_root(net->params);
    assert_int_equal(
        kiln_nn_embedding_init(&net->layer, &root, "words", ROWS, WIDTH, padding, &err), KILN_OK);
    assert_int_equal(kiln_params_seal(net->params, net->backend, &err), KILN_OK);
}

static void net_release(Net *net)
{
    kiln_graph_free(net->graph);
    kiln_params_free(net->params);
    kiln_backend_free(net->backend);
}

/* The sum of all looked-up values: a row's gradient is how often it was looked up. */
static void step(Net *net, const int32_t *index, int64_t n, bool bags, bool twice)
{
    KilnError err = { 0 };
    KilnTensor *words, *sum;

    kiln_graph_begin(net->graph);
    words = kiln_graph_input(net->graph, KILN_I32, bags ? KILN_SHAPE(1, n) : KILN_SHAPE(n), index);
    sum = bags ? kiln_nn_embedding_bag(&net->layer, words, NULL, KILN_BAG_SUM)
               : kiln_nn_embedding(&net->layer, words);
    sum = kiln_sum(sum);
    if (twice) /* the weight has another use, whose gradient is all ones */
        sum = kiln_add(sum, kiln_sum(kiln_param_tensor(net->layer.weight, net->graph)));
    kiln_graph_backward(net->graph, sum);
    if (kiln_graph_run(net->graph, &sum, 1, &err) < 0)
        fail_msg("%s", err.text);
}

static float *row_of(const Net *net, int64_t row)
{
    return params_gradients(net->params) + kiln_param_offset(net->layer.weight) + row * WIDTH;
}

static void expect_row(const Net *net, int64_t row, double value)
{
    for (int d = 0; d < WIDTH; d++)
        assert_float_equal(row_of(net, row)[d], value, 0.0);
}

static void check_steps(bool bags)
{
    static const int32_t first[] = { 5, 9, 5, 100 }, second[] = { 9, 0 };
    int32_t many[3 * ROWS];
    Net net;

    net_init(&net, -1);
    step(&net, first, 4, bags, false);
    expect_row(&net, 5, 2.0);
    expect_row(&net, 9, 1.0);
    expect_row(&net, 100, 1.0);
    expect_row(&net, 0, 0.0);
    *row_of(&net, 50) = 7.0f;
    step(&net, second, 2, bags, false);
    expect_row(&net, 5, 0.0);
    expect_row(&net, 100, 0.0);
    expect_row(&net, 9, 1.0);
    expect_row(&net, 0, 1.0);
    assert_float_equal(*row_of(&net, 50), 7.0, 0.0); /* was not looked at */
    for (int i = 0; i < 3 * ROWS; i++)
        many[i] = i % ROWS;
    step(&net, many, 3 * ROWS, bags, false); /* does not fit the list: all are written from now */
    expect_row(&net, 5, 3.0);
    step(&net, second, 2, bags, false);
    for (int row = 0; row < ROWS; row++)
        expect_row(&net, row, row == 0 || row == 9 ? 1.0 : 0.0);
    net_release(&net);
}

static void test_sparse_rows(void **unused)
{
    (void)unused;
    check_steps(false);
    check_steps(true);
}

/* Another use of the weight writes the gradient's place; the list is void then. */
static void test_shared_weight(void **unused)
{
    static const int32_t index[] = { 5, 9, 5, 100 };
    Net net;

    (void)unused;
    net_init(&net, -1);
    step(&net, index, 4, false, false);
    step(&net, index, 4, false, true);
    expect_row(&net, 5, 3.0);
    expect_row(&net, 50, 1.0);
    step(&net, index, 4, false, false);
    expect_row(&net, 5, 2.0);
    expect_row(&net, 50, 0.0);
    net_release(&net);
}

/* Two bags whose rows count as their factors say. */
static void weighted_step(Net *net, const int32_t index[5], float factors[5], float grad[5],
                          float ret[2 * WIDTH])
{
    static const int32_t starts[] = { 0, 3 };
    KilnError err = { 0 };

    kiln_graph_begin(net->graph);

    KilnTensor *words = kiln_graph_input(net->graph, KILN_I32, KILN_SHAPE(5), index);
    KilnTensor *offsets = kiln_graph_input(net->graph, KILN_I32, KILN_SHAPE(2), starts);
    KilnTensor *weighing = kiln_graph_variable(net->graph, KILN_F32, KILN_SHAPE(5), factors, true,
                                               grad);
    KilnTensor *y = kiln_nn_embedding_bag_weighted(&net->layer, words, offsets, weighing);

    kiln_graph_backward(net->graph, kiln_sum(y));
    if (kiln_graph_run(net->graph, &y, 1, &err) < 0)
        fail_msg("%s", err.text);
    memcpy(ret, kiln_tensor_data(y), 2 * WIDTH * sizeof(*ret));
}

static float weight_at(const Net *net, int64_t row, int64_t d)
{
    return ((const float *)param_data(net->layer.weight))[row * WIDTH + d];
}

static void test_weighted_bags(void **unused)
{
    static const int32_t index[] = { 5, 9, 5, PADDING, 100 }, other[] = { 9, 9, 0, 0, 9 };
    float factors[] = { 0.5f, 2.0f, 0.25f, 8.0f, -1.0f }, grad[5], y[2 * WIDTH];
    Net net;

    (void)unused;
    net_init(&net, PADDING);
    weighted_step(&net, index, factors, grad, y);
    for (int d = 0; d < WIDTH; d++) {
        assert_float_equal(y[d], 0.75f * weight_at(&net, 5, d) + 2.0f * weight_at(&net, 9, d),
                           1e-6);
        assert_float_equal(y[WIDTH + d], -weight_at(&net, 100, d), 1e-6);
    }
    expect_row(&net, 5, 0.75);
    expect_row(&net, 9, 2.0);
    expect_row(&net, 100, -1.0);
    expect_row(&net, PADDING, 0.0);
    for (int i = 0; i < 5; i++) {
        float sum = 0.0f;

        for (int d = 0; d < WIDTH && index[i] != PADDING; d++)
            sum += weight_at(&net, index[i], d);
        assert_float_equal(grad[i], sum, 1e-5);
    }
    *row_of(&net, 50) = 7.0f;
    weighted_step(&net, other, factors, grad, y);
    expect_row(&net, 5, 0.0);
    expect_row(&net, 9, 1.5);
    expect_row(&net, 0, 8.25);
    assert_float_equal(*row_of(&net, 50), 7.0, 0.0); /* was not looked at */
    net_release(&net);
}

static void test_padding_and_init(void **unused)
{
    static const int32_t index[] = { PADDING, 4, PADDING };
    double sum = 0.0, squares = 0.0;
    const double n = (ROWS - 1) * WIDTH;
    KilnError err = { 0 };
    KilnScope root;
    Net net;

    (void)unused;
    net_init(&net, PADDING);
    const float *weight = param_data(net.layer.weight);
    assert_string_equal(kiln_param_name(net.layer.weight), "words.weight");
    for (int i = 0; i < ROWS * WIDTH; i++) {
        if (i / WIDTH == PADDING)
            assert_float_equal(weight[i], 0.0, 0.0);
        sum += (double)weight[i];
        squares += (double)weight[i] * (double)weight[i];
    }
    assert_true(fabs(sum / n) < 0.15);
    assert_true(fabs(squares / n - 1.0) < 0.2);
    step(&net, index, 3, false, false);
    expect_row(&net, PADDING, 0.0);
    expect_row(&net, 4, 1.0);
    net_release(&net);

    net_init(&net, -1);
    root = kiln_params_root(net.params);
    assert_true(kiln_nn_embedding_init(&net.layer, &root, "bad", 5, 2, 5, &err) < 0);
    assert_non_null(strstr(err.text, "padding_idx must be from 0 to 4"));
    net_release(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sparse_rows),
        cmocka_unit_test(test_shared_weight),
        cmocka_unit_test(test_weighted_bags),
        cmocka_unit_test(test_padding_and_init),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

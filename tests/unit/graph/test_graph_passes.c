/* Fusing elementwise operations into products: the same values with fewer calls, and what must
 * not be fused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "graph/graph.h"
#include "graph/passes/pass_list.h"
#include "graph/plan/profile.h"
#include "kiln/rng.h"

enum { ROWS = 37, WIDTH = 53, VALUES = ROWS * WIDTH, WEIGHTS = WIDTH * WIDTH };

/* Inputs of a step, and what it gave. */
typedef struct Values {
    float x[VALUES], weight[WEIGHTS], bias[WIDTH];
    float y[VALUES], weight_grad[WEIGHTS], bias_grad[WIDTH];
    size_t calls;
} Values;

typedef KilnTensor *Formula(KilnTensor *x, KilnTensor *weight, KilnTensor *bias);

static void fill(float *values, size_t n, uint64_t seed)
{
    KilnRng rng;

    kiln_rng_init(&rng, seed, KILN_RNG_USER, 0, 0);
    for (size_t i = 0; i < n; i++)
        values[i] = kiln_rng_normal(&rng);
}

static size_t count_calls(const KilnGraph *graph)
{
    KilnProfileRow row;
    size_t n = 0;

    while (kiln_graph_profile(graph, n, &row))
        n++;
    return n;
}

static void compute(Values *v, Formula *formula, unsigned passes_off)
{
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnError err;

    fill(v->x, VALUES, 1);
    fill(v->weight, WEIGHTS, 2);
    fill(v->bias, WIDTH, 3);
    assert_int_equal(kiln_backend_cpu_new(2, &backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    graph->passes_off = passes_off;
    kiln_graph_begin(graph);
    KilnTensor *x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(ROWS, WIDTH), v->x);
    KilnTensor *weight = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(WIDTH, WIDTH), v->weight,
                                             true, v->weight_grad);
    KilnTensor *bias = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(WIDTH), v->bias, true,
                                           v->bias_grad);
    KilnTensor *y = formula(x, weight, bias);
    kiln_graph_backward(graph, kiln_mean(kiln_mul(y, y)));
    if (kiln_graph_run(graph, &y, 1, &err) < 0)
        fail_msg("%s", err.text);
    for (int64_t i = 0; i < VALUES; i++)
        v->y[i] = ((const float *)kiln_tensor_data(y))[i];
    v->calls = count_calls(graph);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

static void assert_near(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-5f * fmaxf(1.0f, fabsf(b[i]))))
            fail_msg("element %zu: %g, without joining %g", i, (double)a[i], (double)b[i]);
}

/* At least `fewer` calls less than without. */
static void check_joined(Formula *formula, size_t fewer)
{
    static Values joined, apart;
    const unsigned others = ~(1u << KILN_PASS_fuse_epilogue | 1u << KILN_PASS_dead_code);

    compute(&joined, formula, others);
    compute(&apart, formula, others | 1u << KILN_PASS_fuse_epilogue);
    assert_near(joined.y, apart.y, VALUES);
    assert_near(joined.weight_grad, apart.weight_grad, WEIGHTS);
    assert_near(joined.bias_grad, apart.bias_grad, WIDTH);
    if (joined.calls + fewer > apart.calls)
        fail_msg("%zu calls, %zu without joining", joined.calls, apart.calls);
}

static KilnTensor *relu_twice(KilnTensor *x, KilnTensor *weight, KilnTensor *bias)
{
    KilnTensor *h = kiln_relu(kiln_linear(x, weight, bias));

    return kiln_linear(h, weight, NULL);
}

/* gelu's gradient needs what is before it, too. */
static KilnTensor *gelu_residual(KilnTensor *x, KilnTensor *weight, KilnTensor *bias)
{
    KilnTensor *h = kiln_gelu(kiln_linear(x, weight, bias), KILN_GELU_ERF);

    return kiln_add(kiln_scale(kiln_matmul(h, weight, false, true), 0.5), x);
}

/* The second operand is made only after the product: the sum joins that one. */
static KilnTensor *two_products(KilnTensor *x, KilnTensor *weight, KilnTensor *bias)
{
    KilnTensor *first = kiln_linear(x, weight, bias);
    KilnTensor *second = kiln_matmul(x, weight, false, false);

    return kiln_mul(kiln_add(first, second), bias);
}

static void test_joined(void **unused)
{
    (void)unused;
    check_joined(relu_twice, 2); /* relu, and its gradient */
    check_joined(gelu_residual, 4);
    check_joined(two_products, 2);
}

/* A sum with the old value of a variable stays before the update of it. */
static void test_update_between(void **unused)
{
    float x[4] = { 1, 2, 3, 4 }, unit[4] = { 1, 0, 0, 1 }, seen[4] = { 5, 6, 7, 8 };
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnError err;
    const KilnShape shape = KILN_SHAPE(2, 2);

    (void)unused;
    assert_int_equal(kiln_backend_cpu_new(1, &backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    KilnTensor *a = kiln_graph_input(graph, KILN_F32, shape, x);
    KilnTensor *b = kiln_graph_input(graph, KILN_F32, shape, unit);
    KilnTensor *variable = kiln_graph_variable(graph, KILN_F32, shape, seen, false, NULL);
    KilnTensor *product = kiln_matmul(a, b, false, false);
    kiln_ema_update(variable, a, 1.0);
    KilnTensor *sum = kiln_add(product, variable); /* of the new value */
    assert_int_equal(kiln_graph_run(graph, &sum, 1, &err), KILN_OK);
    for (int i = 0; i < 4; i++)
        assert_true(((const float *)kiln_tensor_data(sum))[i] == 2 * x[i]);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

/* A variable that was read before an update is read again after it. */
static void test_read_again(void **unused)
{
    float x[4] = { 1, 2, 3, 4 }, unit[4] = { 1, 0, 0, 1 }, seen[4] = { 5, 6, 7, 8 };
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnError err;
    const KilnShape shape = KILN_SHAPE(2, 2);

    (void)unused;
    assert_int_equal(kiln_backend_cpu_new(1, &backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    KilnTensor *product = kiln_matmul(kiln_graph_input(graph, KILN_F32, shape, x),
                                      kiln_graph_input(graph, KILN_F32, shape, unit), false, false);
    KilnTensor *variable = kiln_graph_variable(graph, KILN_F32, shape, seen, false, NULL);
    KilnTensor *sums[2] = { kiln_add(product, variable) };
    kiln_clamp_update(variable, 0.5);
    sums[1] = kiln_add(product, variable);
    assert_int_equal(kiln_graph_run(graph, sums, 2, &err), KILN_OK);
    for (int i = 0; i < 4; i++) {
        assert_true(((const float *)kiln_tensor_data(sums[0]))[i] == x[i] + (float)(5 + i));
        assert_true(((const float *)kiln_tensor_data(sums[1]))[i] == x[i] + 0.5f);
    }
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_update_between),
        cmocka_unit_test(test_read_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

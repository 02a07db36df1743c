/* Layers: names, shapes, PyTorch's initial bounds, errors that name the layer,
 * and the running statistics of batch normalization. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "kiln.h"

typedef struct Bench {
    KilnParams *params;
    KilnScope root;
    KilnBackend *backend;
    KilnGraph *graph;
} Bench;

static void bench_open(Bench *bench)
{
    KilnError err = { 0 };

    assert_int_equal(kiln_params_new(9, &bench->params, &err), KILN_OK);
    bench->root = kiln_params_root(bench->params);
    assert_int_equal(kiln_backend_ref_new(&bench->backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(bench->backend, &bench->graph, &err), KILN_OK);
}

static void bench_close(Bench *bench)
{
    kiln_graph_free(bench->graph);
    kiln_backend_free(bench->backend);
    kiln_params_free(bench->params);
}

/* Every value within ±bound, and the largest close to it. */
static void check_uniform(KilnParam *param, double bound)
{
    const float *v = kiln_param_data(param);
    int64_t n = kiln_shape_count(kiln_param_shape(param));
    double most = 0.0;

    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)v[i]));
    if (most > bound * (1 + 1e-6) || most < bound * (1.0 - 10.0 / (double)n))
        fail_msg("%s: largest %g, bound %g", kiln_param_name(param), most, bound);
}

static void test_initial_bounds(void **unused)
{
    Bench bench;
    KilnLinear linear, plain;
    KilnConv2d conv;
    KilnError err = { 0 };
    KilnConv2dSpec spec = { .in = 8, .out = 32, .kernel = 5, .bias = true };

    (void)unused;
    bench_open(&bench);
    assert_int_equal(kiln_nn_linear_init(&linear, &bench.root, "fc", 100, 64, true, &err), KILN_OK);
    assert_int_equal(kiln_nn_linear_init(&plain, &bench.root, "fc2", 4, 2, false, &err), KILN_OK);
    assert_int_equal(kiln_nn_conv2d_init(&conv, &bench.root, "conv", spec, &err), KILN_OK);
    assert_int_equal(kiln_params_seal(bench.params, &err), KILN_OK);
    assert_null(plain.bias);
    assert_string_equal(kiln_param_name(linear.weight), "fc.weight");
    assert_true(kiln_shape_equal(kiln_param_shape(linear.weight), &KILN_SHAPE(64, 100)));
    assert_true(kiln_shape_equal(kiln_param_shape(conv.weight), &KILN_SHAPE(32, 8, 5, 5)));
    check_uniform(linear.weight, 0.1);
    check_uniform(linear.bias, 0.1);
    check_uniform(conv.weight, 1.0 / sqrt(200.0));
    check_uniform(conv.bias, 1.0 / sqrt(200.0));
    bench_close(&bench);
}

static void test_errors_name_the_layer(void **unused)
{
    Bench bench;
    KilnLinear linear;
    KilnError err = { 0 };
    float data[6] = { 0 };

    (void)unused;
    bench_open(&bench);
    KilnScope head = kiln_scope(&bench.root, "head");
    assert_int_equal(kiln_nn_linear_init(&linear, &head, "fc", 4, 2, true, &err), KILN_OK);
    assert_int_equal(kiln_params_seal(bench.params, &err), KILN_OK);
    kiln_graph_begin(bench.graph);
    KilnTensor *x = kiln_graph_input(bench.graph, KILN_F32, KILN_SHAPE(2, 3), data);
    KilnTensor *y = kiln_nn_linear(&linear, x);
    assert_true(kiln_tensor_poisoned(y));
    assert_true(kiln_tensor_poisoned(kiln_nn_linear(&linear, y)));
    assert_int_equal(kiln_graph_check(bench.graph, &err), KILN_E_SHAPE);
    if (strncmp(err.text, "head.fc: ", 9) != 0 || strstr(err.text, "linear") == NULL)
        fail_msg("%s", err.text);

    /* The layer that was set before is set again afterwards. */
    kiln_graph_begin(bench.graph);
    kiln_graph_layer(bench.graph, "outer");
    x = kiln_graph_input(bench.graph, KILN_F32, KILN_SHAPE(1, 4), data);
    (void)kiln_nn_linear(&linear, x);
    (void)kiln_reshape(x, KILN_SHAPE(5));
    assert_int_equal(kiln_graph_check(bench.graph, &err), KILN_E_SHAPE);
    if (strncmp(err.text, "outer: ", 7) != 0)
        fail_msg("%s", err.text);
    bench_close(&bench);
}

/* x = 1, 2, 3, 4 in the only channel: mean 2.5, unbiased variance 5/3. */
static void test_running_statistics(void **unused)
{
    Bench bench;
    KilnBatchNorm2d bn;
    KilnError err = { 0 };
    float data[4] = { 1, 2, 3, 4 };

    (void)unused;
    bench_open(&bench);
    assert_int_equal(kiln_nn_batch_norm2d_init(&bn, &bench.root, "bn", 1, &err), KILN_OK);
    assert_int_equal(kiln_params_seal(bench.params, &err), KILN_OK);
    const float *mean = kiln_param_data(bn.running_mean), *var = kiln_param_data(bn.running_var);
    const int64_t *count = kiln_param_data(bn.num_batches_tracked);
    for (int training = 1; training >= 0; training--) {
        kiln_graph_begin(bench.graph);
        KilnTensor *x = kiln_graph_input(bench.graph, KILN_F32, KILN_SHAPE(1, 2, 2, 1), data);
        KilnTensor *y = kiln_nn_batch_norm2d(&bn, x, training != 0);
        if (kiln_graph_run(bench.graph, &y, 1, &err) < 0)
            fail_msg("%s", err.text);
        double want = training != 0 ? -1.5 / sqrt(1.25 + 1e-5)
                                    : (1.0 - 0.25) / sqrt(0.9 + 0.1 * 5.0 / 3.0 + 1e-5);
        assert_true(fabs((double)*(const float *)kiln_tensor_data(y) - want) < 1e-5);
        assert_true(fabs((double)mean[0] - 0.25) < 1e-6);
        assert_true(fabs((double)var[0] - (0.9 + 0.1 * 5.0 / 3.0)) < 1e-6);
        assert_int_equal(*count, 1);
    }
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_initial_bounds),
        cmocka_unit_test(test_errors_name_the_layer),
        cmocka_unit_test(test_running_statistics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

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
#include "tests/support/param_memory.h"

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
    kiln_params_free(bench->params);
    kiln_backend_free(bench->backend);
}

/* Every value within ±bound, and the largest close to it. */
static void check_uniform(KilnParam *param, double bound)
{
    const float *v = param_data(param);
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
    assert_int_equal(kiln_params_seal(bench.params, bench.backend, &err), KILN_OK);
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
    assert_int_equal(kiln_params_seal(bench.params, bench.backend, &err), KILN_OK);
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
    assert_int_equal(kiln_params_seal(bench.params, bench.backend, &err), KILN_OK);
    const float *mean = param_data(bn.running_mean), *var = param_data(bn.running_var);
    const int64_t *count = param_data(bn.num_batches_tracked);
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

/* Values are test_models.c's, against torchvision. */
static void check_block(KilnResidualSpec spec, const KilnShape want, const char *last)
{
    float x[2 * 6 * 6 * 8];
    KilnResidualBlock block;
    KilnError err = { 0 };
    Bench bench;

    for (size_t i = 0; i < KILN_COUNT(x); i++)
        x[i] = (float)(i % 7) - 2.0f;
    bench_open(&bench);
    const KilnScope scope = kiln_scope(&bench.root, "layer1");
    assert_int_equal(kiln_nn_residual_block_init(&block, &scope, "0", spec, &err), KILN_OK);
    assert_int_equal(kiln_params_seal(bench.params, bench.backend, &err), KILN_OK);
    assert_non_null(kiln_params_find(bench.params, last));
    assert_true((kiln_params_find(bench.params, "layer1.0.downsample.0.weight") != NULL) ==
                block.downsample);
    kiln_graph_begin(bench.graph);
    KilnTensor *in = kiln_graph_input(bench.graph, KILN_F32, KILN_SHAPE(2, 6, 6, 8), x);
    KilnTensor *y = kiln_nn_residual_block(&block, in, true);
    if (kiln_graph_run(bench.graph, &y, 1, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(kiln_shape_equal(kiln_tensor_shape(y), &want));
    if (spec.zero_init && !block.downsample) { /* nothing is added: relu of the input */
        for (size_t i = 0; i < KILN_COUNT(x); i++)
            assert_true(((const float *)kiln_tensor_data(y))[i] == fmaxf(x[i], 0.0f));
    }
    bench_close(&bench);
}

static void test_residual_blocks(void **unused)
{
    (void)unused;
    check_block((KilnResidualSpec) { .in = 8, .width = 8, .zero_init = true },
                KILN_SHAPE(2, 6, 6, 8), "layer1.0.bn2.num_batches_tracked");
    check_block((KilnResidualSpec) { .in = 8, .width = 8, .stride = 2 }, KILN_SHAPE(2, 3, 3, 8),
                "layer1.0.downsample.1.running_var");
    check_block((KilnResidualSpec) { .in = 8, .width = 2, .bottleneck = true, .zero_init = true },
                KILN_SHAPE(2, 6, 6, 8), "layer1.0.bn3.num_batches_tracked");
    check_block((KilnResidualSpec) { .in = 8, .width = 4, .stride = 2, .bottleneck = true },
                KILN_SHAPE(2, 3, 3, 16), "layer1.0.downsample.1.running_var");
}

static void test_refused_blocks(void **unused)
{
    const KilnResidualSpec bad[] = { { .in = 0, .width = 8 },
                                     { .in = 8, .width = -1 },
                                     { .in = 8, .width = INT64_MAX / 2, .bottleneck = true },
                                     { .in = 8, .width = 8, .stride = -2 } };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(bad); i++) {
        KilnResidualBlock block;
        KilnError err = { 0 };
        Bench bench;

        bench_open(&bench);
        if (kiln_nn_residual_block_init(&block, &bench.root, "block", bad[i], &err) >= 0 ||
            strstr(err.text, "block") == NULL)
            fail_msg("block %zu: \"%s\"", i, err.text);
        bench_close(&bench);
    }
}

/* Another eps and another weight of the new statistics than PyTorch's defaults. */
static void test_other_norms(void **unused)
{
    float data[4] = { 1.0f, 2.0f, 3.0f, 4.0f };
    KilnBatchNorm2d norm;
    KilnError err = { 0 };
    Bench bench;

    (void)unused;
    bench_open(&bench);
    assert_int_equal(kiln_nn_batch_norm2d_init(&norm, &bench.root, "bn", 1, &err), KILN_OK);
    kiln_nn_batch_norm2d_set(&norm, 3.0, 0.01);
    assert_int_equal(kiln_params_seal(bench.params, bench.backend, &err), KILN_OK);
    kiln_graph_begin(bench.graph);
    KilnTensor *x = kiln_graph_input(bench.graph, KILN_F32, KILN_SHAPE(4, 1, 1, 1), data);
    KilnTensor *y[] = { kiln_nn_batch_norm2d(&norm, x, true) };
    if (kiln_graph_run(bench.graph, y, 1, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(fabs((double)((const float *)kiln_tensor_data(y[0]))[3] - 1.5 / sqrt(4.25)) < 1e-6);
    assert_true(fabs((double)*(float *)param_data(norm.running_mean) - 0.025) < 1e-7);
    bench_close(&bench);
}

/* Stochastic depth: of each sample all or nothing, and in the mean what it was. */
static void test_stochastic_depth(void **unused)
{
    enum { SAMPLES = 4000, SIZE = 3 };
    static float data[SAMPLES * SIZE];
    const int32_t key[] = { 3, 5 };
    int kept = 0;
    KilnError err = { 0 };
    Bench bench;

    (void)unused;
    for (int i = 0; i < SAMPLES * SIZE; i++)
        data[i] = 1.0f;
    bench_open(&bench);
    assert_int_equal(kiln_params_seal(bench.params, bench.backend, &err), KILN_OK);
    kiln_graph_begin(bench.graph);
    KilnDropoutState drop = { .key = kiln_graph_input(bench.graph, KILN_I32, KILN_SHAPE(2), key) };
    KilnTensor *x = kiln_graph_input(bench.graph, KILN_F32, KILN_SHAPE(SAMPLES, 1, 1, SIZE), data);
    KilnTensor *y[] = { kiln_nn_stochastic_depth(x, 0.2, &drop) };
    assert_int_equal(drop.stream, 1);
    assert_ptr_equal(kiln_nn_stochastic_depth(x, 0.2, NULL), x);
    assert_ptr_equal(kiln_nn_stochastic_depth(x, 0.0, &drop), x);
    if (kiln_graph_run(bench.graph, y, 1, &err) < 0)
        fail_msg("%s", err.text);
    const float *result = kiln_tensor_data(y[0]);
    for (int i = 0; i < SAMPLES; i++) {
        assert_true(result[i * SIZE] == 0.0f || fabs((double)result[i * SIZE] - 1.25) < 1e-6);
        for (int k = 1; k < SIZE; k++)
            assert_true(result[i * SIZE + k] == result[i * SIZE]);
        kept += result[i * SIZE] != 0.0f;
    }
    assert_true(fabs((double)kept / SAMPLES - 0.8) < 0.03);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_initial_bounds),     cmocka_unit_test(test_errors_name_the_layer),
        cmocka_unit_test(test_running_statistics), cmocka_unit_test(test_residual_blocks),
        cmocka_unit_test(test_refused_blocks),     cmocka_unit_test(test_other_norms),
        cmocka_unit_test(test_stochastic_depth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

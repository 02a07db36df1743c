/* The CPU backend beyond single operations (those are in test_ops.c): shared layouts, selection
 * of algorithms, masks, NaN, threads. */
#include <math.h>
#include <stdlib.h>

#include "tests/support/cmocka.h"
#include "tests/support/cpu_variants.h"
#include "tests/support/ops/samples.h"

/* Leaves: x, conv weight, norm weight, norm bias, running mean, running var. What
 * lies between the convolutions runs in their layout. */
BUILD(build_block)
{
    const KilnBatchNorm norm = { .eps = 1e-5, .momentum = 0.1, .training = arg[0] != 0 };
    const KilnConv conv = { .stride = 1, .padding = 1 };
    KilnTensor *y = kiln_conv2d(leaf[0], leaf[1], NULL, conv);

    y = kiln_batch_norm(y, leaf[2], leaf[3], leaf[4], leaf[5], norm);
    y = kiln_relu(kiln_add(kiln_scale(y, 0.5), leaf[0]));
    y = kiln_conv2d(y, leaf[1], leaf[3], conv);
    if (arg[1] == 1)
        y = kiln_max_pool2d(y, (KilnPool) { .kernel = 3, .stride = 2, .padding = 1 });
    return arg[1] == 2 ? kiln_flatten(kiln_adaptive_avg_pool2d(kiln_relu(y), 1, 1)) : kiln_relu(y);
}

static const Case whole_blocks = {
    "block, whole blocks",
    build_block,
    "ggggff",
    .shape = { SHAPE(2, 8, 8, 32), SHAPE(32, 32, 3, 3), SHAPE(32), SHAPE(32), SHAPE(32),
               SHAPE(32) },
    .arg = { 0, 0 },
};

/* The same block over odd channel counts, in training, with each ending. */
static const int64_t block_channels[] = { 1, 3, 16, 20, 33, 64 };

/* ---- Tests ----------------------------------------------------------------------- */

static void test_blocks(void **unused)
{
    (void)unused;
    check_case(&whole_blocks);
    for (size_t i = 0; i < KILN_COUNT(block_channels); i++)
        for (int64_t ending = 0; ending < 3; ending++) {
            const int64_t n = block_channels[i];
            const Case c = {
                .name = "block",
                .build = build_block,
                .leaves = "gggfvv",
                .shape = { KILN_SHAPE(2, 7, 6, n), KILN_SHAPE(n, n, 3, 3), KILN_SHAPE(n),
                           KILN_SHAPE(n), KILN_SHAPE(n), KILN_SHAPE(n) },
                .arg = { 1, ending },
            };

            check_case(&c);
        }
}

/* Layers of the size for which Winograd's algorithm is taken; the reference would
 * need minutes, so they are compared with the direct algorithm. */
static void test_winograd(void **unused)
{
    static const Case layers[] = {
        { "conv2d, 128 channels", build_conv, "gg",
          .shape = { SHAPE(32, 16, 16, 128), SHAPE(128, 128, 3, 3) }, .arg = { 1, 1, 0 } },
        { "conv2d, 256 channels", build_conv, "ggg",
          .shape = { SHAPE(32, 8, 8, 256), SHAPE(256, 256, 3, 3), SHAPE(256) },
          .arg = { 1, 1, 1 } },
    };
    KilnBackend *direct = cpu_new(2, KILN_CONVOLUTION_DIRECT),
                *automatic = cpu_new(2, KILN_CONVOLUTION_AUTO);

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(layers); i++) {
        Result want, got;

        run_case(direct, &layers[i], &want);
        run_case(automatic, &layers[i], &got);
        compare(&layers[i], "Winograd", &want, &got);
        result_free(&want);
        result_free(&got);
    }
    kiln_backend_free(direct);
    kiln_backend_free(automatic);
}

static void run_variant(CpuVariant variant, int threads, KilnConvolution conv, const Case *c,
                        Result *ret)
{
    variant.threads = threads;
    variant.conv = conv;

    KilnBackend *cpu = cpu_variant_new(&variant);

    run_case(cpu, c, ret);
    kiln_backend_free(cpu);
}

/* Compares a layer with the reference's results, and results of more threads with those of one. */
static void check_winograd(const Case *c, CpuVariant variant, const Result *want, bool taken)
{
    Result one, direct;

    run_variant(variant, 1, KILN_CONVOLUTION_AUTO, c, &one);
    run_variant(variant, 1, KILN_CONVOLUTION_DIRECT, c, &direct);
    compare(c, variant.name, want, &one);
    if (variant.loops != NULL && same_result(&one, &direct) == taken)
        fail_msg("%s, %s: Winograd is%s used", c->name, variant.name, taken ? " not" : "");
    for (int threads = 2; threads <= 3 && taken; threads++) {
        Result more;

        run_variant(variant, threads, KILN_CONVOLUTION_AUTO, c, &more);
        if (!same_result(&one, &more))
            fail_msg("%s, %s: %d threads differ", c->name, variant.name, threads);
        result_free(&more);
    }
    result_free(&one);
    result_free(&direct);
}

/* Sizes that tiles of 4 x 4 pixels, blocks of channels and threads divide unevenly, and layers that
 * the algorithm does not fit, which are computed as directly as without it. */
static void test_winograd_sizes(void **unused)
{
    static const struct {
        Case layer;
        bool taken; /* by loops for 4 and 8 channels at a time */
    } layers[] = {
        { { "odd sizes", build_conv, "ggg",
            .shape = { SHAPE(2, 13, 15, 64), SHAPE(96, 64, 3, 3), SHAPE(96) }, .arg = { 1, 1, 1 } },
          true },
        { { "24 channels, no padding", build_conv, "gg",
            .shape = { SHAPE(2, 18, 14, 24), SHAPE(40, 24, 3, 3) }, .arg = { 1, 0, 0 } },
          true },
        { { "much padding", build_conv, "ggg",
            .shape = { SHAPE(3, 9, 10, 32), SHAPE(80, 32, 3, 3), SHAPE(80) }, .arg = { 1, 2, 1 } },
          true },
        { { "many tiles", build_conv, "gg", .shape = { SHAPE(1, 37, 63, 16), SHAPE(16, 16, 3, 3) },
            .arg = { 1, 1, 0 } },
          true },
        { { "small images", build_conv, "gg",
            .shape = { SHAPE(9, 3, 2, 128), SHAPE(64, 128, 3, 3) }, .arg = { 1, 1, 0 } },
          true },
        { { "few tiles", build_conv, "gg", .shape = { SHAPE(1, 8, 8, 32), SHAPE(32, 32, 3, 3) },
            .arg = { 1, 1, 0 } },
          false },
        { { "few channels", build_conv, "gg", .shape = { SHAPE(2, 16, 16, 8), SHAPE(16, 8, 3, 3) },
            .arg = { 1, 1, 0 } },
          false },
        { { "22 channels", build_conv, "gg", .shape = { SHAPE(2, 16, 16, 22), SHAPE(32, 22, 3, 3) },
            .arg = { 1, 1, 0 } },
          false },
        { { "stride 2", build_conv, "gg", .shape = { SHAPE(2, 16, 16, 32), SHAPE(32, 32, 3, 3) },
            .arg = { 2, 1, 0 } },
          false },
    };
    KilnBackend *ref = ref_new();

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(layers); i++) {
        Result want;

        run_case(ref, &layers[i].layer, &want);
        for (size_t v = 0; v < cpu_variants_count; v++)
            check_winograd(&layers[i].layer, cpu_variants[v], &want, layers[i].taken);
        result_free(&want);
    }
    kiln_backend_free(ref);
}

/* The mask is a function of key, stream and place alone. */
static void test_dropout_mask(void **unused)
{
    static const Case c = { "dropout", build_dropout, "gl", .shape = { SHAPE(500, 211), SHAPE(2) },
                            .arg = { 3 } };
    KilnBackend *one = cpu_new(1, KILN_CONVOLUTION_DIRECT),
                *four = cpu_new(4, KILN_CONVOLUTION_DIRECT);
    Result a, b;
    size_t kept = 0, n = 500 * 211;

    (void)unused;
    run_case(one, &c, &a);
    run_case(four, &c, &b);
    assert_true(same_result(&a, &b));
    for (size_t i = 0; i < n; i++)
        kept += ((const float *)a.output.data)[i] != 0.0f;
    assert_true(fabs((double)kept / (double)n - 0.7) < 0.01);
    result_free(&a);
    result_free(&b);
    kiln_backend_free(one);
    kiln_backend_free(four);
}

/* NaN must be seen, not swallowed; a label that is no class must not pass. */
static void test_not_finite(void **unused)
{
    KilnBackend *backends[] = { ref_new(), cpu_new(2, KILN_CONVOLUTION_DIRECT) };
    KilnError err = { 0 };

    (void)unused;
    for (size_t b = 0; b < KILN_COUNT(backends); b++) {
        KilnGraph *graph = NULL;
        float x[2] = { NAN, -1.0f }, logits[6] = { 1, 2, 3, 4, 5, 6 };
        int32_t labels[2] = { 1, 3 };

        assert_int_equal(kiln_graph_new(backends[b], &graph, &err), KILN_OK);
        kiln_graph_begin(graph);

        KilnTensor *outputs[] = {
            kiln_relu(kiln_graph_input(graph, KILN_F32, KILN_SHAPE(2), x)),
            kiln_cross_entropy(kiln_graph_input(graph, KILN_F32, KILN_SHAPE(2, 3), logits),
                               kiln_graph_input(graph, KILN_I32, KILN_SHAPE(2), labels),
                               (KilnCrossEntropy) { 0 }),
        };

        assert_int_equal(kiln_graph_run(graph, outputs, 2, &err), KILN_OK);
        assert_true(isnan(((const float *)kiln_tensor_data(outputs[0]))[0]));
        assert_true(((const float *)kiln_tensor_data(outputs[0]))[1] == 0.0f);
        assert_true(isnan(kiln_tensor_scalar(outputs[1])));
        kiln_graph_free(graph);
        kiln_backend_free(backends[b]);
    }
}

/* A row of logits that is ignored: no loss, and gradients of 0, but NaN if the row has no softmax
 * (as PyTorch). */
static void test_ignored_rows(void **unused)
{
    KilnBackend *backends[] = { ref_new(), cpu_new(2, KILN_CONVOLUTION_DIRECT) };
    KilnError err = { 0 };

    (void)unused;
    for (size_t b = 0; b < KILN_COUNT(backends); b++) {
        KilnGraph *graph = NULL;
        float logits[12] = { 1, 2, 3, NAN, 1, 2, INFINITY, 1, 2, -INFINITY, 1, 2 }, grads[12];
        int32_t labels[4] = { 1, -1, -1, -1 };

        assert_int_equal(kiln_graph_new(backends[b], &graph, &err), KILN_OK);
        kiln_graph_begin(graph);
        KilnTensor *loss = kiln_cross_entropy(
            kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(4, 3), logits, true, grads),
            kiln_graph_input(graph, KILN_I32, KILN_SHAPE(4), labels),
            (KilnCrossEntropy) { .ignore = true, .ignore_index = -1 });
        kiln_graph_backward(graph, loss);
        assert_int_equal(kiln_graph_run(graph, &loss, 1, &err), KILN_OK);
        assert_float_equal(kiln_tensor_scalar(loss), 1.4076059, 1e-6);
        assert_float_equal(grads[1], -0.7552716, 1e-6);
        for (int i = 3; i < 12; i++)
            assert_true(i < 9 ? isnan(grads[i]) : grads[i] == 0.0f);
        kiln_graph_free(graph);
        kiln_backend_free(backends[b]);
    }
}

static void test_threads_refused(void **unused)
{
    KilnBackend *backend = NULL;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_backend_cpu_new(0, &backend, &err), KILN_E_RANGE);
    assert_null(backend);
    kiln_backend_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),          cmocka_unit_test(test_winograd),
        cmocka_unit_test(test_winograd_sizes),  cmocka_unit_test(test_dropout_mask),
        cmocka_unit_test(test_not_finite),      cmocka_unit_test(test_ignored_rows),
        cmocka_unit_test(test_threads_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

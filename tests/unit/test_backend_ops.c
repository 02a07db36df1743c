/* Every operation on the CPU backend against the plain C reference: values and
 * gradients, over shapes that are awkward for vectors, blocks and threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "tests/unit/backend_support.h"

#define SHAPE(...)                                                                                 \
    {                                                                                              \
        .rank = (int)(sizeof((int64_t[]) { __VA_ARGS__ }) / sizeof(int64_t)), .dim = {             \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/* ---- Building the cases --------------------------------------------------------- */

#define BUILD(name) static KilnTensor *name(KilnTensor *const *leaf, const int64_t *arg)
#define UNUSED_ARG (void)arg

BUILD(build_add)
{
    UNUSED_ARG;
    return kiln_add(leaf[0], leaf[1]);
}

BUILD(build_mul)
{
    UNUSED_ARG;
    return kiln_mul(leaf[0], leaf[1]);
}

BUILD(build_scale)
{
    UNUSED_ARG;
    return kiln_scale(leaf[0], -1.7);
}

BUILD(build_relu)
{
    UNUSED_ARG;
    return kiln_relu(leaf[0]);
}

BUILD(build_reshape)
{
    return kiln_reshape(leaf[0], KILN_SHAPE(arg[0], arg[1]));
}

BUILD(build_permute)
{
    const int order[] = { (int)arg[0], (int)arg[1], (int)arg[2], (int)arg[3] };

    return kiln_permute(leaf[0], order);
}

BUILD(build_dropout)
{
    return kiln_dropout(leaf[0], (double)arg[0] / 10.0, leaf[1], 7);
}

BUILD(build_sum)
{
    UNUSED_ARG;
    return kiln_sum(leaf[0]);
}

BUILD(build_mean)
{
    UNUSED_ARG;
    return kiln_mean(leaf[0]);
}

BUILD(build_sum_rows)
{
    UNUSED_ARG;
    return kiln_sum_rows(leaf[0]);
}

BUILD(build_accuracy)
{
    UNUSED_ARG;
    return kiln_equal(kiln_argmax(leaf[0]), leaf[1]);
}

BUILD(build_matmul)
{
    return kiln_matmul(leaf[0], leaf[1], arg[0] != 0, arg[1] != 0);
}

BUILD(build_linear)
{
    return kiln_linear(leaf[0], leaf[1], arg[0] != 0 ? leaf[2] : NULL);
}

BUILD(build_conv)
{
    const KilnConv conv = { .stride = arg[0], .padding = arg[1] };

    return kiln_conv2d(leaf[0], leaf[1], arg[2] != 0 ? leaf[2] : NULL, conv);
}

BUILD(build_max_pool)
{
    const KilnPool pool = { .kernel = arg[0], .stride = arg[1], .padding = arg[2] };

    return kiln_max_pool2d(leaf[0], pool);
}

BUILD(build_global_pool)
{
    UNUSED_ARG;
    return kiln_global_avg_pool2d(leaf[0]);
}

BUILD(build_norm)
{
    const KilnBatchNorm norm = { .eps = 1e-5, .momentum = 0.1, .training = arg[0] != 0 };

    return kiln_batch_norm(leaf[0], leaf[1], leaf[2], leaf[3], leaf[4], norm);
}

BUILD(build_softmax)
{
    UNUSED_ARG;
    return kiln_softmax(leaf[0]);
}

BUILD(build_cross_entropy)
{
    return kiln_cross_entropy(leaf[0], leaf[1], (double)arg[0] / 10.0);
}

BUILD(build_updates)
{
    UNUSED_ARG;
    kiln_ema_update(leaf[0], leaf[1], 0.1);
    kiln_increment(leaf[2]);
    return NULL;
}

BUILD(build_sgd)
{
    const KilnSgd sgd = { .momentum = (double)arg[0] / 10.0,
                          .weight_decay = 0.01,
                          .nesterov = arg[1] != 0 };

    kiln_sgd_update(leaf[0], leaf[1], arg[0] != 0 ? leaf[3] : NULL, leaf[2], sgd);
    return NULL;
}

BUILD(build_adam)
{
    const KilnAdam adam = {
        .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01, .decoupled = arg[0] != 0
    };

    kiln_adam_update(leaf[0], leaf[1], leaf[2], leaf[3], leaf[4], adam);
    return NULL;
}

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
    return arg[1] == 2 ? kiln_global_avg_pool2d(kiln_relu(y)) : kiln_relu(y);
}

static const Case cases[] = {
    { "add", build_add, "gg", { SHAPE(7, 11), SHAPE(7, 11) }, { 0 } },
    { "add, large", build_add, "gg", { SHAPE(101, 1009), SHAPE(101, 1009) }, { 0 } },
    { "mul", build_mul, "gg", { SHAPE(13), SHAPE(13) }, { 0 } },
    { "mul, large", build_mul, "gg", { SHAPE(3, 17, 19, 67), SHAPE(3, 17, 19, 67) }, { 0 } },
    { "scale", build_scale, "g", { SHAPE(1) }, { 0 } },
    { "scale, large", build_scale, "g", { SHAPE(65537) }, { 0 } },
    { "relu", build_relu, "g", { SHAPE(31, 3) }, { 0 } },
    { "relu, large", build_relu, "g", { SHAPE(5, 29, 31, 17) }, { 0 } },
    { "reshape", build_reshape, "g", { SHAPE(2, 3, 5) }, { 5, 6 } },
    { "permute, transpose", build_permute, "g", { SHAPE(5, 7) }, { 1, 0 } },
    { "permute, to NCHW", build_permute, "g", { SHAPE(3, 5, 7, 11) }, { 0, 3, 1, 2 } },
    { "permute, large", build_permute, "g", { SHAPE(31, 37, 41, 2) }, { 3, 1, 0, 2 } },
    { "dropout", build_dropout, "gl", { SHAPE(3, 37), SHAPE(2) }, { 5 } },
    { "dropout, none", build_dropout, "gl", { SHAPE(64), SHAPE(2) }, { 0 } },
    { "dropout, large", build_dropout, "gl", { SHAPE(257, 263), SHAPE(2) }, { 1 } },
    { "sum", build_sum, "g", { SHAPE(1) }, { 0 } },
    { "sum, large", build_sum, "g", { SHAPE(311, 313) }, { 0 } },
    { "mean", build_mean, "g", { SHAPE(3, 5, 7) }, { 0 } },
    { "mean, large", build_mean, "g", { SHAPE(311, 313) }, { 0 } },
    { "sum_rows, one row", build_sum_rows, "g", { SHAPE(1, 33) }, { 0 } },
    { "sum_rows, one column", build_sum_rows, "g", { SHAPE(131, 1) }, { 0 } },
    { "sum_rows", build_sum_rows, "g", { SHAPE(3, 5, 7, 19) }, { 0 } },
    { "sum_rows, large", build_sum_rows, "g", { SHAPE(1031, 67) }, { 0 } },
    { "argmax, equal", build_accuracy, "fl", { SHAPE(67, 3), SHAPE(67) }, { 0 } },
    { "argmax, large", build_accuracy, "fl", { SHAPE(2053, 31), SHAPE(2053) }, { 0 } },
    { "matmul", build_matmul, "gg", { SHAPE(7, 11), SHAPE(11, 13) }, { 0, 0 } },
    { "matmul, a transposed", build_matmul, "gg", { SHAPE(11, 7), SHAPE(11, 13) }, { 1, 0 } },
    { "matmul, b transposed", build_matmul, "gg", { SHAPE(7, 11), SHAPE(13, 11) }, { 0, 1 } },
    { "matmul, both", build_matmul, "gg", { SHAPE(11, 7), SHAPE(13, 11) }, { 1, 1 } },
    { "matmul, one row", build_matmul, "gg", { SHAPE(1, 257), SHAPE(257, 1) }, { 0, 0 } },
    { "matmul, large", build_matmul, "gg", { SHAPE(97, 211), SHAPE(211, 83) }, { 0, 0 } },
    { "linear", build_linear, "ggg", { SHAPE(5, 7), SHAPE(3, 7), SHAPE(3) }, { 1 } },
    { "linear, no bias", build_linear, "gg", { SHAPE(1, 13), SHAPE(17, 13) }, { 0 } },
    { "linear, large", build_linear, "ggg", { SHAPE(128, 211), SHAPE(97, 211), SHAPE(97) }, { 1 } },
    { "conv2d, 1x1", build_conv, "gg", { SHAPE(2, 5, 7, 3), SHAPE(4, 3, 1, 1) }, { 1, 0, 0 } },
    { "conv2d, one channel",
      build_conv,
      "ggg",
      { SHAPE(1, 9, 11, 1), SHAPE(1, 1, 3, 3), SHAPE(1) },
      { 1, 1, 1 } },
    { "conv2d, 5x5",
      build_conv,
      "ggg",
      { SHAPE(3, 13, 11, 6), SHAPE(20, 6, 5, 5), SHAPE(20) },
      { 1, 2, 1 } },
    { "conv2d, stride 2",
      build_conv,
      "gg",
      { SHAPE(2, 12, 15, 19), SHAPE(33, 19, 3, 3) },
      { 2, 1, 0 } },
    { "conv2d, shortcut",
      build_conv,
      "gg",
      { SHAPE(2, 8, 8, 32), SHAPE(64, 32, 1, 1) },
      { 2, 0, 0 } },
    { "conv2d, stem", build_conv, "gg", { SHAPE(2, 23, 23, 3), SHAPE(16, 3, 7, 7) }, { 2, 3, 0 } },
    { "conv2d, kernel as large as the image",
      build_conv,
      "gg",
      { SHAPE(3, 4, 4, 16), SHAPE(10, 16, 4, 4) },
      { 1, 0, 0 } },
    { "conv2d, whole blocks",
      build_conv,
      "ggg",
      { SHAPE(2, 12, 12, 32), SHAPE(48, 32, 3, 3), SHAPE(48) },
      { 1, 1, 1 } },
    { "max_pool2d, 2x2", build_max_pool, "g", { SHAPE(2, 8, 10, 5) }, { 2, 2, 0 } },
    { "max_pool2d, 3x3", build_max_pool, "g", { SHAPE(2, 11, 9, 17) }, { 3, 2, 1 } },
    { "max_pool2d, overlapping", build_max_pool, "g", { SHAPE(1, 7, 7, 1) }, { 3, 1, 1 } },
    { "max_pool2d, with gaps", build_max_pool, "g", { SHAPE(3, 13, 13, 16) }, { 2, 3, 0 } },
    { "max_pool2d, large window", build_max_pool, "g", { SHAPE(1, 19, 19, 3) }, { 17, 2, 0 } },
    { "global_avg_pool2d", build_global_pool, "g", { SHAPE(3, 5, 7, 11) }, { 0 } },
    { "global_avg_pool2d, one place", build_global_pool, "g", { SHAPE(5, 1, 1, 32) }, { 0 } },
    { "global_avg_pool2d, blocks", build_global_pool, "g", { SHAPE(67, 4, 4, 64) }, { 0 } },
    { "batch_norm",
      build_norm,
      "ggfvv",
      { SHAPE(3, 5, 7, 11), SHAPE(11), SHAPE(11), SHAPE(11), SHAPE(11) },
      { 1 } },
    { "batch_norm of rows",
      build_norm,
      "gggvv",
      { SHAPE(37, 16), SHAPE(16), SHAPE(16), SHAPE(16), SHAPE(16) },
      { 1 } },
    { "batch_norm, one channel",
      build_norm,
      "gggvv",
      { SHAPE(2, 3, 1), SHAPE(1), SHAPE(1), SHAPE(1), SHAPE(1) },
      { 1 } },
    { "batch_norm, large",
      build_norm,
      "gggvv",
      { SHAPE(16, 16, 16, 64), SHAPE(64), SHAPE(64), SHAPE(64), SHAPE(64) },
      { 1 } },
    { "batch_norm, evaluating",
      build_norm,
      "gggpp",
      { SHAPE(3, 5, 7, 19), SHAPE(19), SHAPE(19), SHAPE(19), SHAPE(19) },
      { 0 } },
    { "softmax", build_softmax, "g", { SHAPE(5, 3, 7) }, { 0 } },
    { "softmax, one class", build_softmax, "g", { SHAPE(4, 1) }, { 0 } },
    { "softmax, large", build_softmax, "g", { SHAPE(67, 1009) }, { 0 } },
    { "cross_entropy", build_cross_entropy, "gl", { SHAPE(5, 3), SHAPE(5) }, { 0 } },
    { "cross_entropy, one row", build_cross_entropy, "gl", { SHAPE(1, 11), SHAPE(1) }, { 0 } },
    { "cross_entropy, smoothed", build_cross_entropy, "gl", { SHAPE(257, 10), SHAPE(257) }, { 1 } },
    { "ema_update, increment",
      build_updates,
      "vfc",
      { SHAPE(37), SHAPE(37), { .rank = 0 } },
      { 0 } },
    { "sgd_update", build_sgd, "vfp", { SHAPE(101), SHAPE(101), SHAPE(2) }, { 0, 0 } },
    { "sgd_update, momentum",
      build_sgd,
      "vfpv",
      { SHAPE(40009), SHAPE(40009), SHAPE(2), SHAPE(40009) },
      { 9, 0 } },
    { "sgd_update, nesterov",
      build_sgd,
      "vfpv",
      { SHAPE(101), SHAPE(101), SHAPE(2), SHAPE(101) },
      { 9, 1 } },
    { "adam_update",
      build_adam,
      "vfvvp",
      { SHAPE(40009), SHAPE(40009), SHAPE(40009), SHAPE(40009), SHAPE(3) },
      { 0 } },
    { "adam_update, decoupled",
      build_adam,
      "vfvvp",
      { SHAPE(101), SHAPE(101), SHAPE(101), SHAPE(101), SHAPE(3) },
      { 1 } },
    { "block, whole blocks",
      build_block,
      "gggggg",
      { SHAPE(2, 8, 8, 32), SHAPE(32, 32, 3, 3), SHAPE(32), SHAPE(32), SHAPE(32), SHAPE(32) },
      { 0, 0 } },
};

/* The same block over odd channel counts, in training, with each ending. */
static const int64_t block_channels[] = { 1, 3, 16, 20, 33, 64 };

/* ---- Tests ----------------------------------------------------------------------- */

static const struct Way {
    const char *name;
    int threads;
    KilnConvolution conv;
    const KilnLoops *loops; /* NULL: what the backend chose */
    KilnMdFormat blocked;
} ways[] = {
    { "base loops, 1 thread", 1, KILN_CONVOLUTION_DIRECT, &kiln_loops_base, KILN_MD_PLAIN },
    { "AVX2 loops, 2 threads", 2, KILN_CONVOLUTION_DIRECT, &kiln_loops_avx2, KILN_MD_C8 },
    { "best loops, 3 threads, Winograd allowed", 3, KILN_CONVOLUTION_AUTO, NULL, KILN_MD_ANY },
};

static KilnBackend *way_new(const struct Way *way)
{
    KilnBackend *backend = cpu_new(way->threads, way->conv);
    KilnCpuBackend *cpu = (KilnCpuBackend *)backend;

    if (way->loops != NULL && (way->loops != &kiln_loops_avx2 ||
                               (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")))) {
        cpu->loops = way->loops;
        cpu->blocked = way->blocked;
    }
    return backend;
}

static void check_case(const Case *c)
{
    KilnBackend *ref = ref_new();
    Result want;

    run_case(ref, c, &want);
    for (size_t w = 0; w < KILN_COUNT(ways); w++) {
        KilnBackend *cpu = way_new(&ways[w]);
        Result got, again;

        run_case(cpu, c, &got);
        run_case(cpu, c, &again);
        compare(c, ways[w].name, &want, &got);
        if (!same_result(&got, &again))
            fail_msg("%s, %s: two runs differ", c->name, ways[w].name);
        result_free(&got);
        result_free(&again);
        kiln_backend_free(cpu);
    }
    result_free(&want);
    kiln_backend_free(ref);
}

static void test_cases(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++)
        check_case(&cases[i]);
}

static void test_blocks(void **unused)
{
    (void)unused;
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
        { "conv2d, 128 channels",
          build_conv,
          "gg",
          { SHAPE(32, 16, 16, 128), SHAPE(128, 128, 3, 3) },
          { 1, 1, 0 } },
        { "conv2d, 256 channels",
          build_conv,
          "ggg",
          { SHAPE(32, 8, 8, 256), SHAPE(256, 256, 3, 3), SHAPE(256) },
          { 1, 1, 1 } },
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

/* Both backends have every operation, and some case above runs it. */
static void test_coverage(void **unused)
{
    KilnBackend *ref = ref_new(), *cpu = cpu_new(1, KILN_CONVOLUTION_DIRECT);

    (void)unused;
    for (size_t k = 0; k < kiln_ops_count; k++) {
        assert_non_null(ref->ops->kernel(ref, kiln_ops[k]));
        assert_non_null(cpu->ops->kernel(cpu, kiln_ops[k]));
    }

    bool *seen = calloc(kiln_ops_count, sizeof(*seen));

    assert_non_null(seen);
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        Result result;

        run_case(cpu, &cases[i], &result);
        for (size_t k = 0; k < kiln_ops_count; k++)
            for (size_t o = 0; o < result.n_ops; o++)
                seen[k] = seen[k] || result.ops[o] == kiln_ops[k];
        result_free(&result);
    }
    for (size_t k = 0; k < kiln_ops_count; k++)
        if (!seen[k])
            fail_msg("no case runs %s", kiln_ops[k]->name);
    free(seen);
    kiln_backend_free(cpu);
    kiln_backend_free(ref);
}

/* The mask is a function of key, stream and place alone. */
static void test_dropout_mask(void **unused)
{
    static const Case c = { "dropout", build_dropout, "gl", { SHAPE(500, 211), SHAPE(2) }, { 3 } };
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
                               kiln_graph_input(graph, KILN_I32, KILN_SHAPE(2), labels), 0.0),
        };

        assert_int_equal(kiln_graph_run(graph, outputs, 2, &err), KILN_OK);
        assert_true(isnan(((const float *)kiln_tensor_data(outputs[0]))[0]));
        assert_true(((const float *)kiln_tensor_data(outputs[0]))[1] == 0.0f);
        assert_true(isnan(kiln_tensor_scalar(outputs[1])));
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
        cmocka_unit_test(test_cases),           cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_winograd),        cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_dropout_mask),    cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_threads_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

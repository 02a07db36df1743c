/* Every operation's samples in mixed precision against f32, and with variables stored as bf16. */
#include <stdlib.h>
#include <string.h>

#include "tensor/bf16.h"
#include "tests/support/cmocka.h"
#include "tests/support/cpu_variants.h"
#include "tests/support/ops/samples.h"

/* The reference takes its time for them. */
static bool is_large(const Case *c)
{
    for (int i = 0; c->leaves[i] != '\0'; i++)
        if (kiln_shape_count(&c->shape[i]) > 4000)
            return true;
    return false;
}

/* Under a sanitizer, which takes longer, only small ones. */
static bool left_out(const Case *c)
{
#ifdef __SANITIZE_ADDRESS__
    return is_large(c);
#else
    (void)c;
    return false;
#endif
}

/* The logarithm of the base magnifies the rounding of an exponent, and the samples' large weights
 * that of an LSTM's and a GRU's states, from step to step; test_recurrent has smaller weights. */
static double tolerance_of(const KilnOp *op)
{
    const bool rounds_often = op == &kiln_op_lstm || op == &kiln_op_lstm_grad ||
                              op == &kiln_op_gru || op == &kiln_op_gru_grad;

    return op == &kiln_op_power ? 5e-2 : rounds_often ? 1.2e-1 : 2e-2;
}

/* How a case is run. */
typedef void Run(KilnBackend *backend, KilnPrecision precision, const Case *c, Result *result);

static void check_run(const Result *want, Run *run, KilnBackend *backend, KilnPrecision precision,
                      const char *how, const Case *c)
{
    Result got;

    run(backend, precision, c, &got);
    compare(c, how, want, &got);
    result_free(&got);
}

/* The same twice, with the same bytes. */
static void check_run_repeats(const Result *want, KilnBackend *backend, const char *how,
                              const Case *c)
{
    Result a, b;

    run_case_bf16(backend, KILN_BF16_MIXED, c, &a);
    run_case_bf16(backend, KILN_BF16_MIXED, c, &b);
    compare(c, how, want, &a);
    if (!same_result(&a, &b))
        fail_msg("%s, %s: two runs differ", c->name, how);
    result_free(&a);
    result_free(&b);
}

static void test_bf16(void **unused)
{
    KilnBackend *ref = ref_new(), *one = cpu_new(1, KILN_CONVOLUTION_AUTO);
    KilnBackend *three = cpu_new(3, KILN_CONVOLUTION_AUTO);
    KilnBackend *without = cpu_new(2, KILN_CONVOLUTION_DIRECT);

    (void)unused;
    without->bf16 = false;
    for (size_t i = 0; i < op_samples_count; i++)
        for (size_t k = 0; k < samples_to_run(i); k++) {
            Case c = op_samples[i].samples->cases[k];
            Result want;

            if (left_out(&c))
                continue;
            c.tolerance = tolerance_of(op_samples[i].op);
            run_case_bf16(ref, KILN_PRECISION_32, &c, &want);
            if (!is_large(&c)) /* those are for blocks and threads, which it has not */
                check_run(&want, run_case_bf16, ref, KILN_BF16_MIXED, "reference, bf16", &c);
            check_run(&want, run_case_bf16, one, KILN_BF16_MIXED, "cpu, bf16, 1 thread", &c);
            check_run_repeats(&want, three, "cpu, bf16, 3 threads", &c);
            check_run(&want, run_case_bf16, without, KILN_BF16_MIXED, "cpu without bf16", &c);
            result_free(&want);
        }
    kiln_backend_free(without);
    kiln_backend_free(three);
    kiln_backend_free(one);
    kiln_backend_free(ref);
}

/* Layers of the sizes that Winograd's algorithm divides differently between threads and bands; the
 * reference would need minutes, so they are compared with the direct algorithm. */
static void test_winograd(void **unused)
{
    static const Case layers[] = {
        { "conv2d, many pixels", build_conv, "gg",
          .shape = { SHAPE(3, 37, 33, 64), SHAPE(64, 64, 3, 3) }, .arg = { 1, 1, 0 },
          .tolerance = 2e-2 },
        { "conv2d, 128 channels", build_conv, "ggg",
          .shape = { SHAPE(4, 28, 28, 96), SHAPE(128, 96, 3, 3), SHAPE(128) }, .arg = { 1, 1, 1 },
          .tolerance = 2e-2 },
        { "conv2d, many channels and pixels", build_conv, "gg",
          .shape = { SHAPE(3, 32, 32, 256), SHAPE(288, 256, 3, 3) }, .arg = { 1, 2, 0 },
          .tolerance = 2e-2 },
    };
    KilnBackend *direct = cpu_new(2, KILN_CONVOLUTION_DIRECT);

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(layers) && !left_out(&layers[i]); i++) {
        Result want;

        run_case_bf16(direct, KILN_BF16_MIXED, &layers[i], &want);
        for (int threads = 1; threads <= 3; threads++) {
            KilnBackend *automatic = cpu_new(threads, KILN_CONVOLUTION_AUTO);

            check_run_repeats(&want, automatic, "Winograd", &layers[i]);
            kiln_backend_free(automatic);
        }
        result_free(&want);
    }
    kiln_backend_free(direct);
}

/* ---- Recurrent layers ------------------------------------------------------------------ */

/* Weights as a trained layer has them, and all outputs. */
BUILD(build_recurrent)
{
    KilnTensor *weight = kiln_scale(leaf[1], 0.1);
    const KilnRecurrent states = { .reverse = arg[1] != 0, .h0 = leaf[2], .c0 = leaf[3] };
    const KilnRecurrentOut out = arg[0] != 0 ? kiln_gru(leaf[0], weight, leaf[3], states)
                                             : kiln_lstm(leaf[0], weight, states);
    KilnTensor *last = out.c != NULL ? kiln_mul(out.h, out.c) : out.h;

    return kiln_add(out.y, last);
}

/* Few and many sequences for each thread. PyTorch's autocast rounds gates and cells, too; here they
 * are f32, so what is left is the rounding of factors. */
static void test_recurrent(void **unused)
{
    static const Case cases[] = {
        { "lstm, many", build_recurrent, "gggg",
          .shape = { SHAPE(9, 45, 280), SHAPE(280, 70), SHAPE(45, 70), SHAPE(45, 70) } },
        { "lstm, few", build_recurrent, "gggg",
          .shape = { SHAPE(9, 2, 1040), SHAPE(1040, 260), SHAPE(2, 260), SHAPE(2, 260) },
          .arg = { 0, 1 } },
        { "gru, many", build_recurrent, "gggg",
          .shape = { SHAPE(9, 45, 210), SHAPE(210, 70), SHAPE(45, 70), SHAPE(210) },
          .arg = { 1, 1 } },
        { "gru, few", build_recurrent, "gggg",
          .shape = { SHAPE(9, 3, 780), SHAPE(780, 260), SHAPE(3, 260), SHAPE(780) }, .arg = { 1 } },
    };
    KilnBackend *one = cpu_new(1, KILN_CONVOLUTION_AUTO),
                *three = cpu_new(3, KILN_CONVOLUTION_AUTO);

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        Case c = cases[i];
        Result want;

        run_case(one, &c, &want);
        c.tolerance = 2e-2;
        check_run(&want, run_case_bf16, one, KILN_BF16_MIXED, "1 thread", &c);
        check_run_repeats(&want, three, "3 threads", &c);
        result_free(&want);
    }
    kiln_backend_free(three);
    kiln_backend_free(one);
}

/* ---- Sums over a batch --------------------------------------------------------------- */

/* The gradient of a factor that all products of a batch share, with ones everywhere: each
 * element is their number times the rows, which bf16 has but a running sum in bf16 does not
 * reach. The factor itself is bf16, as a product gives it; `then` scales the gradient. */
static void check_shared_factor(KilnBackend *backend, bool left, double then)
{
    enum { BATCH = 512, M = 4, K = 8 };
    static float many[BATCH * K * M], few[M * K], one = 1.0f;
    float grad[M * K];
    KilnGraph *graph = NULL;
    KilnError err;

    for (int i = 0; i < BATCH * K * M; i++)
        many[i] = 1.0f;
    for (int i = 0; i < M * K; i++)
        few[i] = 1.0f;
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_set_precision(graph, KILN_BF16_MIXED);
    kiln_graph_begin(graph);

    /* Products that could be one product of all rows are summed by that. */
    KilnTensor *x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(BATCH, K, M), many);
    KilnTensor *w = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(K, M), few, true, grad);
    KilnTensor *shared = kiln_scale(through_product(w, &one), then);
    KilnTensor *y = left ? kiln_matmul(shared, x, true, false)
                         : kiln_matmul(x, shared, true, false);

    kiln_graph_backward(graph, kiln_sum(y));
    if (kiln_graph_run(graph, NULL, 0, &err) != KILN_OK)
        fail_msg("%s", err.text);
    for (int i = 0; i < M * K; i++)
        if ((double)grad[i] != then * BATCH * M)
            fail_msg("%s, the shared factor is the %s one: the gradient is %g, not %g",
                     backend->machine, left ? "left" : "right", (double)grad[i], then * BATCH * M);
    kiln_graph_free(graph);
}

static void test_sums_over_a_batch(void **unused)
{
    KilnBackend *backend = cpu_new(2, KILN_CONVOLUTION_AUTO);

    (void)unused;
    for (int left = 0; left < 2; left++) {
        check_shared_factor(backend, left != 0, 1.0);
        check_shared_factor(backend, left != 0, 0.5);
    }
    kiln_backend_free(backend);
}

/* ---- Variables of bf16 ------------------------------------------------------------- */

static void bytes_to_bf16(Bytes *bytes, const KilnShape *shape)
{
    Bytes narrow = bytes_new(KILN_BF16, shape);

    kiln_bf16_from_f32(narrow.data, bytes->data, kiln_shape_count(shape));
    free(bytes->block);
    *bytes = narrow;
}

static void bytes_from_bf16(Bytes *bytes, const KilnShape *shape)
{
    Bytes wide = bytes_new(KILN_F32, shape);

    kiln_bf16_to_f32(wide.data, bytes->data, kiln_shape_count(shape));
    free(bytes->block);
    *bytes = wide;
}

/* Floats that are variables, or can be: a gradient that an optimizer takes, say. */
static bool is_kept(char kind)
{
    return (rounds_to_bf16(kind) && kind != LEAF_POSITIVE) || kind == LEAF_VARIABLE;
}

/* A case on variables of bf16 with gradients of bf16, which are widened afterwards. */
static void run_kept(KilnBackend *backend, KilnPrecision precision, const Case *c, Result *result)
{
    KilnTensor *leaf[MAX_LEAVES] = { NULL };
    KilnGraph *graph = NULL;
    Bytes weights = { 0 };
    KilnError err;

    memset(result, 0, sizeof(*result));
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_set_precision(graph, precision);
    for (int i = 0; c->leaves[i] != '\0'; i++) {
        const bool grad = leaf_wants_grad(c->leaves[i]);

        result->leaf[i] = case_leaf(c, i, KILN_F32);
        if (is_kept(c->leaves[i])) {
            bytes_to_bf16(&result->leaf[i], &c->shape[i]);
            if (grad)
                result->grad[i] = bytes_new(KILN_BF16, &c->shape[i]);
            leaf[i] = kiln_graph_variable(graph, KILN_BF16, c->shape[i], result->leaf[i].data, grad,
                                          result->grad[i].data);
        } else {
            leaf[i] = leaf_tensor(graph, c, i, &result->leaf[i], NULL);
        }
    }
    KilnTensor *y = c->build(leaf, c->arg);
    if (y != NULL && case_wants_grad(c))
        kiln_graph_backward(graph, loss_of(graph, y, &weights));
    run_recorded(graph, c, y, result);
    for (int i = 0; c->leaves[i] != '\0'; i++) {
        if (result->leaf[i].dtype == KILN_BF16)
            bytes_from_bf16(&result->leaf[i], &c->shape[i]);
        if (result->grad[i].data != NULL)
            bytes_from_bf16(&result->grad[i], &c->shape[i]);
    }
    kiln_graph_free(graph);
    free(weights.block);
}

/* The reference computes in f32 what lies in bf16, and rounds it once: the others may
 * round a number to the one beside it, 2^-7 away where it is just above a power of 2. */
static void test_variables(void **unused)
{
    KilnBackend *ref = ref_new(), *three = cpu_new(3, KILN_CONVOLUTION_DIRECT);

    (void)unused;
    for (size_t i = 0; i < op_samples_count; i++)
        for (size_t k = 0; k < samples_to_run(i); k++) {
            Case c = op_samples[i].samples->cases[k];
            Result want;

            if (is_large(&c))
                continue;
            run_kept(ref, KILN_PRECISION_32, &c, &want);
            c.tolerance = 0x1p-7;
            check_run(&want, run_kept, three, KILN_PRECISION_32, "cpu, f32 on variables of bf16",
                      &c);
            c.tolerance = tolerance_of(op_samples[i].op);
            check_run(&want, run_kept, ref, KILN_BF16_TRUE, "reference, bf16-true", &c);
            check_run(&want, run_kept, three, KILN_BF16_TRUE, "cpu, bf16-true", &c);
            result_free(&want);
        }
    kiln_backend_free(three);
    kiln_backend_free(ref);
}

/* A case whose inputs are variables of f32, and whose output is read as it is. */
static void run_variables(KilnBackend *backend, KilnPrecision precision, const Case *c,
                          Result *result)
{
    KilnGraph *graph = NULL;
    Bytes weights = { 0 };
    KilnError err;
    size_t built;

    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_set_precision(graph, precision);
    run_recorded(graph, c, record_case(graph, c, result, &weights, &built), result);
    kiln_graph_free(graph);
    free(weights.block);
}

/* Products of two variables: only the result is bf16, because more of them follow. */
BUILD(build_chain)
{
    UNUSED_ARG;
    return kiln_matmul(kiln_matmul(leaf[0], leaf[1], false, false), leaf[2], false, false);
}

static void test_products_of_variables(void **unused)
{
    static const Case chains[] = {
        { "two products", build_chain, "ggg",
          .shape = { SHAPE(70, 40), SHAPE(40, 50), SHAPE(50, 30) }, .tolerance = 2e-2 },
        { "two batches of products", build_chain, "ggg",
          .shape = { SHAPE(9, 40, 40), SHAPE(9, 40, 50), SHAPE(9, 50, 30) }, .tolerance = 2e-2 },
        { "two batches with one right side", build_chain, "ggg",
          .shape = { SHAPE(9, 40, 40), SHAPE(1, 40, 50), SHAPE(50, 30) }, .tolerance = 2e-2 },
    };
    KilnBackend *ref = ref_new(), *cpu = cpu_new(2, KILN_CONVOLUTION_AUTO);

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(chains); i++) {
        Result want;

        run_case(ref, &chains[i], &want);
        check_run(&want, run_variables, ref, KILN_BF16_MIXED, "reference, bf16", &chains[i]);
        check_run(&want, run_variables, cpu, KILN_BF16_MIXED, "cpu, bf16", &chains[i]);
        result_free(&want);
    }
    kiln_backend_free(cpu);
    kiln_backend_free(ref);
}

/* Weights of f32, which kernels round while they pack them. */
static void test_convolutions_of_variables(void **unused)
{
    static const KilnConvolution ways[] = { KILN_CONVOLUTION_AUTO, KILN_CONVOLUTION_DIRECT };
    KilnBackend *ref = ref_new();

    (void)unused;
    for (size_t way = 0; way < KILN_COUNT(ways); way++) {
        KilnBackend *one = cpu_new(1, ways[way]), *three = cpu_new(3, ways[way]);

        for (size_t k = 0; k < samples_conv2d.count; k++) {
            Case c = samples_conv2d.cases[k];
            Result want;

            if (left_out(&c))
                continue;
            c.tolerance = 2e-2;
            run_case(ref, &c, &want);
            check_run(&want, run_variables, one, KILN_BF16_MIXED, "cpu, bf16, 1 thread", &c);
            check_run(&want, run_variables, three, KILN_BF16_MIXED, "cpu, bf16, 3 threads", &c);
            result_free(&want);
        }
        kiln_backend_free(three);
        kiln_backend_free(one);
    }
    kiln_backend_free(ref);
}

/* A buffer of oneDNN's is too small for strides beyond the kernel, and threads overwrite each
 * other's input in some of the runs. */
static void test_strides_beyond_kernel(void **unused)
{
    enum { PAIRS = 400 };
    static const Case c = { "conv2d, rows between kernels",
                            build_conv_apart,
                            "gg",
                            .shape = { SHAPE(2, 7, 5, 35), SHAPE(3, 35, 1, 3) },
                            .arg = { 3, 2, 0, 2, 1, 1, 1 },
                            .tolerance = 2e-2 };
    KilnBackend *ref = ref_new(), *two = cpu_new(2, KILN_CONVOLUTION_DIRECT);
    Result want;

    (void)unused;
    run_case_bf16(ref, KILN_PRECISION_32, &c, &want);
    for (int i = 0; i < PAIRS; i++)
        check_run_repeats(&want, two, "2 threads", &c);
    result_free(&want);
    kiln_backend_free(two);
    kiln_backend_free(ref);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_bf16),
                                        cmocka_unit_test(test_winograd),
                                        cmocka_unit_test(test_recurrent),
                                        cmocka_unit_test(test_products_of_variables),
                                        cmocka_unit_test(test_convolutions_of_variables),
                                        cmocka_unit_test(test_sums_over_a_batch),
                                        cmocka_unit_test(test_variables),
                                        cmocka_unit_test(test_strides_beyond_kernel) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

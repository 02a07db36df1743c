/* Long sums of equal terms in mixed precision: bf16 counts to 256 in steps of 1, so a sum that is
 * kept in bf16 on the way stays far below its value. And long groups of floats. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/cpu_variants.h"

enum { LONG = 3000 };

/* All leaves are ones; each has a gradient. `y` and the gradients are compared with the
 * reference in f32. */
typedef struct Sum {
    const char *name;
    KilnTensor *(*build)(KilnTensor *const *x);
    KilnShape shape[3];
} Sum;

#define LONG_SUM(name, ...)                                                                        \
    static KilnTensor *name(KilnTensor *const *x)                                                  \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }

/* Sums with numbers that reach one place, or one row, from everywhere. */
static KilnTensor *zeros(KilnTensor *x, KilnShape shape)
{
    return kiln_cast(kiln_detach(kiln_graph_full(x->graph, shape, 0.0)), KILN_I32);
}

LONG_SUM(linear, kiln_linear(x[0], x[1], x[2]))
LONG_SUM(linear_shallow, kiln_linear(x[0], x[1], NULL))
LONG_SUM(matmul, kiln_matmul(x[0], x[1], false, false))
LONG_SUM(conv, kiln_conv2d(x[0], x[1], NULL, (KilnConv) { .padding = 1 }))
LONG_SUM(conv_point, kiln_conv2d(x[0], x[1], NULL, (KilnConv) { .stride = 1 }))
LONG_SUM(conv_stride, kiln_conv2d(x[0], x[1], NULL, (KilnConv) { .stride = 2 }))
LONG_SUM(conv_depthwise, kiln_conv2d(x[0], x[1], NULL, (KilnConv) { .padding = 3, .groups = 16 }))
LONG_SUM(conv_transpose, kiln_conv_transpose2d(x[0], x[1], NULL, (KilnConvTranspose) { 0 }))
LONG_SUM(attention, kiln_attention(x[0], x[1], x[2], (KilnAttention) { .scale = 0.01 }))
LONG_SUM(broadcast_row, kiln_add(x[0], x[1]))
LONG_SUM(broadcast_column, kiln_mul(x[0], x[1]))
LONG_SUM(sum, kiln_sum_axes(x[0], (const int[]) { 0 }, 1, false))
LONG_SUM(mean, kiln_mean_axes(x[0], (const int[]) { 1 }, 1, false))
LONG_SUM(cumsum, kiln_cumsum(x[0], 0))
LONG_SUM(layer_norm, kiln_layer_norm(x[0], x[1], x[2], 1, 1e-5))
LONG_SUM(rms_norm, kiln_rms_norm(x[0], x[1], 1, 1e-5))
LONG_SUM(group_norm, kiln_group_norm(x[0], x[1], x[2], 2, 1e-5))
LONG_SUM(softmax, kiln_softmax(x[0], -1))
LONG_SUM(avg_pool, kiln_avg_pool2d(x[0], (KilnPool) { .kernel = 48, .stride = 1 }))
LONG_SUM(max_pool, kiln_max_pool2d(x[0], (KilnPool) { .kernel = 24, .stride = 1 }))
LONG_SUM(upsample, kiln_upsample_nearest(x[0], (KilnSize) { 60, 60 }))
LONG_SUM(bilinear, kiln_upsample_bilinear(x[0], (KilnSize) { 60, 60 }, true))
LONG_SUM(resize, kiln_upsample_bicubic(x[0], (KilnSize) { 60, 60 }, false))
LONG_SUM(unfold, kiln_unfold(x[0], (KilnUnfold) { .kernel = { 20, 20 } }))
LONG_SUM(replicate,
         kiln_pad_replicate(x[0], (const int64_t[]) { LONG, 0 }, (const int64_t[]) { 0, 0 }))
LONG_SUM(embedding, kiln_embedding(x[0], zeros(x[0], KILN_SHAPE(LONG)), -1))
LONG_SUM(bag, kiln_embedding_bag(x[0], zeros(x[0], KILN_SHAPE(2, LONG)), NULL, KILN_BAG_SUM, -1))
LONG_SUM(gather, kiln_gather(x[0], 0, zeros(x[0], KILN_SHAPE(LONG, 3))))
LONG_SUM(scatter, kiln_scatter_add(x[0], 0, zeros(x[0], KILN_SHAPE(LONG, 3)), x[1]))
LONG_SUM(segment, kiln_segment_sum(x[0], zeros(x[0], KILN_SHAPE(LONG)), 2))
LONG_SUM(grid_sample, kiln_grid_sample(x[0], kiln_scale(kiln_detach(x[1]), 0.0),
                                       (KilnGridSample) { .align_corners = true }))
LONG_SUM(lstm, kiln_lstm(x[0], x[1], (KilnRecurrent) { 0 }).y)
LONG_SUM(gru, kiln_gru(x[0], x[1], NULL, (KilnRecurrent) { 0 }).y)

/* A parameter with many readers: each gives a term of its gradient. */
static KilnTensor *shared_weight(KilnTensor *const *x)
{
    KilnTensor *total = kiln_sum(kiln_linear(x[0], x[1], NULL));

    for (int i = 1; i < 600; i++) /* no two alike */
        total = kiln_add(total, kiln_sum(kiln_linear(kiln_shift(x[0], i * 0x1p-30), x[1], NULL)));
    return total;
}

static const Sum sums[] = {
    { "linear", linear, { SHAPE(LONG, 32), SHAPE(16, 32), SHAPE(16) } },
    { "linear, deep", linear, { SHAPE(3, LONG), SHAPE(40, LONG), SHAPE(40) } },
    { "linear, wide", linear_shallow, { SHAPE(3, 32), SHAPE(LONG, 32) } },
    { "matmul", matmul, { SHAPE(2, 5, LONG), SHAPE(2, LONG, 7) } },
    { "matmul, shared", matmul, { SHAPE(400, 7, 8), SHAPE(8, 3) } },
    { "conv2d, deep", conv, { SHAPE(1, 4, 4, 1024), SHAPE(32, 1024, 3, 3) } },
    { "conv2d, wide", conv, { SHAPE(1, 4, 4, 32), SHAPE(1024, 32, 3, 3) } },
    { "conv2d, many pixels", conv, { SHAPE(3, 33, 31, 16), SHAPE(16, 16, 3, 3) } },
    { "conv2d, few channels", conv, { SHAPE(3, 33, 31, 3), SHAPE(5, 3, 3, 3) } },
    { "conv2d 1x1, deep", conv_point, { SHAPE(2, 3, 3, 2048), SHAPE(48, 2048, 1, 1) } },
    { "conv2d 1x1, wide", conv_point, { SHAPE(2, 3, 3, 48), SHAPE(2048, 48, 1, 1) } },
    { "conv2d, stride 2", conv_stride, { SHAPE(2, 6, 6, 512), SHAPE(512, 512, 3, 3) } },
    { "conv2d, depthwise", conv_depthwise, { SHAPE(2, 40, 40, 16), SHAPE(16, 1, 7, 7) } },
    { "conv_transpose2d", conv_transpose, { SHAPE(1, 3, 3, 1024), SHAPE(1024, 16, 2, 2) } },
    { "attention",
      attention,
      { SHAPE(1, 700, 4, 32), SHAPE(1, 700, 1, 32), SHAPE(1, 700, 1, 32) } },
    { "broadcast, row", broadcast_row, { SHAPE(LONG, 5), SHAPE(5) } },
    { "broadcast, column", broadcast_column, { SHAPE(5, LONG), SHAPE(5, 1) } },
    { "sum", sum, { SHAPE(LONG, 5) } },
    { "mean", mean, { SHAPE(5, LONG) } },
    { "cumsum", cumsum, { SHAPE(LONG, 3) } },
    { "layer_norm", layer_norm, { SHAPE(LONG, 8), SHAPE(8), SHAPE(8) } },
    { "rms_norm", rms_norm, { SHAPE(LONG, 8), SHAPE(8) } },
    { "group_norm", group_norm, { SHAPE(2, 40, 40, 4), SHAPE(4), SHAPE(4) } },
    { "softmax", softmax, { SHAPE(3, LONG) } },
    { "avg_pool2d", avg_pool, { SHAPE(1, 48, 48, 3) } },
    { "max_pool2d", max_pool, { SHAPE(1, 48, 48, 16) } },
    { "upsample, nearest", upsample, { SHAPE(1, 1, 1, 16) } },
    { "upsample, bilinear", bilinear, { SHAPE(1, 2, 2, 16) } },
    { "upsample, bicubic", resize, { SHAPE(1, 2, 2, 16) } },
    { "unfold", unfold, { SHAPE(1, 50, 50, 2) } },
    { "pad_replicate", replicate, { SHAPE(2, 3) } },
    { "embedding", embedding, { SHAPE(3, 20) } },
    { "embedding_bag", bag, { SHAPE(3, 20) } },
    { "gather", gather, { SHAPE(3, 3) } },
    { "scatter_add", scatter, { SHAPE(3, 3), SHAPE(LONG, 3) } },
    { "segment_sum", segment, { SHAPE(LONG, 5) } },
    { "grid_sample", grid_sample, { SHAPE(1, 3, 3, 16), SHAPE(1, 50, 50, 2) } },
    { "lstm", lstm, { SHAPE(30, 40, 32), SHAPE(32, 8) } },
    { "gru", gru, { SHAPE(30, 40, 24), SHAPE(24, 8) } },
    { "shared weight", shared_weight, { SHAPE(2, 32), SHAPE(16, 32) } },
};

/* y and the gradients. */
typedef struct Values {
    float *y, *grad[3];
    int64_t n_y, n[3];
} Values;

static float *ones(int64_t n, float value)
{
    float *x = malloc((size_t)n * sizeof(*x));

    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = value;
    return x;
}

static void values_release(Values *values)
{
    free(values->y);
    for (int i = 0; i < 3; i++)
        free(values->grad[i]);
}

/* Leaves go through a product, so that they are bf16 as activations are; not those of
 * shared_weight, whose gradients are those of parameters. */
static void compute(KilnBackend *backend, KilnPrecision precision, const Sum *sum, Values *ret)
{
    static const float one = 1.0f;
    const bool direct = sum->build == shared_weight;
    KilnTensor *x[3] = { NULL };
    KilnGraph *graph = NULL;
    float *data[3] = { NULL };
    KilnError err;

    memset(ret, 0, sizeof(*ret));
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_set_precision(graph, precision);
    kiln_graph_begin(graph);
    for (int i = 0; i < 3 && sum->shape[i].rank > 0; i++) {
        ret->n[i] = kiln_shape_count(&sum->shape[i]);
        data[i] = ones(ret->n[i], 1.0f);
        ret->grad[i] = ones(ret->n[i], 0.0f);
        x[i] = kiln_graph_variable(graph, KILN_F32, sum->shape[i], data[i], true, ret->grad[i]);
        x[i] = direct ? x[i] : through_product(x[i], &one);
    }
    KilnTensor *y = sum->build(x);
    kiln_graph_backward(graph, kiln_sum(y));
    if (kiln_graph_run(graph, &y, 1, &err) < 0)
        fail_msg("%s: %s", sum->name, err.text);
    ret->n_y = kiln_shape_count(kiln_tensor_shape(y));
    ret->y = ones(ret->n_y, 0.0f);
    memcpy(ret->y, kiln_tensor_data(y), (size_t)ret->n_y * sizeof(float));
    kiln_graph_free(graph);
    for (int i = 0; i < 3; i++)
        free(data[i]);
}

/* Up to a few roundings of bf16, of the largest value. */
static void compare_values(const char *name, const char *what, const float *want, const float *got,
                           int64_t n)
{
    double largest = 1e-3;

    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)want[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)want[i] - (double)got[i]) <= 0x1p-6 * largest))
            fail_msg("%s, %s: element %lld is %g, in f32 %g", name, what, (long long)i,
                     (double)got[i], (double)want[i]);
}

static void check_sum(KilnBackend *ref, KilnBackend *cpu, const Sum *sum)
{
    static const char *const names[] = { "gradient 0", "gradient 1", "gradient 2" };
    Values want, got;

    compute(ref, KILN_PRECISION_32, sum, &want);
    compute(cpu, KILN_BF16_MIXED, sum, &got);
    compare_values(sum->name, "result", want.y, got.y, want.n_y);
    for (int i = 0; i < 3; i++)
        compare_values(sum->name, names[i], want.grad[i], got.grad[i], want.n[i]);
    values_release(&want);
    values_release(&got);
}

static void test_long_sums(void **unused)
{
    KilnBackend *ref = cpu_new(1, KILN_CONVOLUTION_DIRECT),
                *cpu = cpu_new(2, KILN_CONVOLUTION_AUTO);

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(sums); i++)
        check_sum(ref, cpu, &sums[i]);
    kiln_backend_free(cpu);
    kiln_backend_free(ref);
}

static void check_mean(float got, float want)
{
    if (!(fabs((double)got - (double)want) <= 1e-6 * (double)want))
        fail_msg("%.9g instead of %.9g", (double)got, (double)want);
}

/* In floats, 100000 rows after each other lose the fifth digit. */
static void test_long_segments(void **unused)
{
    enum { N = 200000, GROUPS = 2 };
    static float x[N];
    static int32_t ids[N];
    KilnBackend *cpu = cpu_new(2, KILN_CONVOLUTION_AUTO);
    KilnGraph *graph = NULL;
    KilnError err;

    (void)unused;
    assert_int_equal(kiln_graph_new(cpu, &graph, &err), KILN_OK);
    for (int i = 0; i < N; i++) {
        x[i] = 0.3f;
        ids[i] = i % GROUPS;
    }
    kiln_graph_begin(graph);
    KilnTensor *leaf = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(N, 1), x);
    KilnTensor *groups = kiln_graph_input(graph, KILN_I32, KILN_SHAPE(N), ids);
    KilnTensor *y[] = { kiln_segment_sum(leaf, groups, GROUPS),
                        kiln_segment_mean(leaf, groups, GROUPS) };

    assert_int_equal(kiln_graph_run(graph, y, 2, &err), KILN_OK);
    for (int i = 0; i < GROUPS; i++) {
        check_mean(((const float *)kiln_tensor_data(y[0]))[i] / (N / GROUPS), 0.3f);
        check_mean(((const float *)kiln_tensor_data(y[1]))[i], 0.3f);
    }
    kiln_graph_free(graph);
    kiln_backend_free(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_sums),
        cmocka_unit_test(test_long_segments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

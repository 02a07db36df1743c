/* Convolutions, pooling and normalization of both backends against values recorded from PyTorch
 * (tests/record/images_ops.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/backend.h"
#include "tests/data/ops/images.h"

enum { MOST_LEAVES = 4 };
static const double tolerance = 1e-5;

/* ---- Records ---------------------------------------------------------------------- */

/* NULL when there is none. */
static const struct Record *find(const char *group, const char *name)
{
    char full[64];

    snprintf(full, sizeof(full), "%s.%s", group, name);
    for (size_t i = 0; i < KILN_COUNT(records); i++)
        if (strcmp(records[i].name, full) == 0)
            return &records[i];
    return NULL;
}

static const struct Record *find_leaf(const char *group, char kind, int i)
{
    const char name[] = { kind, (char)('0' + i), '\0' };

    return find(group, name);
}

static KilnShape shape_of(const struct Record *record)
{
    KilnShape shape = { .rank = record->rank };

    for (int i = 0; i < record->rank; i++)
        shape.dim[i] = record->dim[i];
    return shape;
}

/* Largest difference over the largest recorded value. */
static void check(const char *backend, const struct Record *want, const float *got)
{
    const KilnShape shape = shape_of(want);
    double worst = 0.0, scale = 1e-30;

    for (int64_t i = 0; i < kiln_shape_count(&shape); i++) {
        double d = fabs((double)want->values[i] - (double)got[i]);

        worst = d > worst || isnan(d) ? d : worst;
        scale = fmax(scale, fabs((double)want->values[i]));
    }
    if (!(worst / scale <= tolerance))
        fail_msg("%s on %s: differs by %g", want->name, backend, worst / scale);
}

/* ---- What was recorded --------------------------------------------------------------- */

typedef KilnTensor *(*Build)(KilnTensor *const *leaf);
#define BUILD(name, result)                                                                        \
    static KilnTensor *name(KilnTensor *const *leaf)                                               \
    {                                                                                              \
        return result;                                                                             \
    }
#define CONV(...) kiln_conv2d(leaf[0], leaf[1], leaf[2], (KilnConv) { __VA_ARGS__ })
#define POOL(name, ...) name(leaf[0], (KilnPool) { __VA_ARGS__ })

BUILD(conv_depthwise, CONV(.padding = 1, .groups = 5))
BUILD(conv_groups, CONV(.stride = 2, .padding = 1, .groups = 3))
BUILD(conv_dilated, CONV(.padding = 2, .dilation = 2))
BUILD(conv_apart, CONV(.stride_hw = { 2, 3 }, .padding_hw = { 0, 2 }, .dilation_hw = { 3, 1 }))
BUILD(conv_row, CONV(.padding = 1))
BUILD(conv1d, kiln_conv1d(leaf[0], leaf[1], leaf[2],
                          (KilnConv) { .stride = 2, .padding = 3, .dilation = 2, .groups = 2 }))
BUILD(conv_transpose,
      kiln_conv_transpose2d(leaf[0], leaf[1], leaf[2],
                            (KilnConvTranspose) { .conv = { .stride = 2, .padding = 1 },
                                                  .output_padding = 1 }))
BUILD(conv_transpose_groups,
      kiln_conv_transpose2d(leaf[0], leaf[1], leaf[2],
                            (KilnConvTranspose) {
                                .conv = { .stride = 3, .padding = 1, .dilation = 2, .groups = 2 },
                                .output_padding = 2 }))
BUILD(max_pool_apart,
      POOL(kiln_max_pool2d, .kernel_hw = { 3, 2 }, .stride_hw = { 2, 1 }, .padding_hw = { 1, 0 }))
BUILD(max_pool1d, POOL(kiln_max_pool1d, .kernel = 3, .stride = 2, .padding = 1))
BUILD(max_pool_ceil,
      POOL(kiln_max_pool2d, .kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true))
BUILD(max_pool_ceil_drops, POOL(kiln_max_pool2d, .kernel_hw = { 2, 3 }, .stride_hw = { 3, 2 },
                                .padding_hw = { 1, 0 }, .ceil_mode = true))
BUILD(max_pool_ceil_small, POOL(kiln_max_pool2d, .kernel = 3, .stride = 2, .ceil_mode = true))
BUILD(max_pool1d_ceil, POOL(kiln_max_pool1d, .kernel = 3, .stride = 2, .ceil_mode = true))
BUILD(avg_pool_ceil,
      POOL(kiln_avg_pool2d, .kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true))
BUILD(avg_pool_ceil_exclude,
      POOL(kiln_avg_pool2d, .kernel_hw = { 3, 5 }, .stride_hw = { 2, 3 }, .padding_hw = { 1, 2 },
           .exclude_padding = true, .ceil_mode = true))
BUILD(avg_pool1d_ceil,
      POOL(kiln_avg_pool1d, .kernel = 4, .stride = 3, .padding = 1, .ceil_mode = true))
BUILD(avg_pool, POOL(kiln_avg_pool2d, .kernel = 3, .stride = 2, .padding = 1))
BUILD(avg_pool_exclude, POOL(kiln_avg_pool2d, .kernel_hw = { 3, 5 }, .stride_hw = { 2, 3 },
                             .padding_hw = { 1, 2 }, .exclude_padding = true))
BUILD(avg_pool1d, POOL(kiln_avg_pool1d, .kernel = 3, .stride = 2, .padding = 1))
BUILD(adaptive_pool, kiln_adaptive_avg_pool2d(leaf[0], 3, 2))
BUILD(adaptive_pool_one, kiln_adaptive_avg_pool2d(leaf[0], 1, 1))
BUILD(adaptive_pool1d, kiln_adaptive_avg_pool1d(leaf[0], 3))
BUILD(layer_norm, kiln_layer_norm(leaf[0], leaf[1], leaf[2], 1, 1e-5))
BUILD(layer_norm_axes, kiln_layer_norm(leaf[0], leaf[1], leaf[2], 2, 1e-5))
BUILD(rms_norm, kiln_rms_norm(leaf[0], leaf[1], 1, 0x1p-23))
BUILD(group_norm, kiln_group_norm(leaf[0], leaf[1], leaf[2], 3, 1e-5))
BUILD(group_norm1d, kiln_group_norm(leaf[0], leaf[1], leaf[2], 1, 1e-5))

BUILD(conv_transpose1d,
      kiln_conv_transpose1d(leaf[0], leaf[1], leaf[2],
                            (KilnConvTranspose) {
                                .conv = { .stride = 3, .padding = 1, .groups = 2, .dilation = 2 },
                                .output_padding = 2 }))
#define SIZE(...) ((KilnSize) { __VA_ARGS__ })
BUILD(upsample_bicubic, kiln_upsample_bicubic(leaf[0], SIZE(7, 9), false))
BUILD(upsample_bicubic_smaller, kiln_upsample_bicubic(leaf[0], SIZE(4, 3), false))
BUILD(upsample_bicubic_corners, kiln_upsample_bicubic(leaf[0], SIZE(3, 9), true))
BUILD(antialias, kiln_resize_antialias(leaf[0], SIZE(4, 3), false))
BUILD(antialias_larger, kiln_resize_antialias(leaf[0], SIZE(11, 5), false))
BUILD(antialias_bicubic, kiln_resize_antialias(leaf[0], SIZE(3, 9), true))
BUILD(pixel_shuffle, kiln_pixel_shuffle(leaf[0], 2))
BUILD(pixel_unshuffle, kiln_pixel_unshuffle(leaf[0], 3))
BUILD(adaptive_max_pool, kiln_adaptive_max_pool2d(leaf[0], 3, 2))
static const KilnUnfold unfolding = {
    .kernel = { 3, 2 }, .stride = { 2, 1 }, .padding = { 1, 0 }, .dilation = { 1, 2 }
};
BUILD(unfold, kiln_unfold(leaf[0], unfolding))
BUILD(fold, kiln_fold(leaf[0], SIZE(7, 5), unfolding))

/* Running statistics are needed but not looked at. */
static KilnTensor *norm_relu(KilnTensor *const *leaf)
{
    static float mean[5], var[5];
    KilnGraph *graph = kiln_tensor_graph(leaf[0]);
    KilnTensor *running[] = {
        kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(5), mean, false, NULL),
        kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(5), var, false, NULL),
    };
    const KilnBatchNorm norm = { .eps = 1e-5, .momentum = 0.1, .training = true };

    return kiln_relu(kiln_add(
        kiln_batch_norm(leaf[0], leaf[1], leaf[2], running[0], running[1], norm), leaf[3]));
}

#define ROW(name)                                                                                  \
    {                                                                                              \
#name, name                                                                                \
    }
static const struct {
    const char *group;
    Build build;
} rows[] = {
    ROW(conv_depthwise),
    ROW(conv_groups),
    ROW(conv_dilated),
    ROW(conv_apart),
    ROW(conv_row),
    ROW(conv1d),
    ROW(conv_transpose),
    ROW(conv_transpose_groups),
    ROW(max_pool_apart),
    ROW(max_pool1d),
    ROW(avg_pool),
    ROW(avg_pool_exclude),
    ROW(avg_pool1d),
    ROW(adaptive_pool),
    ROW(adaptive_pool_one),
    ROW(adaptive_pool1d),
    ROW(layer_norm),
    ROW(layer_norm_axes),
    ROW(rms_norm),
    ROW(group_norm),
    ROW(group_norm1d),
    ROW(norm_relu),
    ROW(max_pool_ceil),
    ROW(max_pool_ceil_drops),
    ROW(max_pool_ceil_small),
    ROW(max_pool1d_ceil),
    ROW(avg_pool_ceil),
    ROW(avg_pool_ceil_exclude),
    ROW(avg_pool1d_ceil),
    ROW(conv_transpose1d),
    ROW(upsample_bicubic),
    ROW(upsample_bicubic_smaller),
    ROW(upsample_bicubic_corners),
    ROW(antialias),
    ROW(antialias_larger),
    ROW(antialias_bicubic),
    ROW(pixel_shuffle),
    ROW(pixel_unshuffle),
    ROW(adaptive_max_pool),
    ROW(unfold),
    ROW(fold),
};

/* ---- The test ------------------------------------------------------------------------- */

static void check_row(KilnBackend *backend, const char *group, Build build)
{
    const char *name = backend->ops->name;
    KilnTensor *leaf[MOST_LEAVES] = { NULL };
    float *grad[MOST_LEAVES] = { NULL };
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    for (int i = 0; i < MOST_LEAVES && find_leaf(group, 'l', i) != NULL; i++) {
        const struct Record *record = find_leaf(group, 'l', i);
        const KilnShape shape = shape_of(record);

        grad[i] = calloc((size_t)kiln_shape_count(&shape), sizeof(float));
        assert_non_null(grad[i]);
        leaf[i] = kiln_graph_variable(graph, KILN_F32, shape, (void *)(uintptr_t)record->values,
                                      true, grad[i]);
    }
    KilnTensor *y = build(leaf);
    const struct Record *want = find(group, "y"), *dy = find(group, "dy");
    KilnTensor *weights = kiln_graph_input(graph, KILN_F32, shape_of(dy), dy->values);

    kiln_graph_backward(graph, kiln_sum(kiln_mul(y, weights)));
    if (kiln_graph_run(graph, &y, 1, &err) != KILN_OK)
        fail_msg("%s: %s", group, err.text);
    const KilnShape shape = shape_of(want);
    assert_true(kiln_shape_equal(kiln_tensor_shape(y), &shape));
    check(name, want, kiln_tensor_data(y));
    for (int i = 0; i < MOST_LEAVES && leaf[i] != NULL; i++)
        check(name, find_leaf(group, 'd', i), grad[i]);
    kiln_graph_free(graph);
    for (int i = 0; i < MOST_LEAVES; i++)
        free(grad[i]);
}

static void test_recorded(void **unused)
{
    KilnBackend *backends[2] = { NULL };
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_backend_ref_new(&backends[0], &err), KILN_OK);
    assert_int_equal(kiln_backend_cpu_new(2, &backends[1], &err), KILN_OK);
    for (size_t b = 0; b < KILN_COUNT(backends); b++) {
        for (size_t i = 0; i < KILN_COUNT(rows); i++)
            check_row(backends[b], rows[i].group, rows[i].build);
        kiln_backend_free(backends[b]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_recorded) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Recording: result shapes, messages for shapes that do not fit, poison. Runs nothing, so it
 * needs no kernels. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/mock_backend.h"

static Mock mock = { .base = { .ops = &mock_ops, .float_type = KILN_F32, .threads = 1 } };
static KilnGraph *graph;

static int setup(void **unused)
{
    KilnError err;

    (void)unused;
    return kiln_graph_new(&mock.base, &graph, &err);
}

static int teardown(void **unused)
{
    (void)unused;
    kiln_graph_free(graph);
    return 0;
}

#define F32(...) kiln_graph_input(graph, KILN_F32, KILN_SHAPE(__VA_ARGS__), NULL)
#define I32(...) kiln_graph_input(graph, KILN_I32, KILN_SHAPE(__VA_ARGS__), NULL)
#define VAR(...) kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(__VA_ARGS__), NULL, true, NULL)

/* ---- Shapes ---------------------------------------------------------------------- */

static void expect_shape(KilnTensor *tensor, KilnShape shape)
{
    char got[KILN_SHAPE_TEXT], want[KILN_SHAPE_TEXT];
    KilnError err;

    if (kiln_graph_check(graph, &err) < 0)
        fail_msg("%s", err.text);
    if (!kiln_shape_equal(kiln_tensor_shape(tensor), &shape))
        fail_msg("got %s, want %s", kiln_shape_text(kiln_tensor_shape(tensor), got, sizeof(got)),
                 kiln_shape_text(&shape, want, sizeof(want)));
}

static void test_shapes(void **unused)
{
    static const int order[] = { 2, 0, 1 };
    const KilnConv stride2 = { .stride = 2, .padding = 3 }, plain = { 0 };

    (void)unused;
    kiln_graph_begin(graph);
    expect_shape(kiln_reshape(F32(2, 3, 4), KILN_SHAPE(-1, 6)), KILN_SHAPE(4, 6));
    expect_shape(kiln_reshape(F32(1), KILN_SCALAR), KILN_SCALAR);
    expect_shape(kiln_permute(F32(2, 3, 4), order), KILN_SHAPE(4, 2, 3));
    expect_shape(kiln_flatten(F32(2, 3, 4, 5)), KILN_SHAPE(2, 60));
    expect_shape(kiln_flatten(F32(7)), KILN_SHAPE(7, 1));
    expect_shape(kiln_sum_rows(F32(2, 3, 4)), KILN_SHAPE(4));
    expect_shape(kiln_argmax(F32(2, 3, 4)), KILN_SHAPE(2, 3));
    expect_shape(kiln_argmax(F32(4)), KILN_SCALAR);
    expect_shape(kiln_matmul(F32(3, 2), F32(4, 3), true, true), KILN_SHAPE(2, 4));
    expect_shape(kiln_linear(F32(5, 3), F32(2, 3), NULL), KILN_SHAPE(5, 2));
    expect_shape(kiln_conv2d(F32(8, 224, 224, 3), F32(64, 3, 7, 7), NULL, stride2),
                 KILN_SHAPE(8, 112, 112, 64));
    expect_shape(kiln_conv2d(F32(8, 5, 7, 3), F32(4, 3, 5, 1), F32(4), plain),
                 KILN_SHAPE(8, 1, 7, 4));
    expect_shape(kiln_max_pool2d(F32(8, 112, 112, 64),
                                 (KilnPool) { .kernel = 3, .stride = 2, .padding = 1 }),
                 KILN_SHAPE(8, 56, 56, 64));
    expect_shape(kiln_max_pool2d(F32(1, 5, 4, 1), (KilnPool) { .kernel = 2 }),
                 KILN_SHAPE(1, 2, 2, 1));
    expect_shape(kiln_adaptive_avg_pool2d(F32(8, 7, 7, 512), 1, 1), KILN_SHAPE(8, 1, 1, 512));
    expect_shape(kiln_cross_entropy(F32(6, 3), I32(6), (KilnCrossEntropy) { 0 }), KILN_SCALAR);
    assert_int_equal(kiln_tensor_dim(F32(2, 3), -1), 3);
    assert_int_equal(kiln_tensor_dim(F32(2, 3), 2), 0);
}

/* One channel or one pixel: the orders agree, and nothing is permuted. */
static void test_flatten_permutes_only_if_needed(void **unused)
{
    (void)unused;
    kiln_graph_begin(graph);
    kiln_flatten(F32(2, 3, 4, 1));
    kiln_flatten(F32(2, 1, 1, 5));
    kiln_flatten(F32(2, 9));
    assert_int_equal(graph->n_nodes, 3);
    kiln_flatten(F32(2, 3, 1, 2));
    assert_int_equal(graph->n_nodes, 5);
}

/* The places within a window are bytes where they fit. */
static void test_pool_index_type(void **unused)
{
    (void)unused;
    kiln_graph_begin(graph);
    KilnTensor *small = kiln_max_pool2d(F32(1, 32, 32, 1), (KilnPool) { .kernel = 15 });
    KilnTensor *large = kiln_max_pool2d(F32(1, 32, 32, 1), (KilnPool) { .kernel = 16 });
    assert_int_equal(small->node->outputs[1]->dtype, KILN_U8);
    assert_int_equal(large->node->outputs[1]->dtype, KILN_I32);
}

/* ---- Messages -------------------------------------------------------------------- */

typedef KilnTensor *Maker(void);

#define MAKER(name, expression)                                                                    \
    static KilnTensor *name(void)                                                                  \
    {                                                                                              \
        return expression;                                                                         \
    }

static const int twice[] = { 0, 0 };
static const KilnBatchNorm training = { .eps = 1e-5, .momentum = 0.1, .training = true };
static const KilnBatchNorm no_eps = { .eps = 0, .momentum = 0.1, .training = true };

MAKER(m_add, kiln_add(F32(2, 3), F32(3, 2)))
MAKER(m_add_type, kiln_add(F32(2), I32(2)))
MAKER(m_reshape, kiln_reshape(F32(2, 3), KILN_SHAPE(4, -1)))
MAKER(m_reshape_two, kiln_reshape(F32(2, 3), KILN_SHAPE(-1, -1)))
MAKER(m_permute, kiln_permute(F32(2, 3), twice))
MAKER(m_flatten, kiln_flatten(kiln_sum(F32(2))))
MAKER(m_argmax, kiln_argmax(kiln_sum(F32(2))))
MAKER(m_equal, kiln_equal(I32(2), I32(3)))
MAKER(m_matmul, kiln_matmul(F32(2, 3), F32(2, 3), false, false))
MAKER(m_matmul_t, kiln_matmul(F32(2, 3), F32(3, 5), true, false))
MAKER(m_linear, kiln_linear(F32(32, 784), F32(10, 100), NULL))
MAKER(m_linear_rank, kiln_linear(kiln_graph_full(graph, KILN_SCALAR, 1.0), F32(10, 4), NULL))
MAKER(m_linear_bias, kiln_linear(F32(2, 4), F32(10, 4), F32(9)))
MAKER(m_conv, kiln_conv2d(F32(1, 2, 2, 3), F32(4, 3, 3, 3), NULL, (KilnConv) { 0 }))
MAKER(m_conv_pad, kiln_conv2d(F32(1, 2, 2, 3), F32(4, 3, 7, 7), NULL, (KilnConv) { .padding = 1 }))
MAKER(m_conv_channels, kiln_conv2d(F32(1, 8, 8, 1), F32(4, 3, 3, 3), NULL, (KilnConv) { 0 }))
MAKER(m_conv_huge,
      kiln_conv2d(F32(1, 8, 8, 1), F32(4, 1, 3, 3), NULL, (KilnConv) { .padding = INT64_MAX / 2 }))
MAKER(m_conv_stride,
      kiln_conv2d(F32(1, 8, 8, 1), F32(4, 1, 3, 3), NULL, (KilnConv) { .stride = -1 }))
MAKER(m_pool, kiln_max_pool2d(F32(1, 2, 2, 1), (KilnPool) { .kernel = 3 }))
MAKER(m_pool_pad,
      kiln_max_pool2d(F32(1, 9, 9, 1), (KilnPool) { .kernel = 3, .stride = 2, .padding = 2 }))
MAKER(m_pool_huge, kiln_max_pool2d(F32(1, 9, 9, 1),
                                   (KilnPool) { .kernel = INT64_MAX, .stride = 1, .padding = 4 }))
MAKER(m_norm, kiln_batch_norm(F32(4, 3), F32(2), F32(2), VAR(2), VAR(2), training))
MAKER(m_norm_one, kiln_batch_norm(F32(1, 3), F32(3), F32(3), VAR(3), VAR(3), training))
MAKER(m_norm_eps, kiln_batch_norm(F32(4, 3), F32(3), F32(3), VAR(3), VAR(3), no_eps))
MAKER(m_loss, kiln_cross_entropy(F32(4, 3), I32(5), (KilnCrossEntropy) { 0 }))
MAKER(m_loss_type, kiln_cross_entropy(F32(4, 3), F32(4), (KilnCrossEntropy) { 0 }))
MAKER(m_loss_smooth,
      kiln_cross_entropy(F32(4, 3), I32(4), (KilnCrossEntropy) { .label_smoothing = 1.5 }))
MAKER(m_dropout, kiln_dropout(F32(4, 3), 1.0, I32(2), 0))
MAKER(m_dropout_key, kiln_dropout(F32(4, 3), 0.5, I32(3), 0))
MAKER(m_empty, F32(4, 0))
MAKER(m_large, F32(1 << 16, 1 << 15))
MAKER(m_overflow, F32(INT64_MAX, INT64_MAX))
MAKER(m_rank, kiln_graph_input(graph, KILN_F32, (KilnShape) { .rank = 7 }, NULL))
MAKER(m_grows, kiln_matmul(F32(1 << 20, 1), F32(1, 1 << 20), false, false))
MAKER(m_grad_type, kiln_graph_variable(graph, KILN_I32, KILN_SHAPE(2), NULL, true, NULL))

static KilnTensor *m_ema(void)
{
    kiln_ema_update(VAR(2), F32(3), 0.1);
    return NULL;
}

static KilnTensor *m_not_variable(void)
{
    kiln_ema_update(F32(2), F32(2), 0.1);
    return NULL;
}

static KilnTensor *m_increment(void)
{
    kiln_increment(VAR(2));
    return NULL;
}

static KilnTensor *m_momentum(void)
{
    KilnFlat flat = { .param = VAR(2), .grad = F32(2), .hyper = F32(2) };

    kiln_sgd_update(&flat, (KilnSgd) { .momentum = 0.9 });
    return NULL;
}

static KilnTensor *m_adam(void)
{
    KilnFlat flat = {
        .param = VAR(2), .grad = F32(2), .hyper = F32(3), .slots = { VAR(2), VAR(3) }
    };

    kiln_adam_update(&flat, (KilnAdam) { .beta1 = 0.9 });
    return NULL;
}

static KilnTensor *m_rates(void)
{
    KilnFlat flat = { .param = VAR(2), .grad = F32(2), .hyper = F32(1), .slots = { VAR(2) } };

    flat.segment_ends = kiln_graph_input(graph, KILN_I64, KILN_SHAPE(2), NULL);
    flat.rates = F32(3, 2);
    kiln_lion_update(&flat, (KilnLion) { .beta1 = 0.9 });
    return NULL;
}

static KilnTensor *m_slot(void)
{
    KilnFlat flat = { .param = VAR(2), .grad = F32(2), .hyper = F32(1) };

    kiln_lion_update(&flat, (KilnLion) { .beta1 = 0.9 });
    return NULL;
}

static KilnTensor *m_backward_shape(void)
{
    kiln_graph_backward(graph, VAR(2));
    return NULL;
}

static KilnTensor *m_backward_none(void)
{
    kiln_graph_backward(graph, kiln_sum(F32(2)));
    return NULL;
}

static KilnTensor *m_backward_twice(void)
{
    KilnTensor *loss = kiln_sum(VAR(2));

    kiln_graph_backward(graph, loss);
    kiln_graph_backward(graph, loss);
    return NULL;
}

static const struct {
    Maker *make;
    const char *text;
} messages[] = {
    { m_add,
      "net: add: [2, 3] and [3, 2] do not broadcast: from the right, sizes must be equal or 1" },
    { m_add_type, "net: add: the second must be f32, got i32" },
    { m_reshape, "net: reshape: [2, 3] (6 elements) does not fit into [4, -1]" },
    { m_reshape_two, "net: reshape: [2, 3] (6 elements) does not fit into [-1, -1]" },
    { m_permute,
      "net: permute: the order must hold each axis from 0 to 1 once, got 0 at position 1" },
    { m_flatten, "net: flatten: needs [N, ...], got a scalar" },
    { m_argmax, "net: argmax: there is no axis -1 in []" },
    { m_equal, "net: equal: both must have the same shape, got [2] and [3]" },
    { m_matmul, "net: matmul: [2, 3] times [2, 3] does not match: 3 columns meet 2 rows" },
    { m_matmul_t,
      "net: matmul: [2, 3] transposed times [3, 5] does not match: 2 columns meet 3 rows" },
    { m_linear, "net: linear: x has 784 features, the weight [10, 100] expects 100" },
    { m_linear_rank, "net: linear: x must have at least one axis, got a scalar" },
    { m_linear_bias, "net: linear: bias must be [10], got [9]" },
    { m_conv, "net: conv2d: the 2×2 image is smaller than the 3×3 kernel" },
    { m_conv_pad,
      "net: conv2d: the 2×2 image is smaller than the 7×7 kernel, with a padding of 1 too" },
    { m_conv_channels, "net: conv2d: the image has 1 channels, the weight [4, 3, 3, 3] expects 3" },
    { m_conv_huge,
      "net: conv2d: the stride must be at least 1 and the padding from 0 to 2147483647, "
      "got 1 and 4611686018427387903" },
    { m_conv_stride, "net: conv2d: the stride must be at least 1 and the padding from 0 to "
                     "2147483647, got -1 and 0" },
    { m_pool, "net: max_pool2d: the 2×2 image is smaller than the 3×3 window" },
    { m_pool_pad, "net: max_pool2d: the padding 2 is more than half of the kernel's size 3" },
    { m_pool_huge, "net: max_pool2d: the 9×9 image is smaller than the "
                   "9223372036854775807×9223372036854775807 window" },
    { m_norm, "net: batch_norm: weight must be [3], got [2]" },
    { m_norm_one, "net: batch_norm: [1, 3] has one value per channel; training needs at least two, "
                  "so a larger batch or larger images" },
    { m_norm_eps, "net: batch_norm: eps must be more than 0, got 0" },
    { m_loss, "net: cross_entropy: labels must be [4], one per row of logits, got [5]" },
    { m_loss_type, "net: cross_entropy: labels must be i32, got f32" },
    { m_loss_smooth, "net: cross_entropy: label smoothing must be from 0 to 1, got 1.5" },
    { m_dropout, "net: dropout: p must be from 0 to less than 1, got 1" },
    { m_dropout_key, "net: dropout: key must be [2], got [3]" },
    { m_empty, "net: input: shape [4, 0]; every size must be at least 1" },
    { m_large,
      "net: input: shape [65536, 32768] has too many elements; less than 2^31 are possible" },
    { m_overflow, "net: input: shape [9223372036854775807, 9223372036854775807] has too many "
                  "elements; less than 2^31 are possible" },
    { m_rank, "net: input: 7 axes; 0 to 6 are possible" },
    { m_grows, "net: matmul: result: shape [1048576, 1048576] has too many elements; less than "
               "2^31 are possible" },
    { m_grad_type, "net: variable: only f32 supports gradients here, got i32" },
    { m_ema, "net: ema_update: the value must be [2], got [3]" },
    { m_not_variable, "net: ema_update: input 1 is updated and must be a variable" },
    { m_increment, "net: increment: the variable must be a scalar, got [2]" },
    { m_momentum, "net: sgd_update: momentum 0.9 needs a momentum_buffer" },
    { m_adam, "net: adam_update: exp_avg_sq must be [2], got [3]" },
    { m_rates, "net: lion_update: rates must be [2, 2], got [3, 2]" },
    { m_slot, "net: lion_update: exp_avg is missing" },
    { m_backward_shape, "net: backward: the loss must be a scalar, got [2]" },
    { m_backward_none, "net: backward: the loss does not depend on any variable with a gradient" },
    { m_backward_twice, "net: backward: was called before in this step; add the losses and call it "
                        "once" },
};

static void test_messages(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(messages); i++) {
        KilnError err = { 0 };

        kiln_graph_begin(graph);
        kiln_graph_layer(graph, "net");
        KilnTensor *tensor = messages[i].make();
        if (kiln_graph_check(graph, &err) >= 0)
            fail_msg("no error; want \"%s\"", messages[i].text);
        if (strcmp(err.text, messages[i].text) != 0)
            fail_msg("got  \"%s\"\nwant \"%s\"", err.text, messages[i].text);
        assert_true(tensor == NULL || kiln_tensor_poisoned(tensor));
        assert_int_equal(kiln_graph_run(graph, NULL, 0, &err), err.status);
    }
}

/* What uses a poisoned tensor is poisoned, and the first error is kept. */
static void test_poison_spreads(void **unused)
{
    KilnError err;

    (void)unused;
    kiln_graph_begin(graph);
    kiln_graph_layer(graph, "layer1.0.conv1");
    KilnTensor *x = m_conv();
    kiln_graph_layer(graph, "layer2");
    x = kiln_relu(kiln_add(x, x));
    m_add();
    x = kiln_batch_norm(x, VAR(4), VAR(4), VAR(4), VAR(4), training);
    x = kiln_reshape(kiln_flatten(kiln_dropout(x, 0.5, I32(2), 1)), KILN_SHAPE(4, -1));
    x = kiln_permute(kiln_max_pool2d(x, (KilnPool) { .kernel = 2, .stride = 2, .padding = 0 }),
                     NULL);
    KilnTensor *loss = kiln_cross_entropy(kiln_linear(x, VAR(3, 3), NULL), I32(4),
                                          (KilnCrossEntropy) { 0 });
    kiln_graph_backward(graph, loss);
    kiln_ema_update(VAR(2), loss, 0.5);
    assert_true(kiln_tensor_poisoned(loss));
    assert_int_equal(kiln_tensor_dim(loss, 0), 0);
    assert_null(kiln_tensor_data(loss));
    assert_int_equal(graph->n_nodes, 0);
    assert_int_equal(kiln_graph_run(graph, &loss, 1, &err), KILN_E_SHAPE);
    assert_string_equal(err.text, "layer1.0.conv1: conv2d: the 2×2 image is smaller than the "
                                  "3×3 kernel");
    /* The next step starts clean. */
    kiln_graph_begin(graph);
    assert_int_equal(kiln_graph_check(graph, NULL), KILN_OK);
    assert_false(kiln_tensor_poisoned(F32(1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_flatten_permutes_only_if_needed),
        cmocka_unit_test(test_pool_index_type),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_poison_spreads),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

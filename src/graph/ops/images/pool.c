/* Pooling of images [N, H, W, C]. Sequences are images of height 1. */
#include <inttypes.h>
#include <string.h>

#include "graph/op_check.h"
#include "graph/graph.h"

/* ---- Windows ------------------------------------------------------------------- */

KilnWindow kiln_pool_window(const KilnPoolAttrs *attrs, int axis, int64_t x_size, int64_t y_size,
                            int64_t i)
{
    KilnWindow window;

    if (attrs->adaptive != 0) {
        window.begin = i * x_size / y_size;
        window.end = ((i + 1) * x_size + y_size - 1) / y_size;
        window.count = window.end - window.begin;
        return window;
    }
    window.begin = i * attrs->stride[axis] - attrs->padding[axis];
    window.end = window.begin + attrs->kernel[axis];
    window.count = x_size + attrs->padding[axis] - window.begin;
    if (window.count > attrs->kernel[axis])
        window.count = attrs->kernel[axis];
    if (window.begin < 0)
        window.begin = 0;
    if (window.end > x_size)
        window.end = x_size;
    if (attrs->exclude_padding != 0)
        window.count = window.end - window.begin;
    return window;
}

/* How far the last window may extend past the padding. */
static int64_t beyond(const KilnPoolAttrs *pool, int axis)
{
    return pool->ceil_mode != 0 ? pool->stride[axis] - 1 : 0;
}

static KilnStatus check_axis(const KilnPoolAttrs *pool, int axis, const KilnShape *x,
                             KilnError *err)
{
    int64_t kernel = pool->kernel[axis], stride = pool->stride[axis], padding = pool->padding[axis];

    if (kernel < 1 || stride < 1 || padding < 0)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "kernel %" PRId64 ", stride %" PRId64 " and padding %" PRId64
                              "; at least 1, 1 and 0 are needed",
                              kernel, stride, padding);
    if (padding > kernel / 2)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "the padding %" PRId64
                              " is more than half of the kernel's size %" PRId64,
                              padding, kernel);
    if (kernel - 2 * padding - beyond(pool, axis) > x->dim[1 + axis])
        return kiln_error_set(err, KILN_E_SHAPE,
                              "the %" PRId64 "×%" PRId64 " image is smaller than the %" PRId64
                              "×%" PRId64 " window",
                              x->dim[1], x->dim[2], pool->kernel[0], pool->kernel[1]);
    return KILN_OK;
}

/* Number of windows along an axis; the last one starts inside the image or before it. */
static int64_t windows(const KilnPoolAttrs *pool, int axis, int64_t x_size)
{
    const int64_t stride = pool->stride[axis], padding = pool->padding[axis];
    /* Not negative, since the padding is at most half of the kernel. */
    const int64_t window = pool->kernel[axis] - 2 * padding;
    const int64_t n = (x_size - window + beyond(pool, axis)) / stride + 1;

    return (n - 1) * stride >= x_size + padding ? n - 1 : n;
}

/* The shape of y. */
static KilnStatus pooled_shape(const KilnNode *node, KilnShape *ret, KilnError *err)
{
    const KilnPoolAttrs *pool = node->attrs;
    const KilnShape *x = &node->inputs[0]->shape;

    if (kiln_check_rank(node, 0, "x", 4, "[N, H, W, C]", err) < 0)
        return err->status;
    *ret = *x;
    for (int axis = 0; axis < 2; axis++) {
        if (check_axis(pool, axis, x, err) < 0)
            return err->status;
        ret->dim[1 + axis] = windows(pool, axis, x->dim[1 + axis]);
    }
    return KILN_OK;
}

static KilnPoolAttrs attrs_of(const KilnPool *pool)
{
    KilnPoolAttrs attrs;

    memset(&attrs, 0, sizeof(attrs));
    for (int axis = 0; axis < 2; axis++) {
        bool kernels = pool->kernel_hw[0] != 0 || pool->kernel_hw[1] != 0;
        bool strides = pool->stride_hw[0] != 0 || pool->stride_hw[1] != 0;
        bool paddings = pool->padding_hw[0] != 0 || pool->padding_hw[1] != 0;
        int64_t stride = strides ? pool->stride_hw[axis] : pool->stride;

        attrs.kernel[axis] = kernels ? pool->kernel_hw[axis] : pool->kernel;
        attrs.stride[axis] = stride != 0 ? stride : attrs.kernel[axis];
        attrs.padding[axis] = paddings ? pool->padding_hw[axis] : pool->padding;
    }
    attrs.exclude_padding = pool->exclude_padding ? 1 : 0;
    attrs.ceil_mode = pool->ceil_mode ? 1 : 0;
    return attrs;
}

/* Records the gradient of x, from dy and, for maxima, their indices. */
static KilnTensor *record_gradient(const KilnOp *op, const KilnNode *node, KilnTensor *dy,
                                   KilnTensor *index)
{
    KilnTensor *inputs[] = { dy, index };
    KilnPoolAttrs attrs = *(const KilnPoolAttrs *)node->attrs;

    kiln_shape_store(&attrs.shape, &node->inputs[0]->shape);
    return kiln_graph_record(dy->graph, op, inputs, index != NULL ? 2 : 1, &attrs);
}

static KilnStatus infer_gradient(KilnNode *node, KilnError *err)
{
    const KilnPoolAttrs *pool = node->attrs;

    if (kiln_check_rank(node, 0, "dy", 4, "[N, H, W, C]", err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &pool->shape);
    return KILN_OK;
}

/* ---- max_pool2d ---------------------------------------------------------------- */

/* Indices within a window of up to this size fit a byte. */
enum { LARGEST_U8_WINDOW = 255 };

static KilnStatus infer_max_pool2d(KilnNode *node, KilnError *err)
{
    const KilnPoolAttrs *pool = node->attrs;
    KilnShape shape;

    if (pooled_shape(node, &shape, err) < 0)
        return err->status;
    bool small = pool->kernel[0] <= LARGEST_U8_WINDOW / pool->kernel[1];
    kiln_infer_output(node, 0, kiln_node_float(node), &shape);
    kiln_infer_output(node, 1, small ? KILN_U8 : KILN_I32, &shape);
    return KILN_OK;
}

static void gradient_max_pool2d(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = record_gradient(&kiln_op_max_pool2d_grad, node, dy[0], node->outputs[1]);
}

const KilnOp kiln_op_max_pool2d = {
    .name = "max_pool2d",
    .n_inputs = 1,
    .n_outputs = 2,
    .attrs_size = sizeof(KilnPoolAttrs),
    .infer = infer_max_pool2d,
    .gradient = gradient_max_pool2d,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1u << 0,
    .bf16_outputs = 1u << 0,
};

const KilnOp kiln_op_max_pool2d_grad = {
    .name = "max_pool2d_grad",
    .n_inputs = 2,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnPoolAttrs),
    .infer = infer_gradient,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1u << 0,
    .bf16_outputs = 1u << 0,
};

KilnTensor *kiln_max_pool2d(KilnTensor *x, KilnPool pool)
{
    KilnPoolAttrs attrs = attrs_of(&pool);

    return kiln_graph_record(x->graph, &kiln_op_max_pool2d, &x, 1, &attrs);
}

/* ---- avg_pool2d ---------------------------------------------------------------- */

static KilnStatus infer_avg_pool2d(KilnNode *node, KilnError *err)
{
    const KilnPoolAttrs *pool = node->attrs;
    const KilnShape *x = &node->inputs[0]->shape;
    KilnShape shape;

    if (pool->adaptive == 0) {
        if (pooled_shape(node, &shape, err) < 0)
            return err->status;
    } else {
        if (kiln_check_rank(node, 0, "x", 4, "[N, H, W, C]", err) < 0)
            return err->status;
        shape = KILN_SHAPE(x->dim[0], pool->shape.dim[1], pool->shape.dim[2], x->dim[3]);
    }
    kiln_infer_output(node, 0, kiln_node_float(node), &shape);
    return KILN_OK;
}

static void gradient_avg_pool2d(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = record_gradient(&kiln_op_avg_pool2d_grad, node, dy[0], NULL);
}

const KilnOp kiln_op_avg_pool2d = {
    .name = "avg_pool2d",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnPoolAttrs),
    .infer = infer_avg_pool2d,
    .gradient = gradient_avg_pool2d,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1u << 0,
    .bf16_outputs = 1u << 0,
};

const KilnOp kiln_op_avg_pool2d_grad = {
    .name = "avg_pool2d_grad",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnPoolAttrs),
    .infer = infer_gradient,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1u << 0,
    .bf16_outputs = 1u << 0,
};

KilnTensor *kiln_avg_pool2d(KilnTensor *x, KilnPool pool)
{
    KilnPoolAttrs attrs = attrs_of(&pool);

    return kiln_graph_record(x->graph, &kiln_op_avg_pool2d, &x, 1, &attrs);
}

KilnTensor *kiln_adaptive_avg_pool2d(KilnTensor *x, int64_t height, int64_t width)
{
    KilnPoolAttrs attrs;

    if (!x->poisoned && (height < 1 || width < 1))
        return kiln_graph_poison(
            x->graph,
            "adaptive_avg_pool2d: the result must have at least one pixel, got %" PRId64
            "×%" PRId64,
            height, width);
    memset(&attrs, 0, sizeof(attrs));
    attrs.adaptive = 1;
    attrs.shape.rank = 4;
    attrs.shape.dim[1] = height;
    attrs.shape.dim[2] = width;
    return kiln_graph_record(x->graph, &kiln_op_avg_pool2d, &x, 1, &attrs);
}

/* ---- Sequences ----------------------------------------------------------------- */

/* [N, L, C] as [N, 1, L, C]. */
static KilnTensor *flat_image(KilnTensor *x, const char *name)
{
    char text[KILN_SHAPE_TEXT];

    if (x->poisoned)
        return x;
    if (x->shape.rank != 3)
        return kiln_graph_poison(x->graph, "%s: x must be [N, L, C], got %s", name,
                                 kiln_shape_text(&x->shape, text, sizeof(text)));
    return kiln_reshape(x, KILN_SHAPE(x->shape.dim[0], 1, x->shape.dim[1], x->shape.dim[2]));
}

static KilnTensor *sequence(KilnTensor *y)
{
    if (y->poisoned)
        return y;
    return kiln_reshape(y, KILN_SHAPE(y->shape.dim[0], y->shape.dim[2], y->shape.dim[3]));
}

static KilnPool flat_pool(const KilnPool *pool)
{
    return (KilnPool) {
        .kernel_hw = { 1, pool->kernel },
        .stride_hw = { 1, pool->stride },
        .padding_hw = { 0, pool->padding },
        .exclude_padding = pool->exclude_padding,
        .ceil_mode = pool->ceil_mode,
    };
}

KilnTensor *kiln_max_pool1d(KilnTensor *x, KilnPool pool)
{
    return sequence(kiln_max_pool2d(flat_image(x, "max_pool1d"), flat_pool(&pool)));
}

KilnTensor *kiln_avg_pool1d(KilnTensor *x, KilnPool pool)
{
    return sequence(kiln_avg_pool2d(flat_image(x, "avg_pool1d"), flat_pool(&pool)));
}

KilnTensor *kiln_adaptive_avg_pool1d(KilnTensor *x, int64_t length)
{
    return sequence(kiln_adaptive_avg_pool2d(flat_image(x, "adaptive_avg_pool1d"), 1, length));
}

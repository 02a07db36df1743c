/* Pooling of images [N, H, W, C]. */
#include <inttypes.h>
#include <string.h>

#include "graph/check.h"
#include "graph/graph.h"

/* ---- max_pool2d ---------------------------------------------------------------- */

/* The places within a window of this size fit a byte. */
enum { LARGEST_U8_KERNEL = 15 };

static KilnStatus check_pool(const KilnPoolAttrs *pool, const KilnShape *x, KilnError *err)
{
    if (pool->kernel < 1 || pool->stride < 1 || pool->padding < 0)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "kernel %" PRId64 ", stride %" PRId64 " and padding %" PRId64
                              "; at least 1, 1 and 0 are needed",
                              pool->kernel, pool->stride, pool->padding);
    if (pool->padding > pool->kernel / 2)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "the padding %" PRId64
                              " is more than half of the kernel's size %" PRId64,
                              pool->padding, pool->kernel);
    for (int axis = 1; axis <= 2; axis++) {
        if (pool->kernel - 2 * pool->padding > x->dim[axis])
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "the %" PRId64 "×%" PRId64 " image is smaller than the %" PRId64
                                  "×%" PRId64 " window",
                                  x->dim[1], x->dim[2], pool->kernel, pool->kernel);
    }
    return KILN_OK;
}

static KilnStatus infer_max_pool2d(KilnNode *node, KilnError *err)
{
    const KilnPoolAttrs *pool = node->attrs;
    const KilnShape *x = &node->inputs[0]->shape;

    if (kiln_check_rank(node, 0, "x", 4, "[N, H, W, C]", err) < 0 || check_pool(pool, x, err) < 0)
        return err->status;
    /* Not negative, for the padding is at most half of the kernel. */
    int64_t beyond = pool->kernel - 2 * pool->padding;
    KilnShape shape = KILN_SHAPE(x->dim[0], (x->dim[1] - beyond) / pool->stride + 1,
                                 (x->dim[2] - beyond) / pool->stride + 1, x->dim[3]);
    bool small = pool->kernel <= LARGEST_U8_KERNEL;
    kiln_infer_output(node, 0, kiln_node_float(node), &shape);
    kiln_infer_output(node, 1, small ? KILN_U8 : KILN_I32, &shape);
    return KILN_OK;
}

static void gradient_max_pool2d(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnPoolAttrs *pool = node->attrs;
    KilnTensor *inputs[] = { dy[0], node->outputs[1] };
    KilnPoolAttrs attrs;

    memset(&attrs, 0, sizeof(attrs));
    attrs.kernel = pool->kernel;
    attrs.stride = pool->stride;
    attrs.padding = pool->padding;
    kiln_shape_store(&attrs.shape, &node->inputs[0]->shape);
    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_max_pool2d_grad, inputs, 2, &attrs);
}

static KilnStatus infer_max_pool2d_grad(KilnNode *node, KilnError *err)
{
    const KilnPoolAttrs *pool = node->attrs;

    if (kiln_check_rank(node, 0, "dy", 4, "[N, H, W, C]", err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &pool->shape);
    return KILN_OK;
}

const KilnOp kiln_op_max_pool2d = {
    .name = "max_pool2d",
    .n_inputs = 1,
    .n_outputs = 2,
    .attrs_size = sizeof(KilnPoolAttrs),
    .infer = infer_max_pool2d,
    .gradient = gradient_max_pool2d,
};

const KilnOp kiln_op_max_pool2d_grad = {
    .name = "max_pool2d_grad",
    .n_inputs = 2,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnPoolAttrs),
    .infer = infer_max_pool2d_grad,
};

KilnTensor *kiln_max_pool2d(KilnTensor *x, KilnPool pool)
{
    KilnPoolAttrs attrs;

    memset(&attrs, 0, sizeof(attrs));
    attrs.kernel = pool.kernel;
    attrs.stride = pool.stride != 0 ? pool.stride : pool.kernel;
    attrs.padding = pool.padding;
    return kiln_graph_record(x->graph, &kiln_op_max_pool2d, &x, 1, &attrs);
}

/* ---- global_avg_pool2d --------------------------------------------------------- */

static KilnStatus infer_global_avg_pool2d(KilnNode *node, KilnError *err)
{
    const KilnShape *x = &node->inputs[0]->shape;

    if (kiln_check_rank(node, 0, "x", 4, "[N, H, W, C]", err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &KILN_SHAPE(x->dim[0], x->dim[3]));
    return KILN_OK;
}

static KilnTensor *record_global(const KilnOp *op, KilnTensor *x, const KilnShape *image)
{
    KilnShapeAttrs attrs;

    memset(&attrs, 0, sizeof(attrs));
    kiln_shape_store(&attrs.shape, image);
    return kiln_graph_record(x->graph, op, &x, 1, &attrs);
}

static void gradient_global_avg_pool2d(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = record_global(&kiln_op_global_avg_pool2d_grad, dy[0], &node->inputs[0]->shape);
}

static KilnStatus infer_global_avg_pool2d_grad(KilnNode *node, KilnError *err)
{
    const KilnShapeAttrs *attrs = node->attrs;

    if (kiln_check_rank(node, 0, "dy", 2, "[N, C]", err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &attrs->shape);
    return KILN_OK;
}

const KilnOp kiln_op_global_avg_pool2d = {
    .name = "global_avg_pool2d",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnShapeAttrs),
    .infer = infer_global_avg_pool2d,
    .gradient = gradient_global_avg_pool2d,
};

const KilnOp kiln_op_global_avg_pool2d_grad = {
    .name = "global_avg_pool2d_grad",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnShapeAttrs),
    .infer = infer_global_avg_pool2d_grad,
};

KilnTensor *kiln_global_avg_pool2d(KilnTensor *x)
{
    return record_global(&kiln_op_global_avg_pool2d, x, &x->shape);
}

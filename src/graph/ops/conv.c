/* Convolution of images [N, H, W, C] with weights [O, I, kh, kw]. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/check.h"
#include "graph/graph.h"

/* Places of a window of `kernel` along `size` with padding on both sides; less
 * than 1: the window is larger than the padded image. All are below 2^31. */
static int64_t places(int64_t size, int64_t kernel, const KilnConvAttrs *attrs)
{
    int64_t beyond = size + 2 * attrs->padding - kernel;

    return beyond < 0 ? 0 : beyond / attrs->stride + 1;
}

static KilnStatus misfit(const KilnShape *x, const KilnShape *weight, const KilnConvAttrs *attrs,
                         KilnError *err)
{
    char padding[48] = "";

    if (attrs->padding > 0)
        snprintf(padding, sizeof(padding), ", with a padding of %" PRId64 " too", attrs->padding);
    return kiln_error_set(err, KILN_E_SHAPE,
                          "the %" PRId64 "×%" PRId64 " image is smaller than the %" PRId64
                          "×%" PRId64 " kernel%s",
                          x->dim[1], x->dim[2], weight->dim[2], weight->dim[3], padding);
}

static KilnStatus infer_conv2d(KilnNode *node, KilnError *err)
{
    const KilnConvAttrs *attrs = node->attrs;
    const KilnShape *x = &node->inputs[0]->shape, *weight = &node->inputs[1]->shape;
    char text[KILN_SHAPE_TEXT];

    if (attrs->stride < 1 || attrs->padding < 0 || attrs->padding > INT32_MAX)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "the stride must be at least 1 and the padding from 0 to %" PRId32
                              ", got %" PRId64 " and %" PRId64,
                              INT32_MAX, attrs->stride, attrs->padding);
    if (kiln_check_rank(node, 0, "x", 4, "[N, H, W, C]", err) < 0 ||
        kiln_check_rank(node, 1, "weight", 4, "[O, I, kh, kw]", err) < 0)
        return err->status;
    if (x->dim[3] != weight->dim[1])
        return kiln_error_set(
            err, KILN_E_SHAPE, "the image has %" PRId64 " channels, the weight %s takes %" PRId64,
            x->dim[3], kiln_shape_text(weight, text, sizeof(text)), weight->dim[1]);
    if (kiln_check_shape(node, 2, "bias", &KILN_SHAPE(weight->dim[0]), err) < 0)
        return err->status;
    int64_t height = places(x->dim[1], weight->dim[2], attrs);
    int64_t width = places(x->dim[2], weight->dim[3], attrs);
    if (height < 1 || width < 1)
        return misfit(x, weight, attrs, err);
    kiln_infer_output(node, 0, kiln_node_float(node),
                      &KILN_SHAPE(x->dim[0], height, width, weight->dim[0]));
    return KILN_OK;
}

static KilnTensor *record_gradient(const KilnOp *op, KilnTensor *dy, KilnTensor *other,
                                   const KilnConvAttrs *conv, const KilnShape *shape)
{
    KilnTensor *inputs[] = { dy, other };
    KilnConvAttrs attrs;

    memset(&attrs, 0, sizeof(attrs));
    attrs.stride = conv->stride;
    attrs.padding = conv->padding;
    kiln_shape_store(&attrs.shape, shape);
    return kiln_graph_record(dy->graph, op, inputs, 2, &attrs);
}

static void gradient_conv2d(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnConvAttrs *attrs = node->attrs;
    KilnTensor *x = node->inputs[0], *weight = node->inputs[1], *bias = node->inputs[2];

    if (x->wants_grad)
        dx[0] = record_gradient(&kiln_op_conv2d_grad_input, dy[0], weight, attrs, &x->shape);
    if (weight->wants_grad)
        dx[1] = record_gradient(&kiln_op_conv2d_grad_weight, dy[0], x, attrs, &weight->shape);
    if (bias != NULL && bias->wants_grad)
        dx[2] = kiln_sum_rows(dy[0]);
}

/* The gradients have the shape of what they are the gradient of. */
static KilnStatus infer_gradient(KilnNode *node, KilnError *err)
{
    const KilnConvAttrs *attrs = node->attrs;

    if (kiln_check_rank(node, 0, "dy", 4, "[N, H, W, C]", err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &attrs->shape);
    return KILN_OK;
}

const KilnOp kiln_op_conv2d = {
    .name = "conv2d",
    .n_inputs = 3,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnConvAttrs),
    .infer = infer_conv2d,
    .gradient = gradient_conv2d,
};

const KilnOp kiln_op_conv2d_grad_input = {
    .name = "conv2d_grad_input",
    .n_inputs = 2,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnConvAttrs),
    .infer = infer_gradient,
};

const KilnOp kiln_op_conv2d_grad_weight = {
    .name = "conv2d_grad_weight",
    .n_inputs = 2,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnConvAttrs),
    .infer = infer_gradient,
};

KilnTensor *kiln_conv2d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias, KilnConv conv)
{
    KilnTensor *inputs[] = { x, weight, bias };
    KilnConvAttrs attrs;

    memset(&attrs, 0, sizeof(attrs));
    attrs.stride = conv.stride != 0 ? conv.stride : 1;
    attrs.padding = conv.padding;
    return kiln_graph_record(x->graph, &kiln_op_conv2d, inputs, 3, &attrs);
}

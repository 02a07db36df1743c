/* Convolution of images [N, H, W, C] with weights [O, I/groups, kh, kw], and its transpose.
 * Sequences are images of height 1. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/op_check.h"
#include "graph/graph.h"

/* ---- Windows ------------------------------------------------------------------- */

bool kiln_conv_element_meets(const KilnConvAttrs *attrs, int axis, int64_t k, int64_t pixels,
                             int64_t places)
{
    for (int64_t i = 0; i < places; i++) {
        const int64_t at = i * attrs->stride[axis] + k * attrs->dilation[axis] -
                           attrs->padding[axis];

        if (at >= 0 && at < pixels)
            return true;
    }
    return false;
}

/* Elements that a window spans along an axis (0 height, 1 width), dilation included. */
static int64_t reach(const KilnConvAttrs *attrs, int axis, int64_t kernel)
{
    return attrs->dilation[axis] * (kernel - 1) + 1;
}

/* Number of windows along an axis; less than 1: the window is larger than the padded image.
 * check_attrs rules out overflow. */
static int64_t places(const KilnConvAttrs *attrs, int axis, int64_t size, int64_t kernel)
{
    int64_t beyond = size + 2 * attrs->padding[axis] - reach(attrs, axis, kernel);

    return beyond < 0 ? 0 : beyond / attrs->stride[axis] + 1;
}

static KilnStatus check_attrs(const KilnConvAttrs *attrs, KilnError *err)
{
    for (int axis = 0; axis < 2; axis++) {
        if (attrs->stride[axis] < 1 || attrs->padding[axis] < 0 ||
            attrs->padding[axis] > INT32_MAX || attrs->stride[axis] > INT32_MAX)
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "the stride must be at least 1 and the padding from 0 to %" PRId32
                                  ", got %" PRId64 " and %" PRId64,
                                  INT32_MAX, attrs->stride[axis], attrs->padding[axis]);
        if (attrs->dilation[axis] < 1 || attrs->dilation[axis] > INT32_MAX)
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "the dilation must be at least 1, got %" PRId64,
                                  attrs->dilation[axis]);
    }
    if (attrs->groups < 1)
        return kiln_error_set(err, KILN_E_SHAPE, "there must be at least 1 group, got %" PRId64,
                              attrs->groups);
    return KILN_OK;
}

/* Checks that `channels`, called `name` in messages, divide into groups. */
static KilnStatus check_groups(const KilnConvAttrs *attrs, const char *name, int64_t channels,
                               KilnError *err)
{
    if (channels % attrs->groups == 0)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_SHAPE,
                          "the %" PRId64 " channels of the %s cannot be split into %" PRId64
                          " groups of equal size",
                          channels, name, attrs->groups);
}

/* ---- conv2d -------------------------------------------------------------------- */

static KilnStatus misfit(const KilnShape *x, const KilnShape *weight, const KilnConvAttrs *attrs,
                         KilnError *err)
{
    char padding[48] = "", dilated[64] = "";

    if (attrs->padding[0] > 0 || attrs->padding[1] > 0)
        snprintf(padding, sizeof(padding), ", with a padding of %" PRId64 " too",
                 attrs->padding[0] > attrs->padding[1] ? attrs->padding[0] : attrs->padding[1]);
    if (attrs->dilation[0] > 1 || attrs->dilation[1] > 1)
        snprintf(dilated, sizeof(dilated), " dilated to %" PRId64 "×%" PRId64,
                 reach(attrs, 0, weight->dim[2]), reach(attrs, 1, weight->dim[3]));
    return kiln_error_set(err, KILN_E_SHAPE,
                          "the %" PRId64 "×%" PRId64 " image is smaller than the %" PRId64
                          "×%" PRId64 " kernel%s%s",
                          x->dim[1], x->dim[2], weight->dim[2], weight->dim[3], dilated, padding);
}

static KilnStatus check_conv2d(const KilnNode *node, KilnError *err)
{
    const KilnConvAttrs *attrs = node->attrs;
    const KilnShape *x = &node->inputs[0]->shape, *weight = &node->inputs[1]->shape;
    char text[KILN_SHAPE_TEXT];

    if (check_attrs(attrs, err) < 0 || kiln_check_rank(node, 0, "x", 4, "[N, H, W, C]", err) < 0 ||
        kiln_check_rank(node, 1, "weight", 4,
                        attrs->groups > 1 ? "[O, I/groups, kh, kw]" : "[O, I, kh, kw]", err) < 0 ||
        check_groups(attrs, "image", x->dim[3], err) < 0)
        return err->status;
    if (x->dim[3] / attrs->groups != weight->dim[1])
        return attrs->groups > 1
                   ? kiln_error_set(err, KILN_E_SHAPE,
                                    "the image has %" PRId64 " channels, the weight %s in %" PRId64
                                    " groups takes %" PRId64,
                                    x->dim[3], kiln_shape_text(weight, text, sizeof(text)),
                                    attrs->groups, weight->dim[1] * attrs->groups)
                   : kiln_error_set(
                         err, KILN_E_SHAPE,
                         "the image has %" PRId64 " channels, the weight %s expects %" PRId64,
                         x->dim[3], kiln_shape_text(weight, text, sizeof(text)), weight->dim[1]);
    if (check_groups(attrs, "result", weight->dim[0], err) < 0)
        return err->status;
    return kiln_check_shape(node, 2, "bias", &KILN_SHAPE(weight->dim[0]), err);
}

static KilnStatus infer_conv2d(KilnNode *node, KilnError *err)
{
    const KilnConvAttrs *attrs = node->attrs;
    const KilnShape *x = &node->inputs[0]->shape, *weight = &node->inputs[1]->shape;

    if (check_conv2d(node, err) < 0)
        return err->status;
    int64_t height = places(attrs, 0, x->dim[1], weight->dim[2]);
    int64_t width = places(attrs, 1, x->dim[2], weight->dim[3]);
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
    KilnConvAttrs attrs = *conv;

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

/* A gradient has the shape of its tensor. */
static KilnStatus infer_gradient(KilnNode *node, KilnError *err)
{
    const KilnConvAttrs *attrs = node->attrs;

    if (kiln_check_rank(node, 0, "dy", 4, "[N, H, W, C]", err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &attrs->shape);
    return KILN_OK;
}

/* One product for every weight and every pixel of the smaller image. */
static double conv_flops(const KilnShape *weight, const KilnShape *places)
{
    return 2.0 * (double)kiln_shape_count(weight) *
           ((double)places->dim[0] * (double)places->dim[1] * (double)places->dim[2]);
}

static double flops_conv2d(const KilnNode *node)
{
    return conv_flops(&node->inputs[1]->shape, &node->outputs[0]->shape);
}

/* Serves the transpose too: every element of its input meets every weight. */
static double flops_grad_input(const KilnNode *node)
{
    return conv_flops(&node->inputs[1]->shape, &node->inputs[0]->shape);
}

static double flops_grad_weight(const KilnNode *node)
{
    return conv_flops(&node->outputs[0]->shape, &node->inputs[0]->shape);
}

const KilnOp kiln_op_conv2d = {
    .name = "conv2d",
    .n_inputs = 3,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnConvAttrs),
    .infer = infer_conv2d,
    .gradient = gradient_conv2d,
    .flops = flops_conv2d,
    .autocast = KILN_AUTOCAST_BF16,
    .bf16_inputs = 1u << 0 | 1u << 1,
    .bf16_outputs = 1u << 0,
};

const KilnOp kiln_op_conv2d_grad_input = {
    .name = "conv2d_grad_input",
    .n_inputs = 2,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnConvAttrs),
    .infer = infer_gradient,
    .flops = flops_grad_input,
    .autocast = KILN_AUTOCAST_BF16,
    .bf16_inputs = 1u << 0 | 1u << 1,
    .bf16_outputs = 1u << 0,
};

const KilnOp kiln_op_conv2d_grad_weight = {
    .name = "conv2d_grad_weight",
    .n_inputs = 2,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnConvAttrs),
    .infer = infer_gradient,
    .flops = flops_grad_weight,
    .autocast = KILN_AUTOCAST_BF16,
    .bf16_inputs = 1u << 0 | 1u << 1,
};

/* A pair that is not all 0 overrides the single number; 0 counts as `least`. */
static void take_axes(int64_t ret[2], int64_t both, const int64_t axes[2], int64_t least)
{
    bool apart = axes[0] != 0 || axes[1] != 0;

    for (int axis = 0; axis < 2; axis++) {
        int64_t value = apart ? axes[axis] : both;

        ret[axis] = value != 0 ? value : least;
    }
}

static KilnConvAttrs attrs_of(const KilnConv *conv)
{
    KilnConvAttrs attrs;

    memset(&attrs, 0, sizeof(attrs));
    take_axes(attrs.stride, conv->stride, conv->stride_hw, 1);
    take_axes(attrs.padding, conv->padding, conv->padding_hw, 0);
    take_axes(attrs.dilation, conv->dilation, conv->dilation_hw, 1);
    attrs.groups = conv->groups != 0 ? conv->groups : 1;
    return attrs;
}

KilnTensor *kiln_conv2d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias, KilnConv conv)
{
    KilnTensor *inputs[] = { x, weight, bias };
    KilnConvAttrs attrs = attrs_of(&conv);

    return kiln_graph_record(x->graph, &kiln_op_conv2d, inputs, 3, &attrs);
}

/* ---- conv1d -------------------------------------------------------------------- */

KilnTensor *kiln_conv1d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias, KilnConv conv)
{
    char text[KILN_SHAPE_TEXT];

    if (x->poisoned || weight->poisoned)
        return x->graph->poison;
    if (x->shape.rank != 3)
        return kiln_graph_poison(x->graph, "conv1d: x must be [N, L, C], got %s",
                                 kiln_shape_text(&x->shape, text, sizeof(text)));
    if (weight->shape.rank != 3)
        return kiln_graph_poison(x->graph, "conv1d: weight must be [O, I/groups, k], got %s",
                                 kiln_shape_text(&weight->shape, text, sizeof(text)));
    const int64_t *in = x->shape.dim, *kernel = weight->shape.dim;
    const KilnConv flat = {
        .stride_hw = { 1, conv.stride },
        .padding_hw = { 0, conv.padding },
        .dilation_hw = { 1, conv.dilation },
        .groups = conv.groups,
    };
    KilnTensor *y = kiln_conv2d(
        kiln_reshape(x, KILN_SHAPE(in[0], 1, in[1], in[2])),
        kiln_reshape(weight, KILN_SHAPE(kernel[0], kernel[1], 1, kernel[2])), bias, flat);
    return y->poisoned ? y : kiln_reshape(y, KILN_SHAPE(in[0], y->shape.dim[2], y->shape.dim[3]));
}

/* ---- conv_transpose2d ---------------------------------------------------------- */

/* This is the input gradient of a convolution from y to x, so the weight's first axis is x's
 * channels. Until here, its shape holds the requested output padding, from kiln_conv_transpose2d.
 */
static KilnStatus infer_conv_transpose2d(KilnNode *node, KilnError *err)
{
    const KilnConvAttrs *attrs = node->attrs;
    const KilnShape *x = &node->inputs[0]->shape, *weight = &node->inputs[1]->shape;
    char text[KILN_SHAPE_TEXT];

    if (check_attrs(attrs, err) < 0 || kiln_check_rank(node, 0, "x", 4, "[N, H, W, C]", err) < 0 ||
        kiln_check_rank(node, 1, "weight", 4, "[I, O/groups, kh, kw]", err) < 0)
        return err->status;
    if (x->dim[3] != weight->dim[0])
        return kiln_error_set(
            err, KILN_E_SHAPE, "the image has %" PRId64 " channels, the weight %s expects %" PRId64,
            x->dim[3], kiln_shape_text(weight, text, sizeof(text)), weight->dim[0]);
    if (check_groups(attrs, "image", x->dim[3], err) < 0)
        return err->status;
    if (kiln_check_shape(node, 2, "bias", &KILN_SHAPE(attrs->shape.dim[3]), err) < 0)
        return err->status;
    for (int axis = 0; axis < 2; axis++)
        if (places(attrs, axis, attrs->shape.dim[1 + axis], weight->dim[2 + axis]) !=
            x->dim[1 + axis])
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "the padding removes all of the %" PRId64 "×%" PRId64
                                  " image under the %" PRId64 "×%" PRId64 " kernel",
                                  x->dim[1], x->dim[2], weight->dim[2], weight->dim[3]);
    kiln_infer_output(node, 0, kiln_node_float(node), &attrs->shape);
    return KILN_OK;
}

static void gradient_conv_transpose2d(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnConvAttrs *attrs = node->attrs;
    KilnTensor *x = node->inputs[0], *weight = node->inputs[1], *bias = node->inputs[2];

    if (x->wants_grad) {
        KilnTensor *inputs[] = { dy[0], weight, NULL };
        KilnConvAttrs forward = *attrs;

        memset(&forward.shape, 0, sizeof(forward.shape));
        dx[0] = kiln_graph_record(x->graph, &kiln_op_conv2d, inputs, 3, &forward);
    }
    if (weight->wants_grad)
        dx[1] = record_gradient(&kiln_op_conv2d_grad_weight, x, dy[0], attrs, &weight->shape);
    if (bias != NULL && bias->wants_grad)
        dx[2] = kiln_sum_rows(dy[0]);
}

const KilnOp kiln_op_conv_transpose2d = {
    .name = "conv_transpose2d",
    .n_inputs = 3,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnConvAttrs),
    .infer = infer_conv_transpose2d,
    .gradient = gradient_conv_transpose2d,
    .flops = flops_grad_input,
    .autocast = KILN_AUTOCAST_BF16,
    .bf16_inputs = 1u << 0 | 1u << 1,
    .bf16_outputs = 1u << 0,
};

/* The result's shape, or for invalid shapes one that the checks reject. */
static KilnShape transposed_shape(const KilnConvAttrs *attrs, const int64_t output_padding[2],
                                  const KilnShape *x, const KilnShape *weight)
{
    KilnShape shape = KILN_SHAPE(x->dim[0], 0, 0, weight->dim[1] * attrs->groups);

    for (int axis = 0; axis < 2; axis++)
        shape.dim[1 + axis] = (x->dim[1 + axis] - 1) * attrs->stride[axis] -
                              2 * attrs->padding[axis] + reach(attrs, axis, weight->dim[2 + axis]) +
                              output_padding[axis];
    return shape;
}

KilnTensor *kiln_conv_transpose2d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                  KilnConvTranspose conv)
{
    KilnTensor *inputs[] = { x, weight, bias };
    KilnConvAttrs attrs = attrs_of(&conv.conv);
    int64_t output_padding[2];
    KilnError err;

    if (x->poisoned || weight->poisoned)
        return x->graph->poison;
    take_axes(output_padding, conv.output_padding, conv.output_padding_hw, 0);
    for (int axis = 0; axis < 2; axis++)
        if (output_padding[axis] < 0 || output_padding[axis] >= attrs.stride[axis])
            return kiln_graph_poison(x->graph,
                                     "conv_transpose2d: the output's padding must be less than "
                                     "the stride %" PRId64 ", got %" PRId64,
                                     attrs.stride[axis], output_padding[axis]);
    if (check_attrs(&attrs, &err) >= 0 && x->shape.rank == 4 && weight->shape.rank == 4) {
        const KilnShape shape = transposed_shape(&attrs, output_padding, &x->shape, &weight->shape);

        kiln_shape_store(&attrs.shape, &shape);
    }
    return kiln_graph_record(x->graph, &kiln_op_conv_transpose2d, inputs, 3, &attrs);
}

KilnTensor *kiln_conv_transpose1d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                  KilnConvTranspose conv)
{
    char text[KILN_SHAPE_TEXT];

    if (x->poisoned || weight->poisoned)
        return x->graph->poison;
    if (x->shape.rank != 3 || weight->shape.rank != 3)
        return kiln_graph_poison(
            x->graph, "conv_transpose1d: x must be [N, L, C] and weight [I, O/groups, k], got %s",
            kiln_shape_text(x->shape.rank != 3 ? &x->shape : &weight->shape, text, sizeof(text)));
    const int64_t *in = x->shape.dim, *kernel = weight->shape.dim;
    const KilnConvTranspose flat = {
        .conv = { .stride_hw = { 1, conv.conv.stride },
                  .padding_hw = { 0, conv.conv.padding },
                  .dilation_hw = { 1, conv.conv.dilation },
                  .groups = conv.conv.groups },
        .output_padding_hw = { 0, conv.output_padding },
    };
    KilnTensor *y = kiln_conv_transpose2d(
        kiln_reshape(x, KILN_SHAPE(in[0], 1, in[1], in[2])),
        kiln_reshape(weight, KILN_SHAPE(kernel[0], kernel[1], 1, kernel[2])), bias, flat);
    return y->poisoned ? y : kiln_reshape(y, KILN_SHAPE(in[0], y->shape.dim[2], y->shape.dim[3]));
}

/* Cuts rows and columns off a convolution's kernel that meet nothing but padding, as those of a
 * 3×3 kernel around an image of one pixel do. The convolution reads a slice of its weight; the rest
 * of the weight's gradient is 0. */
#include <string.h>

#include "graph/op.h"
#include "graph/op_check.h"
#include "graph/passes/passes.h"

/* The part of a kernel that is left, and the convolution with it. */
typedef struct Trim {
    KilnConvAttrs attrs;
    int64_t start[2], size[2]; /* of height, of width */
} Trim;

/* ---- What is left of a kernel --------------------------------------------------------------- */

typedef struct Axis {
    int64_t stride, padding, dilation, image, places, kernel;
} Axis;

/* Whether `size` elements from `start` on have as many places, with the same padding on both sides.
 */
static bool fits(const Axis *axis, int64_t start, int64_t size, int64_t stride)
{
    const int64_t padding = axis->padding - start * axis->dilation;
    const int64_t beyond = axis->image + 2 * padding - axis->dilation * (size - 1) - 1;

    return padding >= 0 && beyond >= 0 && beyond / stride + 1 == axis->places;
}

/* The fewest elements that hold all which meet a pixel; false: all must stay. */
static bool trim_axis(const KilnConvAttrs *attrs, int i, const Axis *axis, int64_t *ret_start,
                      int64_t *ret_size)
{
    int64_t begin = 0, end = axis->kernel;

    while (begin < end && !kiln_conv_element_meets(attrs, i, begin, axis->image, axis->places))
        begin++;
    while (end > begin && !kiln_conv_element_meets(attrs, i, end - 1, axis->image, axis->places))
        end--;
    if (end - begin == axis->kernel || begin == end)
        return false;
    for (int64_t start = begin; start >= 0; start--)
        for (int64_t stop = end; stop <= axis->kernel; stop++)
            if (fits(axis, start, stop - start, axis->stride)) {
                *ret_start = start;
                *ret_size = stop - start;
                return stop - start < axis->kernel;
            }
    return false;
}

/* `image` is what the convolution reads, `places` what it writes. */
static bool trim(const KilnConvAttrs *attrs, const KilnShape *image, const KilnShape *places,
                 const KilnShape *weight, Trim *ret)
{
    bool any = false;

    ret->attrs = *attrs;
    for (int i = 0; i < 2; i++) {
        const Axis axis = { attrs->stride[i],  attrs->padding[i],  attrs->dilation[i],
                            image->dim[1 + i], places->dim[1 + i], weight->dim[2 + i] };

        ret->start[i] = 0;
        ret->size[i] = axis.kernel;
        if (axis.padding == 0 || !trim_axis(attrs, i, &axis, &ret->start[i], &ret->size[i]))
            continue;
        any = true;
        ret->attrs.padding[i] -= ret->start[i] * axis.dilation;
        if (fits(&axis, ret->start[i], ret->size[i], 1))
            ret->attrs.stride[i] = 1;
        if (ret->size[i] == 1)
            ret->attrs.dilation[i] = 1;
    }
    return any;
}

/* ---- Nodes ---------------------------------------------------------------------------------- */

static KilnShape part_shape(const KilnShape *weight, const Trim *part)
{
    return KILN_SHAPE(weight->dim[0], weight->dim[1], part->size[0], part->size[1]);
}

/* A slice of a weight, or its place in one (`shape`). */
static KilnWindowAttrs window(const Trim *part, const KilnShape *shape)
{
    KilnWindowAttrs attrs;

    memset(&attrs, 0, sizeof(attrs));
    kiln_shape_store(&attrs.shape, shape);
    for (int axis = 0; axis < shape->rank; axis++)
        attrs.step[axis] = 1;
    attrs.start[2] = part->start[0];
    attrs.start[3] = part->start[1];
    return attrs;
}

/* Let conv2d or its gradient read a slice of its weight; NULL when out of memory. */
static KilnNode *slice_weight(KilnRewrite *rewrite, KilnNode *node, const Trim *part)
{
    const KilnShape shape = part_shape(&node->inputs[1]->shape, part);
    const KilnWindowAttrs attrs = window(part, &shape);
    KilnTensor *slice = kiln_rewrite_tensor(rewrite, node->inputs[1]->dtype, &shape);
    KilnNode *made = slice != NULL ? kiln_rewrite_node(rewrite, &kiln_op_slice, &node->inputs[1], 1,
                                                       &slice, 1, &attrs, node->layer)
                                   : NULL;

    if (made != NULL) {
        made->segment = node->segment;
        node->inputs[1] = slice;
        *(KilnConvAttrs *)node->attrs = part->attrs;
    }
    return made;
}

/* Let conv2d_grad_weight write a part of the gradient, and pad it; NULL when out of memory. */
static KilnNode *pad_gradient(KilnRewrite *rewrite, KilnNode *node, const Trim *part)
{
    KilnTensor *whole = node->outputs[0];
    const KilnShape shape = part_shape(&whole->shape, part);
    const KilnWindowAttrs attrs = window(part, &whole->shape);
    KilnTensor *gradient = kiln_rewrite_tensor(rewrite, whole->dtype, &shape);
    KilnNode *made = gradient != NULL ? kiln_rewrite_node(rewrite, &kiln_op_pad, &gradient, 1,
                                                          &whole, 1, &attrs, node->layer)
                                      : NULL;

    if (made != NULL) {
        made->segment = node->segment;
        node->outputs[0] = gradient;
        *(KilnConvAttrs *)node->attrs = part->attrs;
        kiln_shape_store(&((KilnConvAttrs *)node->attrs)->shape, &shape);
    }
    return made;
}

static bool can_trim(const KilnNode *node, Trim *ret)
{
    const bool forward = node->op == &kiln_op_conv2d;
    const bool by_input = node->op == &kiln_op_conv2d_grad_input;

    if (!forward && !by_input && node->op != &kiln_op_conv2d_grad_weight)
        return false;
    const KilnShape *a = &node->inputs[0]->shape, *b = &node->inputs[1]->shape;
    const KilnShape *result = &node->outputs[0]->shape;
    return forward    ? trim(node->attrs, a, result, b, ret)
           : by_input ? trim(node->attrs, result, a, b, ret)
                      : trim(node->attrs, b, a, result, ret);
}

KilnStatus kiln_pass_trim_kernels(KilnRewrite *rewrite, KilnError *err)
{
    const size_t room = 2 * rewrite->n_nodes + 1;
    KilnNode **nodes = kiln_arena_alloc(rewrite->arena, room * sizeof(KilnNode *));
    size_t n = 0;

    if (nodes == NULL)
        return kiln_error_nomem(err, room * sizeof(KilnNode *));
    for (size_t i = 0; i < rewrite->n_nodes; i++) {
        KilnNode *node = rewrite->nodes[i], *made = NULL;
        Trim part;

        nodes[n++] = node;
        if (!can_trim(node, &part))
            continue;
        if (node->op == &kiln_op_conv2d_grad_weight) {
            made = nodes[n++] = pad_gradient(rewrite, node, &part);
        } else {
            made = nodes[n - 1] = slice_weight(rewrite, node, &part);
            nodes[n++] = node;
        }
        if (made == NULL)
            return kiln_error_nomem(err, sizeof(*made));
    }
    rewrite->nodes = nodes;
    rewrite->n_nodes = n;
    return KILN_OK;
}

/* Convolutions of volumes, as sums of convolutions of images: one for each row of the kernel's
 * depth, with the depth of the volume as a batch. */
#include <inttypes.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/op_check.h"

/* Zeros read as ones. */
static int64_t or_one(int64_t n)
{
    return n != 0 ? n : 1;
}

static KilnConv conv_of(const KilnConv3d *conv)
{
    return (KilnConv) {
        .stride_hw = { or_one(conv->stride[1]), or_one(conv->stride[2]) },
        .padding_hw = { conv->padding[1], conv->padding[2] },
        .dilation_hw = { or_one(conv->dilation[1]), or_one(conv->dilation[2]) },
        .groups = conv->groups,
    };
}

/* Stride, padding and dilation along the depth; false, with the graph poisoned, if invalid. */
static bool depth_of(const char *name, KilnTensor *x, const KilnTensor *weight,
                     const KilnConv3d *conv, int64_t ret[3])
{
    const int64_t most = INT32_MAX;

    ret[0] = or_one(conv->stride[0]);
    ret[1] = conv->padding[0];
    ret[2] = or_one(conv->dilation[0]);
    if (x->shape.rank != 5 || weight->shape.rank != 5)
        kiln_graph_poison(
            x->graph, "%s: x must be [N, D, H, W, C], and the weight have 5 axes, got %d and %d",
            name, x->shape.rank, weight->shape.rank);
    else if (ret[0] < 1 || ret[0] > most || ret[1] < 0 || ret[1] > most || ret[2] < 1 ||
             ret[2] > most)
        kiln_graph_poison(x->graph,
                          "%s: stride %" PRId64 ", padding %" PRId64 " and dilation %" PRId64
                          " are not possible",
                          name, ret[0], ret[1], ret[2]);
    else
        return true;
    return false;
}

/* [N, D, H, W, C] as images [N D, H, W, C], and back. */
static KilnTensor *as_images(KilnTensor *x)
{
    const int64_t *dim = x->shape.dim;

    return kiln_reshape(x, KILN_SHAPE(dim[0] * dim[1], dim[2], dim[3], dim[4]));
}

static KilnTensor *as_volumes(KilnTensor *x, int64_t n)
{
    const int64_t *dim = x->shape.dim;

    return x->poisoned ? x : kiln_reshape(x, KILN_SHAPE(n, -1, dim[1], dim[2], dim[3]));
}

KilnTensor *kiln_conv3d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias, KilnConv3d conv)
{
    int64_t depth[3], around[KILN_MAX_RANK] = { 0 };
    KilnTensor *y = NULL;

    if (x->poisoned || weight->poisoned || !depth_of("conv3d", x, weight, &conv, depth))
        return x->graph->poison;
    const int64_t n = x->shape.dim[0], kernel = weight->shape.dim[2];
    const int64_t reach = depth[2] * (kernel - 1) + 1;
    const int64_t places = (x->shape.dim[1] + 2 * depth[1] - reach) / depth[0] + 1;

    if (x->shape.dim[1] + 2 * depth[1] < reach)
        return kiln_graph_poison(x->graph,
                                 "conv3d: a depth of %" PRId64 " with padding %" PRId64
                                 " is less than the kernel's %" PRId64,
                                 x->shape.dim[1], depth[1], reach);
    around[1] = depth[1];
    if (depth[1] > 0)
        x = kiln_pad(x, around, around, 0.0);
    for (int64_t k = 0; k < kernel; k++) {
        const int64_t first = k * depth[2], last = first + (places - 1) * depth[0];
        KilnTensor *slices = kiln_slice(x, 1, first, last + 1, depth[0]);

        if (slices->poisoned)
            return slices;
        KilnTensor *term = kiln_conv2d(as_images(slices), kiln_select(weight, 2, k),
                                       k == 0 ? bias : NULL, conv_of(&conv));
        y = y == NULL ? term : kiln_add(y, term);
    }
    return as_volumes(y, n);
}

/* Puts the slices of a volume `step` apart, from `first`, into one of depth `size` of zeros. */
static KilnTensor *spread(KilnTensor *x, int64_t first, int64_t step, int64_t size)
{
    KilnWindowAttrs attrs;

    if (x->poisoned)
        return x;
    memset(&attrs, 0, sizeof(attrs));
    kiln_shape_store(&attrs.shape, &x->shape);
    attrs.shape.dim[1] = size;
    for (int axis = 0; axis < x->shape.rank; axis++)
        attrs.step[axis] = 1;
    attrs.start[1] = first;
    attrs.step[1] = step;
    return kiln_graph_record(x->graph, &kiln_op_pad, &x, 1, &attrs);
}

KilnTensor *kiln_conv_transpose3d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                  KilnConv3d conv, const int64_t output_padding[3])
{
    int64_t depth[3];
    KilnTensor *y = NULL;

    if (x->poisoned || weight->poisoned || !depth_of("conv_transpose3d", x, weight, &conv, depth))
        return x->graph->poison;
    const int64_t n = x->shape.dim[0], kernel = weight->shape.dim[2];
    const int64_t more = output_padding != NULL ? output_padding[0] : 0;
    const int64_t size = (x->shape.dim[1] - 1) * depth[0] + depth[2] * (kernel - 1) + 1 + more;
    KilnConvTranspose flat = { .conv = conv_of(&conv) };

    if (more < 0 || more >= depth[0] || size <= 2 * depth[1])
        return kiln_graph_poison(x->graph,
                                 "conv_transpose3d: padding %" PRId64 " and output padding %" PRId64
                                 " do not fit a depth of %" PRId64,
                                 depth[1], more, size);
    if (output_padding != NULL)
        memcpy(flat.output_padding_hw, output_padding + 1, sizeof(flat.output_padding_hw));
    for (int64_t k = 0; k < kernel; k++) {
        KilnTensor *images = kiln_conv_transpose2d(as_images(x), kiln_select(weight, 2, k), NULL,
                                                   flat);
        KilnTensor *term = spread(as_volumes(images, n), k * depth[2], depth[0], size);

        y = y == NULL ? term : kiln_add(y, term);
    }
    y = kiln_slice(y, 1, depth[1], size - depth[1], 1);
    return bias != NULL ? kiln_add(y, bias) : y;
}

/* Patches of images (unfold, fold), largest elements of adaptive windows, and pixel shuffling,
 * which is made of other operations. */
#include "graph/ops/images/patches.h"

#include <inttypes.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/op_check.h"

/* ---- unfold, fold ------------------------------------------------------------------ */

static KilnStatus infer_unfold(KilnNode *node, KilnError *err)
{
    const KilnUnfoldAttrs *attrs = node->attrs;
    const KilnShape *x = &node->inputs[0]->shape;

    if (kiln_check_rank(node, 0, "the image", 4, "[N, H, W, C]", err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node),
                      &KILN_SHAPE(x->dim[0], attrs->places[0] * attrs->places[1],
                                  x->dim[3] * attrs->kernel[0] * attrs->kernel[1]));
    return KILN_OK;
}

static void gradient_unfold(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_fold, dy, 1, node->attrs);
}

static KilnStatus infer_fold(KilnNode *node, KilnError *err)
{
    const KilnUnfoldAttrs *attrs = node->attrs;
    const KilnShape *x = &node->inputs[0]->shape;
    const int64_t patch = attrs->kernel[0] * attrs->kernel[1];
    const int64_t places = attrs->places[0] * attrs->places[1];

    if (kiln_check_rank(node, 0, "the patches", 3, "[N, places, C kh kw]", err) < 0)
        return err->status;
    if (x->dim[1] != places || x->dim[2] % patch != 0)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "%" PRId64 " patches of a multiple of %" PRId64 " elements give the "
                              "image, got %" PRId64 " of %" PRId64,
                              places, patch, x->dim[1], x->dim[2]);
    kiln_infer_output(node, 0, kiln_node_float(node),
                      &KILN_SHAPE(x->dim[0], attrs->size[0], attrs->size[1], x->dim[2] / patch));
    return KILN_OK;
}

static void gradient_fold(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_unfold, dy, 1, node->attrs);
}

const KilnOp kiln_op_unfold = {
    .name = "unfold",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnUnfoldAttrs),
    .infer = infer_unfold,
    .gradient = gradient_unfold,
};

const KilnOp kiln_op_fold = {
    .name = "fold",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnUnfoldAttrs),
    .infer = infer_fold,
    .gradient = gradient_fold,
};

/* False, with the graph poisoned, if there is no place for the kernel. What products are made of is
 * bounded, so that none overflows. */
static bool attrs_of(KilnGraph *graph, const char *name, const int64_t size[2], KilnUnfold unfold,
                     KilnUnfoldAttrs *ret)
{
    const int64_t most = INT32_MAX, most_kernel = INT16_MAX;

    memset(ret, 0, sizeof(*ret));
    for (int axis = 0; axis < 2; axis++) {
        const int64_t kernel = unfold.kernel[axis], padding = unfold.padding[axis];
        const int64_t stride = unfold.stride[axis] != 0 ? unfold.stride[axis] : 1;
        const int64_t dilation = unfold.dilation[axis] != 0 ? unfold.dilation[axis] : 1;
        const bool valid = kernel >= 1 && kernel < most_kernel && stride >= 1 && dilation >= 1 &&
                           dilation < most && padding >= 0 && padding < most && size[axis] < most;
        const int64_t room = valid ? size[axis] + 2 * padding - dilation * (kernel - 1) - 1 : -1;

        if (room < 0 || room / stride >= most) {
            kiln_graph_poison(graph,
                              "%s: a kernel of %" PRId64 ", stride %" PRId64 ", dilation %" PRId64
                              " and padding %" PRId64 " do not fit a size of %" PRId64,
                              name, kernel, stride, dilation, padding, size[axis]);
            return false;
        }
        ret->size[axis] = size[axis];
        ret->places[axis] = room / stride + 1;
        ret->kernel[axis] = kernel;
        ret->stride[axis] = stride;
        ret->padding[axis] = padding;
        ret->dilation[axis] = dilation;
    }
    return true;
}

KilnTensor *kiln_unfold(KilnTensor *x, KilnUnfold unfold)
{
    const int64_t size[] = { kiln_tensor_dim(x, 1), kiln_tensor_dim(x, 2) };
    KilnUnfoldAttrs attrs;

    if (x->poisoned || !attrs_of(x->graph, "unfold", size, unfold, &attrs))
        return x->graph->poison;
    return kiln_graph_record(x->graph, &kiln_op_unfold, &x, 1, &attrs);
}

KilnTensor *kiln_fold(KilnTensor *x, KilnSize size, KilnUnfold unfold)
{
    const int64_t sizes[] = { size.height, size.width };
    KilnUnfoldAttrs attrs;

    if (x->poisoned || !attrs_of(x->graph, "fold", sizes, unfold, &attrs))
        return x->graph->poison;
    return kiln_graph_record(x->graph, &kiln_op_fold, &x, 1, &attrs);
}

/* ---- adaptive_max_pool2d -------------------------------------------------------------- */

static KilnStatus infer_adaptive_max(KilnNode *node, KilnError *err)
{
    const KilnShapeAttrs *attrs = node->attrs;

    if (kiln_check_rank(node, 0, "x", 4, "[N, H, W, C]", err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &attrs->shape);
    kiln_infer_output(node, 1, KILN_I32, &attrs->shape);
    return KILN_OK;
}

/* An image as [N, H W, C]. */
static KilnTensor *as_pixels(KilnTensor *x)
{
    return kiln_reshape(x, KILN_SHAPE(x->shape.dim[0], -1, x->shape.dim[3]));
}

static void gradient_adaptive_max(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnShape *shape = &node->inputs[0]->shape;
    KilnTensor *zero = kiln_graph_full(dy[0]->graph, *shape, 0.0);
    KilnTensor *sum = kiln_scatter_add(as_pixels(zero), 1, as_pixels(node->outputs[1]),
                                       as_pixels(dy[0]));

    dx[0] = kiln_reshape(sum, *shape);
}

const KilnOp kiln_op_adaptive_max_pool2d = {
    .name = "adaptive_max_pool2d",
    .n_inputs = 1,
    .n_outputs = 2,
    .attrs_size = sizeof(KilnShapeAttrs),
    .infer = infer_adaptive_max,
    .gradient = gradient_adaptive_max,
};

KilnTensor *kiln_adaptive_max_pool2d(KilnTensor *x, int64_t height, int64_t width)
{
    const KilnShape shape = KILN_SHAPE(kiln_tensor_dim(x, 0), height, width, kiln_tensor_dim(x, 3));
    KilnShapeAttrs attrs;

    memset(&attrs, 0, sizeof(attrs));
    kiln_shape_store(&attrs.shape, &shape);
    return kiln_graph_record(x->graph, &kiln_op_adaptive_max_pool2d, &x, 1, &attrs);
}

/* ---- Pixel shuffling -------------------------------------------------------------------- */

KilnTensor *kiln_pixel_shuffle(KilnTensor *x, int64_t r)
{
    static const int order[] = { 0, 1, 4, 2, 5, 3 };
    const KilnShape *s = &x->shape;
    char text[KILN_SHAPE_TEXT];

    if (x->poisoned)
        return x;
    if (s->rank != 4 || r < 1 || r > INT16_MAX || s->dim[3] % (r * r) != 0)
        return kiln_graph_poison(x->graph,
                                 "pixel_shuffle: expected [N, H, W, a multiple of %" PRId64
                                 " squared], got %s",
                                 r, kiln_shape_text(s, text, sizeof(text)));
    const int64_t channels = s->dim[3] / (r * r);
    KilnTensor *parts = kiln_reshape(x,
                                     KILN_SHAPE(s->dim[0], s->dim[1], s->dim[2], channels, r, r));

    return kiln_reshape(kiln_permute(parts, order),
                        KILN_SHAPE(s->dim[0], s->dim[1] * r, s->dim[2] * r, channels));
}

KilnTensor *kiln_pixel_unshuffle(KilnTensor *x, int64_t r)
{
    static const int order[] = { 0, 1, 3, 5, 2, 4 };
    const KilnShape *s = &x->shape;
    char text[KILN_SHAPE_TEXT];

    if (x->poisoned)
        return x;
    if (s->rank != 4 || r < 1 || r > INT16_MAX || s->dim[1] % r != 0 || s->dim[2] % r != 0)
        return kiln_graph_poison(x->graph,
                                 "pixel_unshuffle: expected [N, H, W, C] with H and W multiples "
                                 "of %" PRId64 ", got %s",
                                 r, kiln_shape_text(s, text, sizeof(text)));
    const int64_t height = s->dim[1] / r, width = s->dim[2] / r;
    KilnTensor *parts = kiln_reshape(x, KILN_SHAPE(s->dim[0], height, r, width, r, s->dim[3]));

    return kiln_reshape(kiln_permute(parts, order),
                        KILN_SHAPE(s->dim[0], height, width, s->dim[3] * r * r));
}

/* Resizes images: nearest and bilinear. */
#include "graph/ops/images/resample.h"

#include <inttypes.h>
#include <math.h>

#include "graph/op_check.h"
#include "graph/graph.h"

/* Uses PyTorch's arithmetic, whose rounding decides which pixel is nearest. */
static KilnSamplePoint nearest_point(int64_t in, int64_t out, int64_t i)
{
    const float scale = (float)in / (float)out;
    const int64_t low = (int64_t)floorf((float)i * scale);
    const int64_t at = low < in - 1 ? low : in - 1;

    return (KilnSamplePoint) { .low = at, .high = at };
}

KilnSamplePoint kiln_sample_point(int64_t mode, int64_t in, int64_t out, int64_t i)
{
    double at;

    if (mode == KILN_UPSAMPLE_NEAREST)
        return nearest_point(in, out, i);
    if (mode == KILN_UPSAMPLE_CORNERS)
        at = out > 1 ? (double)i * (double)(in - 1) / (double)(out - 1) : 0.0;
    else
        at = fmax(((double)i + 0.5) * (double)in / (double)out - 0.5, 0.0);
    const int64_t low = (int64_t)at < in - 1 ? (int64_t)at : in - 1;
    return (KilnSamplePoint) { .low = low,
                               .high = low < in - 1 ? low + 1 : low,
                               .weight = at - (double)low };
}

static KilnStatus infer_upsample(KilnNode *node, KilnError *err)
{
    const KilnUpsampleAttrs *attrs = node->attrs;
    const KilnShape *x = &node->inputs[0]->shape;

    if (kiln_check_rank(node, 0, "the image", 4, "[N, H, W, C]", err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node),
                      &KILN_SHAPE(x->dim[0], attrs->out[0], attrs->out[1], x->dim[3]));
    return KILN_OK;
}

static void gradient_upsample(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_upsample_grad, dy, 1, node->attrs);
}

static KilnStatus infer_upsample_grad(KilnNode *node, KilnError *err)
{
    const KilnUpsampleAttrs *attrs = node->attrs;
    const KilnShape *dy = &node->inputs[0]->shape;

    if (kiln_check_rank(node, 0, "dy", 4, "[N, H, W, C]", err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node),
                      &KILN_SHAPE(dy->dim[0], attrs->in[0], attrs->in[1], dy->dim[3]));
    return KILN_OK;
}

const KilnOp kiln_op_upsample = {
    .name = "upsample",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnUpsampleAttrs),
    .infer = infer_upsample,
    .gradient = gradient_upsample,
};

const KilnOp kiln_op_upsample_grad = {
    .name = "upsample_grad",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnUpsampleAttrs),
    .infer = infer_upsample_grad,
};

static KilnTensor *resample(KilnTensor *x, KilnSize size, KilnUpsampleMode mode)
{
    /* infer rejects a wrong rank; these values are then unused. */
    KilnUpsampleAttrs attrs = { .in = { x->shape.dim[1], x->shape.dim[2] },
                                .out = { size.height, size.width },
                                .mode = mode };

    return kiln_graph_record(x->graph, &kiln_op_upsample, &x, 1, &attrs);
}

KilnTensor *kiln_upsample_nearest(KilnTensor *x, KilnSize size)
{
    return resample(x, size, KILN_UPSAMPLE_NEAREST);
}

KilnTensor *kiln_upsample_bilinear(KilnTensor *x, KilnSize size, bool align_corners)
{
    return resample(x, size, align_corners ? KILN_UPSAMPLE_CORNERS : KILN_UPSAMPLE_BILINEAR);
}

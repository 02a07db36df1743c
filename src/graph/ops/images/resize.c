/* Resizes images by weighted sums of a window of each axis: bicubic, and with anti-aliasing. */
#include "graph/ops/images/resize.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/op_check.h"

/* ---- Weights ---------------------------------------------------------------------- */

/* Keys' cubic convolution kernel (1981). */
static double cubic(double x, double a)
{
    x = fabs(x);
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    if (x < 2.0)
        return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
    return 0.0;
}

static double triangle(double x)
{
    return fmax(1.0 - fabs(x), 0.0);
}

static double scale_of(const KilnResizeAttrs *attrs)
{
    return (double)attrs->in / (double)attrs->out;
}

/* Half the width of the window of an anti-aliased mode, in elements of x. */
static double support_of(const KilnResizeAttrs *attrs)
{
    return (attrs->mode == KILN_RESIZE_BICUBIC_AREA ? 2.0 : 1.0) * fmax(scale_of(attrs), 1.0);
}

static bool is_area(const KilnResizeAttrs *attrs)
{
    return attrs->mode == KILN_RESIZE_BICUBIC_AREA || attrs->mode == KILN_RESIZE_BILINEAR_AREA;
}

int64_t kiln_resize_window(const KilnResizeAttrs *attrs)
{
    return is_area(attrs) ? 2 * (int64_t)ceil(support_of(attrs)) + 1 : 4;
}

static int64_t area_weights(const KilnResizeAttrs *attrs, int64_t i, double *weights,
                            int64_t *ret_n)
{
    const double center = scale_of(attrs) * ((double)i + 0.5), support = support_of(attrs);
    const double shrink = fmax(scale_of(attrs), 1.0);
    const int64_t first = (int64_t)fmax(center - support + 0.5, 0.0);
    const int64_t end = (int64_t)fmin(center + support + 0.5, (double)attrs->in);
    double sum = 0.0;

    *ret_n = end - first;
    for (int64_t k = 0; k < *ret_n; k++) {
        const double x = ((double)(first + k) - center + 0.5) / shrink;

        weights[k] = attrs->mode == KILN_RESIZE_BICUBIC_AREA ? cubic(x, -0.5) : triangle(x);
        sum += weights[k];
    }
    for (int64_t k = 0; k < *ret_n; k++)
        weights[k] /= sum;
    return first;
}

/* Four elements; those past an end are the end itself. */
static int64_t cubic_weights(const KilnResizeAttrs *attrs, int64_t i, double *weights,
                             int64_t *ret_n)
{
    const bool corners = attrs->mode == KILN_RESIZE_BICUBIC_CORNERS;
    const double step = attrs->out > 1 ? (double)(attrs->in - 1) / (double)(attrs->out - 1) : 0.0;
    const double at = corners ? (double)i * step : scale_of(attrs) * ((double)i + 0.5) - 0.5;
    const int64_t middle = (int64_t)floor(at), last = attrs->in - 1;
    const int64_t first = middle < 1 ? 0 : middle - 1 < last ? middle - 1 : last;
    const int64_t end = middle + 2 < 0 ? 0 : middle + 2 < last ? middle + 2 : last;

    memset(weights, 0, 4 * sizeof(*weights));
    *ret_n = end - first + 1;
    for (int64_t source = middle - 1; source <= middle + 2; source++) {
        const int64_t clipped = source < 0 ? 0 : source > last ? last : source;

        weights[clipped - first] += cubic(at - (double)source, -0.75);
    }
    return first;
}

int64_t kiln_resize_weights(const KilnResizeAttrs *attrs, int64_t i, double *weights,
                            int64_t *ret_n)
{
    return is_area(attrs) ? area_weights(attrs, i, weights, ret_n)
                          : cubic_weights(attrs, i, weights, ret_n);
}

/* ---- The operation ---------------------------------------------------------------- */

static KilnStatus infer_resize(KilnNode *node, KilnError *err)
{
    const KilnResizeAttrs *attrs = node->attrs;
    KilnShape shape = node->inputs[0]->shape;

    if (kiln_check_rank(node, 0, "the image", 4, "[N, H, W, C]", err) < 0)
        return err->status;
    shape.dim[attrs->axis] = attrs->back != 0 ? attrs->in : attrs->out;
    kiln_infer_output(node, 0, kiln_node_float(node), &shape);
    return KILN_OK;
}

static void gradient_resize(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnResizeAttrs attrs = *(const KilnResizeAttrs *)node->attrs;

    attrs.back = attrs.back == 0;
    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_resize, dy, 1, &attrs);
}

const KilnOp kiln_op_resize = {
    .name = "resize",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnResizeAttrs),
    .infer = infer_resize,
    .gradient = gradient_resize,
};

/* Rows first, then columns. */
static KilnTensor *record_resize(KilnTensor *x, KilnSize size, KilnResizeMode mode)
{
    const int64_t sizes[] = { size.height, size.width };

    for (int axis = 1; axis <= 2 && !x->poisoned; axis++) {
        const KilnResizeAttrs attrs = {
            .axis = axis, .in = x->shape.dim[axis], .out = sizes[axis - 1], .mode = mode
        };

        x = kiln_graph_record(x->graph, &kiln_op_resize, &x, 1, &attrs);
    }
    return x;
}

KilnTensor *kiln_upsample_bicubic(KilnTensor *x, KilnSize size, bool align_corners)
{
    return record_resize(x, size,
                         align_corners ? KILN_RESIZE_BICUBIC_CORNERS : KILN_RESIZE_BICUBIC);
}

KilnTensor *kiln_resize_antialias(KilnTensor *x, KilnSize size, bool bicubic)
{
    return record_resize(x, size, bicubic ? KILN_RESIZE_BICUBIC_AREA : KILN_RESIZE_BILINEAR_AREA);
}

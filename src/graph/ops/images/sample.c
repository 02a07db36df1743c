/* Reads images between their pixels: grid_sample, roi_align; and where the samples are, which the
 * backends share. */
#include "graph/ops/images/sample.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/op_check.h"

/* ---- Positions ---------------------------------------------------------------------- */

/* Mirrors the position between `low` and `high`, which are twice the places of the mirrors. */
static double reflect(double at, double low, double high, double *slope)
{
    const double least = low / 2.0, span = (high - low) / 2.0;
    const double from = fabs(at - least);

    if (span <= 0.0) {
        *slope = 0.0;
        return 0.0;
    }
    const double turns = floor(from / span), rest = from - turns * span;
    const bool back = fmod(turns, 2.0) != 0.0;

    if ((at < least) != back)
        *slope = -*slope;
    return back ? span - rest + least : rest + least;
}

static double clip(double at, int64_t size, double *slope)
{
    const double last = (double)(size - 1);

    if (at > 0.0 && at < last)
        return at;
    *slope = 0.0;
    return at >= last ? last : 0.0; /* NaN becomes 0, as in PyTorch */
}

double kiln_grid_position(const KilnGridAttrs *attrs, double coordinate, int64_t size,
                          double *ret_slope)
{
    const bool corners = attrs->align_corners != 0;
    const double span = (double)(corners ? size - 1 : size) / 2.0;
    double at = (coordinate + 1.0) * span - (corners ? 0.0 : 0.5);

    *ret_slope = span;
    if (attrs->padding == KILN_GRID_REFLECTION)
        at = corners ? reflect(at, 0.0, 2.0 * (double)(size - 1), ret_slope)
                     : reflect(at, -1.0, 2.0 * (double)size - 1.0, ret_slope);
    return attrs->padding == KILN_GRID_ZEROS ? at : clip(at, size, ret_slope);
}

static KilnCorners no_corners(void)
{
    KilnCorners corners;

    memset(&corners, 0, sizeof(corners));
    for (int i = 0; i < 4; i++)
        corners.pixel[i] = -1;
    return corners;
}

static void set_corner(KilnCorners *corners, int i, int64_t row, int64_t column, int64_t height,
                       int64_t width)
{
    if (row >= 0 && row < height && column >= 0 && column < width)
        corners->pixel[i] = row * width + column;
}

/* Whether it is so far outside that no pixel counts; also of NaN. */
static bool is_far(double at, int64_t size)
{
    return !(at > -1.0 && at < (double)size);
}

static KilnCorners bilinear(double x, double y, int64_t height, int64_t width)
{
    KilnCorners corners = no_corners();

    if (is_far(x, width) || is_far(y, height))
        return corners;
    const int64_t left = (int64_t)floor(x), top = (int64_t)floor(y);
    const double u = x - (double)left, v = y - (double)top;

    for (int i = 0; i < 4; i++) {
        const bool right = i % 2 != 0, below = i / 2 != 0;

        corners.weight[i] = (right ? u : 1.0 - u) * (below ? v : 1.0 - v);
        corners.dx[i] = (right ? 1.0 : -1.0) * (below ? v : 1.0 - v);
        corners.dy[i] = (below ? 1.0 : -1.0) * (right ? u : 1.0 - u);
        set_corner(&corners, i, top + (below ? 1 : 0), left + (right ? 1 : 0), height, width);
    }
    return corners;
}

KilnCorners kiln_grid_corners(const KilnGridAttrs *attrs, double x, double y, int64_t height,
                              int64_t width)
{
    KilnCorners corners = no_corners();

    if (attrs->nearest == 0)
        return bilinear(x, y, height, width);
    if (is_far(x, width) || is_far(y, height))
        return corners;
    corners.weight[0] = 1.0;
    set_corner(&corners, 0, (int64_t)nearbyint(y), (int64_t)nearbyint(x), height, width);
    return corners;
}

KilnRoi kiln_roi_of(const KilnRoiAttrs *attrs, const double box[5])
{
    const double offset = attrs->aligned != 0 ? 0.5 : 0.0;
    const double left = box[1] * attrs->scale - offset, top = box[2] * attrs->scale - offset;
    double width = box[3] * attrs->scale - offset - left;
    double height = box[4] * attrs->scale - offset - top;

    if (attrs->aligned == 0) {
        width = fmax(width, 1.0);
        height = fmax(height, 1.0);
    }
    KilnRoi roi = {
        .image = box[0] >= 0.0 && box[0] < (double)attrs->image[0] ? (int64_t)box[0] : -1,
        .top = top,
        .left = left,
        .bin_height = height / (double)attrs->size[0],
        .bin_width = width / (double)attrs->size[1],
        .rows = attrs->samples,
        .columns = attrs->samples,
    };
    /* More samples than pixels of the image say nothing more. */
    if (attrs->samples == 0) {
        roi.rows = (int64_t)fmin(fmax(ceil(roi.bin_height), 0.0), (double)attrs->image[1]);
        roi.columns = (int64_t)fmin(fmax(ceil(roi.bin_width), 0.0), (double)attrs->image[2]);
    }
    return roi;
}

/* As torchvision: positions up to one pixel outside are moved to the border. */
KilnCorners kiln_roi_corners(const KilnRoiAttrs *attrs, const KilnRoi *roi, int64_t y, int64_t x,
                             int64_t row, int64_t column)
{
    const int64_t height = attrs->image[1], width = attrs->image[2];
    double at_y = roi->top +
                  ((double)y + ((double)row + 0.5) / (double)roi->rows) * roi->bin_height;
    double at_x = roi->left +
                  ((double)x + ((double)column + 0.5) / (double)roi->columns) * roi->bin_width;

    if (!(at_y >= -1.0 && at_y <= (double)height && at_x >= -1.0 && at_x <= (double)width))
        return no_corners();
    at_y = fmin(fmax(at_y, 0.0), (double)(height - 1));
    at_x = fmin(fmax(at_x, 0.0), (double)(width - 1));
    return bilinear(at_x, at_y, height, width);
}

/* ---- grid_sample ------------------------------------------------------------------------ */

static KilnStatus check_grid(const KilnNode *node, int x, KilnError *err)
{
    const KilnShape *image = &node->inputs[x]->shape, *grid = &node->inputs[x + 1]->shape;
    char text[KILN_SHAPE_TEXT];

    if (kiln_check_rank(node, x, "the image", 4, "[N, H, W, C]", err) < 0 ||
        kiln_check_rank(node, x + 1, "the grid", 4, "[N, h, w, 2]", err) < 0)
        return err->status;
    if (grid->dim[0] != image->dim[0] || grid->dim[3] != 2)
        return kiln_error_set(err, KILN_E_SHAPE, "the grid must be [N, h, w, 2], got %s",
                              kiln_shape_text(grid, text, sizeof(text)));
    return KILN_OK;
}

static KilnStatus infer_grid_sample(KilnNode *node, KilnError *err)
{
    KilnShape shape = node->inputs[1]->shape;

    if (check_grid(node, 0, err) < 0)
        return err->status;
    shape.dim[3] = node->inputs[0]->shape.dim[3];
    kiln_infer_output(node, 0, kiln_node_float(node), &shape);
    return KILN_OK;
}

static void gradient_grid_sample(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *inputs[] = { dy[0], node->inputs[0], node->inputs[1] };
    KilnTensor *first = kiln_graph_record(dy[0]->graph, &kiln_op_grid_sample_grad, inputs, 3,
                                          node->attrs);

    dx[0] = first;
    dx[1] = first->poisoned ? first : first->node->outputs[1];
}

static KilnStatus infer_grid_sample_grad(KilnNode *node, KilnError *err)
{
    if (kiln_check_rank(node, 0, "dy", 4, "[N, h, w, C]", err) < 0 || check_grid(node, 1, err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &node->inputs[1]->shape);
    kiln_infer_output(node, 1, kiln_node_float(node), &node->inputs[2]->shape);
    return KILN_OK;
}

const KilnOp kiln_op_grid_sample = {
    .name = "grid_sample",
    .n_inputs = 2,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnGridAttrs),
    .infer = infer_grid_sample,
    .gradient = gradient_grid_sample,
};

const KilnOp kiln_op_grid_sample_grad = {
    .name = "grid_sample_grad",
    .n_inputs = 3,
    .n_outputs = 2,
    .attrs_size = sizeof(KilnGridAttrs),
    .infer = infer_grid_sample_grad,
};

KilnTensor *kiln_grid_sample(KilnTensor *x, KilnTensor *grid, KilnGridSample options)
{
    const KilnGridAttrs attrs = {
        .nearest = options.nearest,
        .padding = options.padding,
        .align_corners = options.align_corners,
    };

    return kiln_graph_record(x->graph, &kiln_op_grid_sample, (KilnTensor *[]) { x, grid }, 2,
                             &attrs);
}

/* ---- roi_align --------------------------------------------------------------------------- */

static KilnStatus check_boxes(const KilnNode *node, KilnError *err)
{
    const KilnShape *boxes = &node->inputs[1]->shape;
    char text[KILN_SHAPE_TEXT];

    if (kiln_check_rank(node, 1, "the boxes", 2, "[K, 5]", err) < 0)
        return err->status;
    if (boxes->dim[1] != 5)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "boxes must be [K, 5] (image, x1, y1, x2, y2), got %s",
                              kiln_shape_text(boxes, text, sizeof(text)));
    return KILN_OK;
}

static KilnStatus infer_roi_align(KilnNode *node, KilnError *err)
{
    const KilnRoiAttrs *attrs = node->attrs;
    const KilnShape *x = &node->inputs[0]->shape;

    if (kiln_check_rank(node, 0, "the image", 4, "[N, H, W, C]", err) < 0 ||
        check_boxes(node, err) < 0)
        return err->status;
    kiln_infer_output(
        node, 0, kiln_node_float(node),
        &KILN_SHAPE(node->inputs[1]->shape.dim[0], attrs->size[0], attrs->size[1], x->dim[3]));
    return KILN_OK;
}

static void gradient_roi_align(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *inputs[] = { dy[0], node->inputs[1] };

    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_roi_align_grad, inputs, 2, node->attrs);
}

static KilnStatus infer_roi_align_grad(KilnNode *node, KilnError *err)
{
    const KilnRoiAttrs *attrs = node->attrs;

    if (kiln_check_rank(node, 0, "dy", 4, "[K, h, w, C]", err) < 0 || check_boxes(node, err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node),
                      &KILN_SHAPE(attrs->image[0], attrs->image[1], attrs->image[2],
                                  node->inputs[0]->shape.dim[3]));
    return KILN_OK;
}

const KilnOp kiln_op_roi_align = {
    .name = "roi_align",
    .n_inputs = 2,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnRoiAttrs),
    .infer = infer_roi_align,
    .gradient = gradient_roi_align,
};

const KilnOp kiln_op_roi_align_grad = {
    .name = "roi_align_grad",
    .n_inputs = 2,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnRoiAttrs),
    .infer = infer_roi_align_grad,
};

KilnTensor *kiln_roi_align(KilnTensor *x, KilnTensor *boxes, KilnRoiAlign options)
{
    const KilnRoiAttrs attrs = {
        .scale = options.spatial_scale != 0.0 ? options.spatial_scale : 1.0,
        .samples = options.sampling_ratio,
        .aligned = options.aligned,
        .size = { options.size.height, options.size.width },
        .image = { kiln_tensor_dim(x, 0), kiln_tensor_dim(x, 1), kiln_tensor_dim(x, 2) },
    };

    if (!x->poisoned && options.sampling_ratio < 0)
        return kiln_graph_poison(x->graph, "roi_align: sampling_ratio must be at least 0");
    return kiln_graph_record(x->graph, &kiln_op_roi_align, (KilnTensor *[]) { x, boxes }, 2,
                             &attrs);
}

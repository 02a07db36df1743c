/* Reference of reading images between their pixels. */
#include "backend/ref/ref.h"

/* Element c of the image at the corners, weighted by `weights`. */
static double value_at(const KilnArg *x, int64_t image, const KilnCorners *corners,
                       const double weights[4], int64_t c)
{
    const int64_t *dim = x->shape.dim;
    double sum = 0.0;

    for (int i = 0; i < 4; i++)
        if (corners->pixel[i] >= 0)
            sum += weights[i] *
                   kiln_ref_get(x, (image * dim[1] * dim[2] + corners->pixel[i]) * dim[3] + c);
    return sum;
}

/* Adds dy, times the weights, to the corners of dx. */
static void add_at(KilnArg *dx, int64_t image, const KilnCorners *corners, int64_t c, double dy)
{
    const int64_t *dim = dx->shape.dim;

    for (int i = 0; i < 4; i++) {
        const int64_t at = (image * dim[1] * dim[2] + corners->pixel[i]) * dim[3] + c;

        if (corners->pixel[i] >= 0)
            kiln_ref_set(dx, at, kiln_ref_get(dx, at) + corners->weight[i] * dy);
    }
}

static void clear(KilnArg *arg)
{
    for (int64_t i = 0; i < kiln_ref_count(arg); i++)
        kiln_ref_set(arg, i, 0.0);
}

static bool is_outside(const KilnCorners *corners)
{
    for (int i = 0; i < 4; i++)
        if (corners->pixel[i] >= 0)
            return false;
    return true;
}

/* ---- grid_sample ------------------------------------------------------------------------ */

static KilnCorners grid_corners(const KilnCall *call, const KilnArg *x, const KilnArg *grid,
                                int64_t point, double slope[2])
{
    const int64_t *dim = x->shape.dim;
    const double column = kiln_grid_position(call->attrs, kiln_ref_get(grid, 2 * point), dim[2],
                                             &slope[0]);
    const double row = kiln_grid_position(call->attrs, kiln_ref_get(grid, 2 * point + 1), dim[1],
                                          &slope[1]);

    return kiln_grid_corners(call->attrs, column, row, dim[1], dim[2]);
}

static void grid_sample_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0], *grid = &call->inputs[1];
    const int64_t channels = x->shape.dim[3], points = kiln_ref_rows(&call->outputs[0]);
    double slope[2];

    for (int64_t point = 0; point < points; point++) {
        const KilnCorners corners = grid_corners(call, x, grid, point, slope);
        const int64_t image = point / (points / x->shape.dim[0]);

        for (int64_t c = 0; c < channels; c++)
            kiln_ref_set(&call->outputs[0], point * channels + c,
                         value_at(x, image, &corners, corners.weight, c));
    }
}

static void grid_sample_grad_run(KilnCall *call)
{
    const KilnArg *dy = &call->inputs[0], *x = &call->inputs[1], *grid = &call->inputs[2];
    const int64_t channels = x->shape.dim[3], points = kiln_ref_rows(dy);
    double slope[2];

    clear(&call->outputs[0]);
    for (int64_t point = 0; point < points; point++) {
        const KilnCorners corners = grid_corners(call, x, grid, point, slope);
        const int64_t image = point / (points / x->shape.dim[0]);
        double by_column = 0.0, by_row = 0.0;

        /* A point outside of the image has no gradient, even of NaN (as PyTorch). */
        for (int64_t c = 0; c < channels && !is_outside(&corners); c++) {
            const double d = kiln_ref_get(dy, point * channels + c);

            add_at(&call->outputs[0], image, &corners, c, d);
            by_column += d * value_at(x, image, &corners, corners.dx, c);
            by_row += d * value_at(x, image, &corners, corners.dy, c);
        }
        kiln_ref_set(&call->outputs[1], 2 * point, by_column * slope[0]);
        kiln_ref_set(&call->outputs[1], 2 * point + 1, by_row * slope[1]);
    }
}

/* ---- roi_align ---------------------------------------------------------------------------- */

static KilnRoi roi_at(const KilnCall *call, int64_t k)
{
    double box[5];

    for (int i = 0; i < 5; i++)
        box[i] = kiln_ref_get(&call->inputs[1], 5 * k + i);
    return kiln_roi_of(call->attrs, box);
}

/* The mean over the samples of bin (y, x) of box k, of channel c; or, with dx, the share of dy. */
static double bin(const KilnCall *call, int64_t place, int64_t c, KilnArg *dx, double dy)
{
    const KilnRoiAttrs *attrs = call->attrs;
    const int64_t x = place % attrs->size[1], y = place / attrs->size[1] % attrs->size[0];
    const KilnRoi roi = roi_at(call, place / attrs->size[1] / attrs->size[0]);
    const double count = (double)(roi.rows * roi.columns);
    double sum = 0.0;

    for (int64_t i = 0; i < roi.rows * roi.columns && roi.image >= 0; i++) {
        const KilnCorners corners = kiln_roi_corners(attrs, &roi, y, x, i / roi.columns,
                                                     i % roi.columns);

        if (dx != NULL)
            add_at(dx, roi.image, &corners, c, dy / count);
        else
            sum += value_at(&call->inputs[0], roi.image, &corners, corners.weight, c);
    }
    return count > 0.0 ? sum / count : 0.0;
}

static void roi_align_run(KilnCall *call)
{
    const int64_t channels = kiln_ref_columns(&call->outputs[0]);

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++)
        kiln_ref_set(&call->outputs[0], i, bin(call, i / channels, i % channels, NULL, 0.0));
}

static void roi_align_grad_run(KilnCall *call)
{
    const KilnArg *dy = &call->inputs[0];
    const int64_t channels = kiln_ref_columns(dy);

    clear(&call->outputs[0]);
    for (int64_t i = 0; i < kiln_ref_count(dy); i++)
        bin(call, i / channels, i % channels, &call->outputs[0], kiln_ref_get(dy, i));
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_grid_sample, .run = grid_sample_run },
    { .op = &kiln_op_grid_sample_grad, .run = grid_sample_grad_run },
    { .op = &kiln_op_roi_align, .run = roi_align_run },
    { .op = &kiln_op_roi_align_grad, .run = roi_align_grad_run },
};

const KilnRefTable kiln_ref_sample = { kernels, KILN_COUNT(kernels) };

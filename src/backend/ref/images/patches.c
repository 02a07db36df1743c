/* Reference of patches of images and largest elements of adaptive windows. */
#include <math.h>

#include "backend/ref/ref.h"

/* ---- unfold, fold ------------------------------------------------------------------- */

/* The element of the image [N, H, W, channels] that element i of the patches shows; -1: padding. */
static int64_t pixel_of(const KilnUnfoldAttrs *attrs, int64_t i, int64_t channels)
{
    const int64_t kw = i % attrs->kernel[1], kh = i / attrs->kernel[1] % attrs->kernel[0];
    const int64_t rest = i / (attrs->kernel[0] * attrs->kernel[1]);
    const int64_t c = rest % channels, place = rest / channels;
    const int64_t column = place % attrs->places[1], row = place / attrs->places[1];
    const int64_t n = row / attrs->places[0];
    const int64_t y = row % attrs->places[0] * attrs->stride[0] - attrs->padding[0] +
                      kh * attrs->dilation[0];
    const int64_t x = column * attrs->stride[1] - attrs->padding[1] + kw * attrs->dilation[1];

    if (y < 0 || y >= attrs->size[0] || x < 0 || x >= attrs->size[1])
        return -1;
    return ((n * attrs->size[0] + y) * attrs->size[1] + x) * channels + c;
}

static void unfold_run(KilnCall *call)
{
    const int64_t channels = kiln_ref_columns(&call->inputs[0]);

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++) {
        const int64_t from = pixel_of(call->attrs, i, channels);

        kiln_ref_set(&call->outputs[0], i, from >= 0 ? kiln_ref_get(&call->inputs[0], from) : 0.0);
    }
}

static void fold_run(KilnCall *call)
{
    const int64_t channels = kiln_ref_columns(&call->outputs[0]);
    KilnArg *y = &call->outputs[0];

    for (int64_t i = 0; i < kiln_ref_count(y); i++)
        kiln_ref_set(y, i, 0.0);
    for (int64_t i = 0; i < kiln_ref_count(&call->inputs[0]); i++) {
        const int64_t to = pixel_of(call->attrs, i, channels);

        if (to >= 0)
            kiln_ref_set(y, to, kiln_ref_get(y, to) + kiln_ref_get(&call->inputs[0], i));
    }
}

/* ---- adaptive_max_pool2d --------------------------------------------------------------- */

static void adaptive_max_run(KilnCall *call)
{
    const int64_t *in = call->inputs[0].shape.dim, *out = call->outputs[0].shape.dim;

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++) {
        const int64_t c = i % out[3], column = i / out[3] % out[2];
        const int64_t row = i / out[3] / out[2] % out[1], n = i / out[3] / out[2] / out[1];
        double most = -INFINITY;
        int64_t best = -1;

        for (int64_t y = row * in[1] / out[1]; y * out[1] < (row + 1) * in[1]; y++)
            for (int64_t x = column * in[2] / out[2]; x * out[2] < (column + 1) * in[2]; x++) {
                const int64_t pixel = y * in[2] + x;
                const double value = kiln_ref_get(&call->inputs[0],
                                                  (n * in[1] * in[2] + pixel) * in[3] + c);

                if (best < 0 || value > most || (isnan(value) && !isnan(most))) {
                    best = pixel;
                    most = value;
                }
            }
        kiln_ref_set(&call->outputs[0], i, most);
        kiln_ref_set(&call->outputs[1], i, (double)best);
    }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_unfold, .run = unfold_run },
    { .op = &kiln_op_fold, .run = fold_run },
    { .op = &kiln_op_adaptive_max_pool2d, .run = adaptive_max_run },
};

const KilnRefTable kiln_ref_patches = { kernels, KILN_COUNT(kernels) };

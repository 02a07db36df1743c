/* Patches of images, and largest elements of adaptive windows. Threads split the output's rows. */
#include "backend/cpu/cpu.h"

#include <math.h>
#include <string.h>

/* ---- unfold, fold ------------------------------------------------------------------- */

/* The pixel under position k of the kernel at a place along an axis; -1: padding. */
static int64_t pixel_at(const KilnUnfoldAttrs *attrs, int axis, int64_t place, int64_t k)
{
    const int64_t at = place * attrs->stride[axis] - attrs->padding[axis] +
                       k * attrs->dilation[axis];

    return at >= 0 && at < attrs->size[axis] ? at : -1;
}

/* Patches [begin, end) of all images. */
static void unfold_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    const KilnUnfoldAttrs *attrs = call->attrs;
    const int64_t channels = kiln_cpu_columns(&call->inputs[0]);
    const int64_t area = attrs->kernel[0] * attrs->kernel[1];

    for (int64_t patch = begin; patch < end; patch++) {
        const int64_t column = patch % attrs->places[1], row = patch / attrs->places[1];
        const int64_t image = row / attrs->places[0] * attrs->size[0];
        float *to = (float *)call->outputs[0].data + patch * channels * area;

        for (int64_t k = 0; k < area; k++) {
            const int64_t y = pixel_at(attrs, 0, row % attrs->places[0], k / attrs->kernel[1]);
            const int64_t x = pixel_at(attrs, 1, column, k % attrs->kernel[1]);
            const bool inside = y >= 0 && x >= 0;
            const float *from = (const float *)call->inputs[0].data +
                                (inside ? ((image + y) * attrs->size[1] + x) * channels : 0);

            for (int64_t c = 0; c < channels; c++)
                to[c * area + k] = inside ? from[c] : 0.0f;
        }
    }
}

static void unfold_run(KilnCall *call)
{
    const KilnArg *y = &call->outputs[0];

    kiln_parallel(call->backend->threads, kiln_cpu_rows(y), 8192 / (kiln_cpu_columns(y) + 1) + 1, 1,
                  unfold_part, call);
}

/* The place along an axis at which position k of the kernel shows the pixel; -1: none. */
static int64_t place_of(const KilnUnfoldAttrs *attrs, int axis, int64_t pixel, int64_t k)
{
    const int64_t at = pixel + attrs->padding[axis] - k * attrs->dilation[axis];
    const int64_t place = at / attrs->stride[axis];

    return at >= 0 && at % attrs->stride[axis] == 0 && place < attrs->places[axis] ? place : -1;
}

/* Pixels [begin, end) of all images; each gathers its terms. */
static void fold_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    const KilnUnfoldAttrs *attrs = call->attrs;
    const int64_t channels = kiln_cpu_columns(&call->outputs[0]);
    const int64_t area = attrs->kernel[0] * attrs->kernel[1];

    for (int64_t pixel = begin; pixel < end; pixel++) {
        const int64_t x = pixel % attrs->size[1], y = pixel / attrs->size[1];
        float *to = (float *)call->outputs[0].data + pixel * channels;

        memset(to, 0, (size_t)channels * sizeof(*to));
        for (int64_t k = area - 1; k >= 0; k--) {
            const int64_t row = place_of(attrs, 0, y % attrs->size[0], k / attrs->kernel[1]);
            const int64_t column = place_of(attrs, 1, x, k % attrs->kernel[1]);

            if (row < 0 || column < 0)
                continue;
            const int64_t patch = (y / attrs->size[0] * attrs->places[0] + row) * attrs->places[1] +
                                  column;
            const float *from = (const float *)call->inputs[0].data + patch * channels * area + k;

            for (int64_t c = 0; c < channels; c++)
                to[c] += from[c * area];
        }
    }
}

static void fold_run(KilnCall *call)
{
    const KilnArg *y = &call->outputs[0];

    kiln_parallel(call->backend->threads, kiln_cpu_rows(y), 2048 / (kiln_cpu_columns(y) + 1) + 1, 1,
                  fold_part, call);
}

/* ---- adaptive_max_pool2d --------------------------------------------------------------- */

/* All channels of one window, whose sides are [top, bottom) and [left, right). */
static void largest_of(const float *image, const int64_t *in, const int64_t sides[4], float *y,
                       int32_t *index)
{
    for (int64_t row = sides[0]; row < sides[1]; row++)
        for (int64_t column = sides[2]; column < sides[3]; column++) {
            const int64_t pixel = row * in[2] + column;
            const float *x = image + pixel * in[3];
            const bool first = row == sides[0] && column == sides[2];

            for (int64_t c = 0; c < in[3]; c++)
                if (first || x[c] > y[c] || (isnan(x[c]) && !isnan(y[c]))) {
                    y[c] = x[c];
                    index[c] = (int32_t)pixel;
                }
        }
}

static void adaptive_max_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    const int64_t *in = call->inputs[0].shape.dim, *out = call->outputs[0].shape.dim;

    for (int64_t place = begin; place < end; place++) {
        const int64_t column = place % out[2], row = place / out[2] % out[1];
        const int64_t n = place / out[2] / out[1];
        const int64_t sides[] = { row * in[1] / out[1], ((row + 1) * in[1] + out[1] - 1) / out[1],
                                  column * in[2] / out[2],
                                  ((column + 1) * in[2] + out[2] - 1) / out[2] };

        largest_of((const float *)call->inputs[0].data + n * in[1] * in[2] * in[3], in, sides,
                   (float *)call->outputs[0].data + place * in[3],
                   (int32_t *)call->outputs[1].data + place * in[3]);
    }
}

static void adaptive_max_run(KilnCall *call)
{
    const int64_t places = kiln_cpu_rows(&call->outputs[0]);
    const int64_t work = kiln_cpu_count(&call->inputs[0]) / places + 1;

    kiln_parallel(call->backend->threads, places, 8192 / work + 1, 1, adaptive_max_part, call);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_unfold, .run = unfold_run },
    { .op = &kiln_op_fold, .run = fold_run },
    { .op = &kiln_op_adaptive_max_pool2d, .run = adaptive_max_run },
};

const KilnCpuTable kiln_cpu_patches = { kernels, KILN_COUNT(kernels) };

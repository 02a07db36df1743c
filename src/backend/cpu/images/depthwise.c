/* Gradients of the weights of depthwise convolutions: each item sums up some channels over all
 * images, row by row, while the rows are in cache. */
#include "backend/cpu/images/depthwise.h"

#include <string.h>

#include "backend/cpu/isa/images/depthwise.h"
#include "backend/cpu/winograd/tiles.h"

enum { TAPS = KILN_DEPTHWISE_TAPS, MOST_LANES = 16 };

typedef struct Work {
    const KilnDepthwiseLoops *loops;
    const KilnConvAttrs *attrs;
    KilnWinogradImages dy, x;
    float *dw; /* [channels, 1, kernel[0], kernel[1]] */
    int64_t images, kernel[2];
    int64_t parts; /* 1, or kernel[0]: each item has one row of the kernel */
} Work;

static bool takes(const KilnCall *call)
{
    const KilnConvAttrs *attrs = call->attrs;
    const int64_t *dim = call->outputs[0].shape.dim;
    const int64_t channels = call->inputs[1].shape.dim[3];

    return attrs->groups == channels && dim[0] == channels && channels > 1 &&
           channels % kiln_cpu(call)->loops->depthwise->width == 0 && dim[2] <= TAPS &&
           dim[3] <= TAPS && (dim[2] > 3 || dim[3] > 3) && attrs->dilation[0] == 1 &&
           attrs->dilation[1] == 1 && call->inputs[0].dtype == KILN_F32 &&
           call->inputs[1].dtype == KILN_F32 && call->outputs[0].dtype == KILN_F32;
}

/* Channel c of an image's first pixel. */
static const float *plane(const KilnWinogradImages *images, int64_t image, int64_t c)
{
    const int64_t pixels = images->height * images->width;

    return images->data + (image * images->channels + c / images->block * images->block) * pixels +
           c % images->block;
}

/* Add what an image gives to the rows begin ... end - 1 of the kernels from channel c on. */
static void add_image(const Work *w, int64_t image, int64_t c, int64_t begin, int64_t end,
                      float *sums)
{
    const float *dy = plane(&w->dy, image, c), *x = plane(&w->x, image, c);
    KilnDepthwiseRow row = { .dy_pixels = w->dy.width,
                             .x_pixels = w->x.width,
                             .dy_step = w->dy.block,
                             .x_step = w->x.block,
                             .stride = w->attrs->stride[1],
                             .padding = w->attrs->padding[1],
                             .taps = w->kernel[1] };

    for (int64_t y = 0; y < w->dy.height; y++)
        for (int64_t r = begin; r < end; r++) {
            const int64_t at = y * w->attrs->stride[0] + r - w->attrs->padding[0];

            if (at < 0 || at >= w->x.height)
                continue;
            row.dy = dy + y * w->dy.width * w->dy.block;
            row.x = x + at * w->x.width * w->x.block;
            w->loops->weight_row(&row, sums + r * w->kernel[1] * w->loops->width);
        }
}

static void sum_up(void *context, KilnShares *shares)
{
    const Work *w = context;
    const int width = w->loops->width;
    float sums[TAPS * TAPS * MOST_LANES];

    for (int64_t i; (i = kiln_next_item(shares)) >= 0;) {
        const int64_t c = i / w->parts * width, rows = w->kernel[0] / w->parts;
        const int64_t begin = i % w->parts * rows, end = begin + rows;

        memset(sums, 0, sizeof(sums));
        for (int64_t image = 0; image < w->images; image++)
            add_image(w, image, c, begin, end, sums);
        for (int64_t tap = begin * w->kernel[1]; tap < end * w->kernel[1]; tap++)
            for (int lane = 0; lane < width; lane++)
                w->dw[(c + lane) * w->kernel[0] * w->kernel[1] + tap] = sums[tap * width + lane];
    }
}

KilnStatus kiln_depthwise_weight_prepare(KilnCall *call, bool *ret_taken, KilnError *err)
{
    KilnStatus status = KILN_OK;

    *ret_taken = takes(call);
    for (int i = 0; i < 2 && *ret_taken && status == KILN_OK; i++)
        status = kiln_winograd_layout(call, &call->inputs[i], err);
    return status;
}

bool kiln_depthwise_weight_run(KilnCall *call)
{
    const int threads = call->backend->threads;
    const int64_t *dim = call->outputs[0].shape.dim;
    Work w = { .loops = kiln_cpu(call)->loops->depthwise,
               .attrs = call->attrs,
               .dw = call->outputs[0].data,
               .images = call->inputs[0].shape.dim[0],
               .kernel = { dim[2], dim[3] },
               .parts = 1 };

    if (!takes(call))
        return false;
    w.dy = kiln_winograd_images(call, &call->inputs[0]);
    w.x = kiln_winograd_images(call, &call->inputs[1]);
    if (dim[0] / w.loops->width < 2 * (int64_t)threads)
        w.parts = dim[2];
    kiln_parallel_items(threads, dim[0] / w.loops->width * w.parts, sum_up, &w);
    return true;
}

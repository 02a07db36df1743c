/* Dropout in plain order and in blocks of channels. */
#include "backend/cpu/cpu.h"

#include <math.h>
#include <string.h>

#include "base/min.h"

enum { RUN = 64 };

static const float *input(const KilnCall *call, int64_t begin)
{
    return (const float *)call->inputs[0].data + begin;
}

static float *output(const KilnCall *call, int64_t begin)
{
    return (float *)call->outputs[0].data + begin;
}

/* That of input 2, if there is one; NaN if it is out of range. */
static double rate_of(const KilnCall *call)
{
    const KilnDropoutAttrs *attrs = call->attrs;

    if (call->inputs[2].absent)
        return attrs->p;

    const double p = (double)*(const float *)call->inputs[2].data;

    return p >= 0.0 && p < 1.0 ? p : NAN;
}

static KilnDropoutLoop dropout_loop(const KilnCall *call)
{
    const KilnDropoutAttrs *attrs = call->attrs;
    const int32_t *key = call->inputs[1].data;
    const double p = rate_of(call);

    return (KilnDropoutLoop) {
        .key = { (uint32_t)key[0], (uint32_t)key[1] },
        .stream = (uint64_t)attrs->stream,
        .threshold = isnan(p) ? 0 : (uint32_t)ceil(p * 0x1p24),
        .scale = (float)(1.0 / (1.0 - p)),
    };
}

static void dropout_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnDropoutLoop loop = dropout_loop(call);

    kiln_cpu(call)->loops->dropout(output(call, begin), (uint8_t *)call->outputs[1].data + begin,
                                   input(call, begin), &loop, begin, end);
}

/* An image in blocks of channels. */
typedef struct Image {
    KilnCall *call;
    KilnDropoutLoop loop;
    int64_t pixels, channels, block; /* pixels of an image */
} Image;

/* Channels [c, c + n) of a pixel, whole blocks of them. The mask is a function of the element's
 * number in plain order. */
static void run_of(const Image *d, int64_t pixel, int64_t c, int64_t n)
{
    const int64_t image = pixel / d->pixels, element = pixel * d->channels + c;
    const int64_t first = (image * d->channels + c) * d->pixels + pixel % d->pixels * d->block;
    const int64_t next = d->pixels * d->block;
    const size_t bytes = (size_t)d->block * sizeof(float);
    float x[RUN], y[RUN];
    uint8_t mask[RUN];

    for (int64_t i = 0, at = first; i < n; i += d->block, at += next)
        memcpy(x + i, input(d->call, at), bytes);
    kiln_cpu(d->call)->loops->dropout(y, mask, x, &d->loop, element, element + n);
    for (int64_t i = 0, at = first; i < n; i += d->block, at += next) {
        memcpy(output(d->call, at), y + i, bytes);
        memcpy((uint8_t *)d->call->outputs[1].data + at, mask + i, (size_t)d->block);
    }
}

static void dropout_pixels(void *context, int64_t begin, int64_t end)
{
    const Image *d = context;

    for (int64_t pixel = begin; pixel < end; pixel++)
        for (int64_t c = 0; c < d->channels; c += RUN)
            run_of(d, pixel, c, kiln_min_i64(d->channels - c, RUN));
}

static void dropout_run(KilnCall *call)
{
    const KilnArg *y = &call->outputs[0];
    const int64_t *dim = y->shape.dim;
    const int64_t block = kiln_layout_block(&kiln_cpu(call)->dnnl, y->layout, &y->shape);

    if (block == 0) {
        kiln_cpu_each(call, kiln_cpu_count(y), dropout_part);
        return;
    }

    Image image = { .call = call,
                    .loop = dropout_loop(call),
                    .pixels = dim[1] * dim[2],
                    .channels = dim[3],
                    .block = block };

    kiln_parallel(call->backend->threads, dim[0] * image.pixels, 16384 / dim[3] + 1, 1,
                  dropout_pixels, &image);
}

static KilnStatus dropout_prepare(KilnCall *call, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnArg *y = &call->outputs[0], *mask = &call->outputs[1];
    const int64_t block = y->fixed || mask->fixed ? 0
                                                  : kiln_layout_whole_block(dnnl, &call->inputs[0]);
    KilnStatus status = kiln_layout_set_block(dnnl, &call->inputs[0], block, err);

    call->inputs[1].layout = call->inputs[2].layout = KILN_PLAIN;
    if (status == KILN_OK)
        status = kiln_layout_set_block(dnnl, y, block, err);
    if (status == KILN_OK)
        status = kiln_layout_set_block(dnnl, mask, block, err);
    kiln_output_layout(dnnl, y, y->layout);
    kiln_output_layout(dnnl, mask, mask->layout);
    return status;
}

/* ---- Gradient ------------------------------------------------------------------- */

static void dropout_grad_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const uint8_t *mask = call->inputs[1].data;
    const float scale = (float)(1.0 / (1.0 - rate_of(call)));

    kiln_cpu(call)->loops->dropout_grad(output(call, begin), input(call, begin), mask + begin,
                                        scale, end - begin);
}

static void dropout_grad_run(KilnCall *call)
{
    kiln_cpu_each(call, kiln_cpu_count(&call->outputs[0]), dropout_grad_part);
}

/* Gradients take the layout of the mask, which the forward pass chose. */
static KilnStatus dropout_grad_prepare(KilnCall *call, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnArg *dx = &call->outputs[0];
    const int64_t block = dx->fixed ? 0 : kiln_layout_whole_block(dnnl, &call->inputs[1]);
    KilnStatus status = kiln_layout_set_block(dnnl, &call->inputs[0], block, err);

    call->inputs[2].layout = KILN_PLAIN;
    if (status == KILN_OK)
        status = kiln_layout_set_block(dnnl, &call->inputs[1], block, err);
    if (status == KILN_OK)
        status = kiln_layout_set_block(dnnl, dx, block, err);
    kiln_output_layout(dnnl, dx, dx->layout);
    return status;
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_dropout, .prepare = dropout_prepare, .run = dropout_run, .in_place = 1 },
    { .op = &kiln_op_dropout_grad,
      .prepare = dropout_grad_prepare,
      .run = dropout_grad_run,
      .in_place = 1 },
};

const KilnCpuTable kiln_cpu_dropout = { kernels, KILN_COUNT(kernels) };

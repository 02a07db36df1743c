/* Convolutions of f64 as products by OpenBLAS: the pixels that each place of the result reads
 * become a row of a matrix (im2col; Chellapilla et al. 2006), some rows at a time. Images are [N,
 * H, W, C], weights [O, I/groups, kh, kw]. */
#include <string.h>

#include "backend/cpu/blas.h"
#include "backend/cpu/f64/f64.h"
#include "backend/ref/ref.h"
#include "base/min.h"

enum { PATCHES = 1 << 17 }; /* doubles of patches at a time, unless one row has more */

/* A convolution x -> y, whichever of x, weight and y is computed. */
typedef struct Conv {
    const KilnConvAttrs *attrs;
    const KilnShape *x, *weight, *y;
    int64_t taps, in, out;    /* of the kernel; channels of a group */
    int64_t depth;            /* of a product: taps * in */
    int64_t places, together; /* of an image of y; so many are computed at a time */
    int64_t weights;          /* of all groups */
    int threads;
} Conv;

static Conv conv_of(const KilnCall *call, const KilnArg *x, const KilnArg *weight, const KilnArg *y)
{
    Conv conv = { .attrs = call->attrs,
                  .x = &x->shape,
                  .weight = &weight->shape,
                  .y = &y->shape,
                  .taps = weight->shape.dim[2] * weight->shape.dim[3],
                  .in = weight->shape.dim[1],
                  .places = y->shape.dim[1] * y->shape.dim[2],
                  .weights = kiln_shape_count(&weight->shape),
                  .threads = call->backend->threads };

    conv.out = weight->shape.dim[0] / conv.attrs->groups;
    conv.depth = conv.taps * conv.in;
    conv.together = kiln_min_i64(conv.places, PATCHES / conv.depth + 1);
    return conv;
}

/* Doubles of patches that a thread needs. */
static int64_t patches_of(const Conv *conv)
{
    return conv->together * conv->depth;
}

/* ---- Weights, with the channels of a tap side by side ---------------------------------- */

/* [O, I, taps] to [O, taps, I], or back. */
static void swap_axes(double *to, const double *from, int64_t out, int64_t rows, int64_t columns)
{
    for (int64_t o = 0; o < out; o++, to += rows * columns, from += rows * columns)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++)
                to[c * rows + r] = from[r * columns + c];
}

/* ---- Patches ---------------------------------------------------------------------------- */

/* The pixel of x under a tap at a place of y; -1: it is in the padding. */
static int64_t pixel_at(const Conv *conv, int64_t place, int64_t tap)
{
    const KilnConvAttrs *attrs = conv->attrs;
    const int64_t across = conv->y->dim[2], kw = conv->weight->dim[3];
    const int64_t y = place / across * attrs->stride[0] + tap / kw * attrs->dilation[0] -
                      attrs->padding[0];
    const int64_t x = place % across * attrs->stride[1] + tap % kw * attrs->dilation[1] -
                      attrs->padding[1];

    return y >= 0 && y < conv->x->dim[1] && x >= 0 && x < conv->x->dim[2] ? y * conv->x->dim[2] + x
                                                                          : -1;
}

/* Copies the patches of `count` places of an image, from a group's first channel on. */
static void gather(const Conv *conv, const double *image, int64_t first, int64_t count,
                   double *patches)
{
    const size_t bytes = (size_t)conv->in * sizeof(double);

    for (int64_t place = first; place < first + count; place++)
        for (int64_t tap = 0; tap < conv->taps; tap++, patches += conv->in) {
            const int64_t pixel = pixel_at(conv, place, tap);

            if (pixel >= 0)
                memcpy(patches, image + pixel * conv->x->dim[3], bytes);
            else
                memset(patches, 0, bytes);
        }
}

/* Adds the patches to the image. */
static void scatter(const Conv *conv, double *image, int64_t first, int64_t count,
                    const double *patches)
{
    for (int64_t place = first; place < first + count; place++)
        for (int64_t tap = 0; tap < conv->taps; tap++, patches += conv->in) {
            const int64_t pixel = pixel_at(conv, place, tap);
            double *to = image + (pixel >= 0 ? pixel : 0) * conv->x->dim[3];

            for (int64_t i = 0; pixel >= 0 && i < conv->in; i++)
                to[i] += patches[i];
        }
}

/* ---- Images shared between threads ------------------------------------------------------- */

typedef struct Job Job;
/* Some places of one group of an image: x and y begin at the group's channels, y at the first
 * place. */
typedef void Piece(const Job *job, double *x, double *y, int64_t group, int64_t part, int64_t first,
                   int64_t count);

struct Job {
    Conv conv;
    Piece *piece;
    double *x, *y;
    double *weight;  /* [O, taps, I]; of grad_weight: one for each part */
    double *patches; /* of each thread */
};

static void run_image(const Job *job, int64_t n, int64_t part)
{
    const Conv *conv = &job->conv;
    double *x = job->x + n * conv->x->dim[1] * conv->x->dim[2] * conv->x->dim[3];
    double *y = job->y + n * conv->places * conv->y->dim[3];

    for (int64_t group = 0; group < conv->attrs->groups; group++)
        for (int64_t first = 0; first < conv->places; first += conv->together)
            job->piece(job, x + group * conv->in, y + first * conv->y->dim[3] + group * conv->out,
                       group, part, first, kiln_min_i64(conv->together, conv->places - first));
}

/* Images are divided into a part for each thread, so that sums over a part are reproducible. */
static void run_parts(void *context, KilnShares *shares)
{
    const Job *job = context;
    const int64_t images = job->conv.x->dim[0], parts = job->conv.threads;

    for (int64_t part; (part = kiln_next_item(shares)) >= 0;)
        for (int64_t n = images * part / parts; n < images * (part + 1) / parts; n++)
            run_image(job, n, part);
}

static void run_job(Job *job)
{
    kiln_parallel_items(job->conv.threads, job->conv.threads, run_parts, job);
}

static double *own_patches(const Job *job)
{
    return job->patches + kiln_thread() * patches_of(&job->conv);
}

static double *group_weight(const Job *job, int64_t group)
{
    return job->weight + group * job->conv.out * job->conv.depth;
}

static void add_bias(const KilnCall *call)
{
    const KilnArg *bias = &call->inputs[2], *y = &call->outputs[0];
    const int64_t columns = kiln_cpu_columns(y), count = kiln_cpu_count(y);
    double *values = y->data;

    for (int64_t i = 0; !bias->absent && i < count; i++)
        values[i] += ((const double *)bias->data)[i % columns];
}

/* The residual and the activation that were folded into the convolution. */
static void finish(const KilnCall *call)
{
    const KilnConvAttrs *attrs = call->attrs;
    const KilnArg *more = &call->inputs[3], *y = &call->outputs[0];
    double *values = y->data;

    for (int64_t i = 0; i < kiln_cpu_count(y); i++) {
        if (!more->absent)
            values[i] += ((const double *)more->data)[i];
        if (attrs->activation.code != KILN_MAP_NUMBER)
            values[i] = kiln_ref_step(&attrs->activation, values[i], 0.0, 0.0);
    }
}

/* ---- The kernels ---------------------------------------------------------------------------- */

static void forward(const Job *job, double *x, double *y, int64_t group, int64_t part,
                    int64_t first, int64_t count)
{
    const Conv *conv = &job->conv;
    const KilnGemm gemm = { .m = count,
                            .n = conv->out,
                            .k = conv->depth,
                            .lda = conv->depth,
                            .ldb = conv->depth,
                            .ldc = conv->y->dim[3],
                            .transpose_b = true,
                            .alpha = 1.0f };
    double *patches = own_patches(job);

    (void)part;
    gather(conv, x, first, count, patches);
    kiln_blas_product(&gemm, KILN_F64, patches, group_weight(job, group), y);
}

static void input_gradient(const Job *job, double *x, double *y, int64_t group, int64_t part,
                           int64_t first, int64_t count)
{
    const Conv *conv = &job->conv;
    const KilnGemm gemm = { .m = count,
                            .n = conv->depth,
                            .k = conv->out,
                            .lda = conv->y->dim[3],
                            .ldb = conv->depth,
                            .ldc = conv->depth,
                            .alpha = 1.0f };
    double *patches = own_patches(job);

    (void)part;
    kiln_blas_product(&gemm, KILN_F64, y, group_weight(job, group), patches);
    scatter(conv, x, first, count, patches);
}

static void weight_gradient(const Job *job, double *x, double *y, int64_t group, int64_t part,
                            int64_t first, int64_t count)
{
    const Conv *conv = &job->conv;
    const KilnGemm gemm = { .m = conv->out,
                            .n = conv->depth,
                            .k = count,
                            .lda = conv->y->dim[3],
                            .ldb = conv->depth,
                            .ldc = conv->depth,
                            .transpose_a = true,
                            .alpha = 1.0f,
                            .beta = 1.0f };
    double *patches = own_patches(job);

    gather(conv, x, first, count, patches);
    kiln_blas_product(&gemm, KILN_F64, y, patches, group_weight(job, group) + part * conv->weights);
}

static void conv2d_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0], *weight = &call->inputs[1], *y = &call->outputs[0];
    Job job = { .conv = conv_of(call, x, weight, y),
                .piece = forward,
                .x = x->data,
                .y = y->data,
                .weight = call->workspace };
    const Conv *conv = &job.conv;

    job.patches = job.weight + conv->weights;
    swap_axes(job.weight, weight->data, weight->shape.dim[0], conv->in, conv->taps);
    run_job(&job);
    add_bias(call);
    finish(call);
}

static void grad_input_run(KilnCall *call)
{
    const KilnArg *dy = &call->inputs[0], *weight = &call->inputs[1], *dx = &call->outputs[0];
    Job job = { .conv = conv_of(call, dx, weight, dy),
                .piece = input_gradient,
                .x = dx->data,
                .y = dy->data,
                .weight = call->workspace };
    const Conv *conv = &job.conv;

    job.patches = job.weight + conv->weights;
    swap_axes(job.weight, weight->data, weight->shape.dim[0], conv->in, conv->taps);
    memset(dx->data, 0, dx->bytes);
    run_job(&job);
}

static void conv_transpose2d_run(KilnCall *call)
{
    grad_input_run(call);
    add_bias(call);
}

static void grad_weight_run(KilnCall *call)
{
    const KilnArg *dy = &call->inputs[0], *x = &call->inputs[1], *dweight = &call->outputs[0];
    Job job = { .conv = conv_of(call, x, dweight, dy),
                .piece = weight_gradient,
                .x = x->data,
                .y = dy->data,
                .weight = call->workspace };
    const Conv *conv = &job.conv;

    job.patches = job.weight + conv->threads * conv->weights;
    memset(job.weight, 0, (size_t)(conv->threads * conv->weights) * sizeof(double));
    run_job(&job);
    for (int64_t i = 0; i < conv->weights; i++)
        for (int part = 1; part < conv->threads; part++)
            job.weight[i] += job.weight[i + part * conv->weights];
    swap_axes(dweight->data, job.weight, dweight->shape.dim[0], conv->taps, conv->in);
}

/* `weights`: copies of the weights. */
static void set_workspace(KilnCall *call, const Conv *conv, int64_t weights)
{
    call->workspace_size = (size_t)(weights * conv->weights + conv->threads * patches_of(conv)) *
                           sizeof(double);
}

static KilnStatus conv2d_prepare(KilnCall *call, KilnError *err)
{
    const Conv conv = conv_of(call, &call->inputs[0], &call->inputs[1], &call->outputs[0]);

    (void)err;
    set_workspace(call, &conv, 1);
    return KILN_OK;
}

static KilnStatus grad_input_prepare(KilnCall *call, KilnError *err)
{
    const Conv conv = conv_of(call, &call->outputs[0], &call->inputs[1], &call->inputs[0]);

    (void)err;
    set_workspace(call, &conv, 1);
    return KILN_OK;
}

static KilnStatus grad_weight_prepare(KilnCall *call, KilnError *err)
{
    const Conv conv = conv_of(call, &call->inputs[1], &call->outputs[0], &call->inputs[0]);

    (void)err;
    set_workspace(call, &conv, conv.threads);
    return KILN_OK;
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_conv2d, .prepare = conv2d_prepare, .run = conv2d_run },
    { .op = &kiln_op_conv2d_grad_input, .prepare = grad_input_prepare, .run = grad_input_run },
    { .op = &kiln_op_conv2d_grad_weight, .prepare = grad_weight_prepare, .run = grad_weight_run },
    { .op = &kiln_op_conv_transpose2d, .prepare = grad_input_prepare, .run = conv_transpose2d_run },
};

const KilnCpuTable kiln_f64_convolution = { kernels, KILN_COUNT(kernels) };

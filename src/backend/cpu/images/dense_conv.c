/* Convolutions of small images as products with an expanded weight. */
#include "backend/cpu/images/dense_conv.h"

#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels/gemm.h"
#include "graph/ops/images/conv.h"

/* With fewer images, expanding the weight takes longer than it saves. */
enum { MOST_PIXELS = 4, FEWEST_IMAGES = 32 };

typedef struct Dense {
    int64_t images, in, out, elements; /* channels of x and of y; elements of a kernel */
    int64_t x_pixels, y_pixels;
    int element[MOST_PIXELS][MOST_PIXELS]; /* between a pixel of y and one of x; -1: none */
    float *weight;                         /* [out, in, elements] */
    float *matrix;                         /* [y_pixels, out, x_pixels, in] */
} Dense;

/* The element of a kernel that takes pixel `x` into pixel `y` along an axis; -1: none. */
static int64_t element_between(const KilnConvAttrs *attrs, int axis, int64_t y, int64_t x,
                               int64_t kernel)
{
    const int64_t at = x + attrs->padding[axis] - y * attrs->stride[axis];
    const int64_t k = at / attrs->dilation[axis];

    return at >= 0 && at % attrs->dilation[axis] == 0 && k < kernel ? k : -1;
}

static void find_elements(const KilnConvAttrs *attrs, const int64_t *x, const int64_t *y,
                          const int64_t *kernel, Dense *dense)
{
    for (int64_t p = 0; p < dense->y_pixels; p++)
        for (int64_t q = 0; q < dense->x_pixels; q++) {
            const int64_t row = element_between(attrs, 0, p / y[2], q / x[2], kernel[2]);
            const int64_t column = element_between(attrs, 1, p % y[2], q % x[2], kernel[3]);

            dense->element[p][q] = row < 0 || column < 0 ? -1 : (int)(row * kernel[3] + column);
        }
}

static bool describe(const KilnCall *call, const KilnArg *x, const KilnArg *y,
                     const KilnArg *weight, Dense *ret)
{
    const KilnConvAttrs *attrs = call->attrs;
    const int64_t *kernel = weight->shape.dim;

    *ret = (Dense) { .images = x->shape.dim[0],
                     .in = kernel[1],
                     .out = kernel[0],
                     .elements = kernel[2] * kernel[3],
                     .x_pixels = x->shape.dim[1] * x->shape.dim[2],
                     .y_pixels = y->shape.dim[1] * y->shape.dim[2],
                     .weight = weight->data,
                     .matrix = call->workspace };
    if (attrs->groups != 1 || x->dtype != KILN_F32 || y->dtype != KILN_F32 ||
        weight->dtype != KILN_F32 || ret->images < FEWEST_IMAGES || ret->x_pixels < 2 ||
        ret->x_pixels > MOST_PIXELS || ret->y_pixels > MOST_PIXELS || ret->x_pixels > ret->elements)
        return false;
    find_elements(attrs, x->shape.dim, y->shape.dim, kernel, ret);
    return true;
}

/* Everything is in plain order, and the workspace has the matrix. */
static void prepare(KilnCall *call, const Dense *dense)
{
    call->inputs[0].layout = call->inputs[1].layout = KILN_PLAIN;
    call->workspace_size = (size_t)(dense->y_pixels * dense->out * dense->x_pixels * dense->in) *
                           sizeof(float);
}

/* Channel 0 of the weights between pixel p of y and pixel q of x in the matrix. */
static float *entry(const Dense *d, int64_t o, int64_t p, int64_t q)
{
    return d->matrix + ((p * d->out + o) * d->x_pixels + q) * d->in;
}

/* Write the matrix for the outputs from `begin` to `end`. */
static void expand(void *context, int64_t begin, int64_t end)
{
    const Dense *d = context;

    for (int64_t o = begin; o < end; o++)
        for (int64_t p = 0; p < d->y_pixels; p++)
            for (int64_t q = 0; q < d->x_pixels; q++) {
                const float *weight = d->weight + o * d->in * d->elements;
                float *to = entry(d, o, p, q);

                for (int64_t c = 0; c < d->in; c++)
                    to[c] = d->element[p][q] < 0 ? 0.0f
                                                 : weight[c * d->elements + d->element[p][q]];
            }
}

/* Sum up the matrix, a gradient, into the weight's for the outputs from `begin` to `end`. */
static void fold(void *context, int64_t begin, int64_t end)
{
    const Dense *d = context;

    for (int64_t o = begin; o < end; o++) {
        float *weight = d->weight + o * d->in * d->elements;

        memset(weight, 0, (size_t)(d->in * d->elements) * sizeof(*weight));
        for (int64_t p = 0; p < d->y_pixels; p++)
            for (int64_t q = 0; q < d->x_pixels; q++) {
                const float *from = entry(d, o, p, q);

                for (int64_t c = 0; c < d->in && d->element[p][q] >= 0; c++)
                    weight[c * d->elements + d->element[p][q]] += from[c];
            }
    }
}

/* ---- The convolution, and the gradient of its input --------------------------------------- */

static bool takes(const KilnCall *call, bool gradient, Dense *ret)
{
    const KilnConvAttrs *attrs = call->attrs;
    const KilnArg *image = &call->inputs[0], *result = &call->outputs[0];

    if (!gradient && (!call->inputs[2].absent || !call->inputs[3].absent ||
                      attrs->activation.code != KILN_MAP_NUMBER))
        return false;
    return describe(call, gradient ? result : image, gradient ? image : result, &call->inputs[1],
                    ret);
}

bool kiln_dense_conv_prepare(KilnCall *call, bool gradient)
{
    Dense dense;

    if (!takes(call, gradient, &dense))
        return false;
    prepare(call, &dense);
    return true;
}

bool kiln_dense_conv_run(KilnCall *call, bool gradient)
{
    Dense d;

    if (!takes(call, gradient, &d))
        return false;
    const int64_t x = d.x_pixels * d.in, y = d.y_pixels * d.out;
    const KilnGemm gemm = { .m = d.images,
                            .n = gradient ? x : y,
                            .k = gradient ? y : x,
                            .lda = gradient ? y : x,
                            .ldb = x,
                            .ldc = gradient ? x : y,
                            .transpose_b = !gradient,
                            .alpha = 1.0f };

    kiln_parallel(call->backend->threads, d.out, 1, 1, expand, &d);
    kiln_gemm(call, &gemm, call->inputs[0].data, d.matrix, call->outputs[0].data);
    return true;
}

/* ---- The gradient of the weight ----------------------------------------------------------- */

bool kiln_dense_weight_prepare(KilnCall *call)
{
    Dense dense;

    if (!describe(call, &call->inputs[1], &call->inputs[0], &call->outputs[0], &dense))
        return false;
    prepare(call, &dense);
    return true;
}

bool kiln_dense_weight_run(KilnCall *call)
{
    Dense d;

    if (!describe(call, &call->inputs[1], &call->inputs[0], &call->outputs[0], &d))
        return false;
    const int64_t x = d.x_pixels * d.in, y = d.y_pixels * d.out;
    const KilnGemm gemm = { .m = y,
                            .n = x,
                            .k = d.images,
                            .lda = y,
                            .ldb = x,
                            .ldc = x,
                            .transpose_a = true,
                            .alpha = 1.0f };

    kiln_gemm(call, &gemm, call->inputs[0].data, call->inputs[1].data, d.matrix);
    kiln_parallel(call->backend->threads, d.out, 1, 1, fold, &d);
    return true;
}

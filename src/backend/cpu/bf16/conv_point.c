/* 1 x 1 convolutions without stride or padding, and the gradients of their input, in bf16:
 * products of the pixels [pixels, depth] and the weight. */
#include "backend/cpu/bf16/conv.h"
#include "backend/cpu/bf16/product.h"
#include "backend/cpu/cpu.h"

static bool is_point(const KilnCall *call)
{
    const KilnConvAttrs *attrs = call->attrs;
    const int64_t *weight = call->inputs[1].shape.dim;

    return call->inputs[0].dtype == KILN_BF16 && attrs->groups == 1 && weight[2] == 1 &&
           weight[3] == 1 && attrs->stride[0] == 1 && attrs->stride[1] == 1 &&
           attrs->padding[0] == 0 && attrs->padding[1] == 0;
}

/* Input 0 is x, or dy for a gradient; the weight is [O, I]. */
static KilnBf16Product product_of(const KilnCall *call, bool gradient)
{
    const KilnArg *source = &call->inputs[0], *weight = &call->inputs[1], *y = &call->outputs[0];
    const int64_t out = weight->shape.dim[0], in = weight->shape.dim[1];
    const int64_t pixels = kiln_shape_count(&source->shape) / (gradient ? out : in);
    const KilnArg *bias = gradient || call->inputs[2].absent ? NULL : &call->inputs[2];

    return (KilnBf16Product) {
        .left = { .data = source->data,
                  .stride = gradient ? out : in,
                  .rows = pixels,
                  .depth = gradient ? out : in },
        .right = { .data = weight->data,
                   .f32 = weight->dtype == KILN_F32,
                   .across = gradient,
                   .stride = in,
                   .rows = gradient ? in : out,
                   .depth = gradient ? out : in },
        .result = { .data = y->data,
                    .f32 = y->dtype == KILN_F32,
                    .stride = gradient ? in : out,
                    .bias = bias != NULL ? bias->data : NULL },
        .tiles = kiln_cpu(call)->tiles,
        .loops = kiln_cpu(call)->loops,
        .threads = call->backend->threads,
    };
}

bool kiln_bf16_conv_point_prepare(KilnCall *call, bool gradient)
{
    if (!is_point(call))
        return false;

    const KilnBf16Product product = product_of(call, gradient);

    call->inputs[0].layout = call->inputs[1].layout = KILN_PLAIN;
    call->workspace_size = kiln_bf16_product_workspace(&product);
    return true;
}

bool kiln_bf16_conv_point_run(KilnCall *call, bool gradient)
{
    if (!is_point(call))
        return false;

    const KilnBf16Product product = product_of(call, gradient);

    kiln_bf16_product(&product, call->workspace);
    return true;
}

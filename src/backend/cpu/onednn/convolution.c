/* Convolution and its gradients with oneDNN, which chooses the layouts. backend/cpu/winograd,
 * images and bf16 have faster kernels for some cases of f32 and bf16. */
#include "backend/cpu/bf16/conv.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/images/dense_conv.h"
#include "backend/cpu/images/depthwise.h"
#include "backend/cpu/onednn/primitives.h"
#include "backend/cpu/winograd/conv.h"

#include <string.h>

typedef dnnl_status_t (*MakePd)(KilnDnnl *dnnl, const KilnConvMd *conv, dnnl_primitive_desc_t *ret);

/* oneDNN's own Winograd, which only AVX-512 has, is slower than kiln's. */
static KilnStatus conv_pd(const KilnCall *call, MakePd make, KilnConvMd *conv,
                          dnnl_primitive_desc_t *ret, KilnError *err)
{
    const KilnConvAttrs *attrs = call->attrs;
    KilnCpuBackend *cpu = kiln_cpu(call);
    const int before = kiln_threads_set(cpu->dnnl.threads);

    conv->stride = attrs->stride;
    conv->padding = attrs->padding;
    conv->dilation = attrs->dilation;
    const dnnl_status_t status = make(&cpu->dnnl, conv, ret);
    kiln_threads_set(before);
    return status == dnnl_success ? KILN_OK : kiln_dnnl_error(err, status, call->op->name);
}

/* A weight as oneDNN sees it: groups have their own axis. */
static KilnShape weight_shape(const KilnConvAttrs *attrs, const KilnShape *weight)
{
    const int64_t *dim = weight->dim;

    if (attrs->groups == 1)
        return *weight;
    return KILN_SHAPE(attrs->groups, dim[0] / attrs->groups, dim[1], dim[2], dim[3]);
}

/* Descriptors of a convolution from x to y; its gradients use them too. All layouts are left to
 * oneDNN, since a fixed one makes it fall back to slow loops. Images and weights have the type of
 * input 0; only a weight's gradient is always f32. */
static KilnStatus conv_mds(KilnCall *call, const KilnArg *x, const KilnArg *weight,
                           const KilnArg *y, KilnConvMd *ret, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    const KilnDType type = call->inputs[0].dtype;
    const KilnShape shape = weight_shape(call->attrs, &weight->shape);
    KilnStatus status = kiln_md_make(dnnl, KILN_MD_IMAGE, type, &x->shape, KILN_MD_ANY, &ret->src,
                                     err);

    if (status == KILN_OK)
        status = kiln_md_make(dnnl, KILN_MD_WEIGHT, type, &shape, KILN_MD_ANY,
                              &ret->forward_weights, err);
    if (status == KILN_OK)
        status = kiln_md_make(dnnl, KILN_MD_WEIGHT, weight == &call->outputs[0] ? KILN_F32 : type,
                              &shape, KILN_MD_ANY, &ret->weights, err);
    if (status == KILN_OK)
        status = kiln_md_make(dnnl, KILN_MD_IMAGE, type, &y->shape, KILN_MD_ANY, &ret->dst, err);
    return status;
}

/* ---- From a primitive descriptor to the call's primitives ----------------------- */

/* One argument of the convolution: an input of the call, or -1 for the output. */
typedef struct ConvTensor {
    int id;
    dnnl_query_t what;
    KilnMdRole role;
    int input;
} ConvTensor;

static KilnDType of_type(KilnMd md)
{
    return kiln_md_facts(md).type == dnnl_bf16 ? KILN_BF16 : KILN_F32;
}

/* An output in oneDNN's layout is written directly, or to the workspace if the output must be plain
 * or has another type. A weight's gradient is always plain, as parameters and optimizers expect. */
static KilnStatus output_arg(KilnCall *call, const ConvTensor *tensor, KilnPrimitiveArg *arg,
                             KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnLayout layout = KILN_PLAIN;
    KilnStatus status = kiln_layout_of(dnnl, tensor->role, arg->md, &layout, err);

    if (status != KILN_OK)
        return status;
    arg->buffer = KILN_BUFFER_OUTPUT;
    if (of_type(arg->md) != call->outputs[0].dtype ||
        (layout != KILN_PLAIN && (call->outputs[0].fixed || tensor->role == KILN_MD_WEIGHT))) {
        arg->buffer = KILN_BUFFER_WORKSPACE;
        arg->at = kiln_primitives_reserve(call, kiln_md_bytes(arg->md));
    } else {
        kiln_output_layout(dnnl, &call->outputs[0], layout);
    }
    return KILN_OK;
}

/* Adds a conversion of layout or type. */
static KilnStatus add_reorder(KilnCall *call, KilnPrimitiveArg from, KilnPrimitiveArg to,
                              KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t made = kiln_pd_reorder(dnnl, from.md, to.md, &pd);

    if (made != dnnl_success)
        return kiln_dnnl_error(err, made, "a change of layout");
    from.id = DNNL_ARG_FROM;
    to.id = DNNL_ARG_TO;
    KilnStatus status = kiln_primitives_add(call, pd, (KilnPrimitiveArg[]) { from, to }, 2, err);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

/* Adds the copy from the workspace to the plain output. */
static KilnStatus add_plain(KilnCall *call, KilnMdRole role, const KilnPrimitiveArg *from,
                            KilnError *err)
{
    KilnPrimitiveArg to = { .buffer = KILN_BUFFER_OUTPUT };
    KilnStatus status = kiln_md_plain_as(&kiln_cpu(call)->dnnl, role, call->outputs[0].dtype,
                                         from->md, &to.md, err);

    return status == KILN_OK ? add_reorder(call, *from, to, err) : status;
}

/* Input i in the descriptor's layout. The planner converts it, except an f32 weight that should be
 * bf16, which is rounded and reordered in one step. */
static KilnStatus input_arg(KilnCall *call, const ConvTensor *tensor, KilnPrimitiveArg *arg,
                            KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnArg *input = &call->inputs[tensor->input];
    KilnPrimitiveArg from = { .buffer = KILN_BUFFER_INPUT, .at = (size_t)tensor->input };

    arg->at = from.at;
    if (of_type(arg->md) == input->dtype)
        return kiln_layout_of(dnnl, tensor->role, arg->md, &input->layout, err);
    KilnStatus status = kiln_md_plain_as(dnnl, tensor->role, input->dtype, arg->md, &from.md, err);
    if (status != KILN_OK)
        return status;
    input->layout = KILN_PLAIN;
    arg->buffer = KILN_BUFFER_WORKSPACE;
    arg->at = kiln_primitives_reserve(call, kiln_md_bytes(arg->md));
    return add_reorder(call, from, *arg, err);
}

/* Input 3, if there is one, becomes what the result is added to; planning puts it there by itself
 * if nothing reads it later. */
static KilnStatus add_residual(KilnCall *call, const KilnPrimitiveArg *result, KilnError *err)
{
    KilnPrimitiveArg from = { .md = result->md, .buffer = KILN_BUFFER_INPUT, .at = 3 };
    KilnArg *more = &call->inputs[3];

    if (more->absent)
        return KILN_OK;
    KilnStatus status = kiln_layout_of(&kiln_cpu(call)->dnnl, KILN_MD_IMAGE, result->md,
                                       &more->layout, err);
    return status == KILN_OK ? add_reorder(call, from, *result, err) : status;
}

/* `tensors` ends with the output; inputs get the descriptors' layouts. */
static KilnStatus conv_steps(KilnCall *call, dnnl_primitive_desc_t pd, const ConvTensor *tensors,
                             int n, KilnError *err)
{
    KilnPrimitiveArg args[4];
    const KilnPrimitiveArg *result = &args[n - 1];
    KilnStatus status = KILN_OK;

    for (int i = 0; i < n && status == KILN_OK; i++) {
        const ConvTensor *tensor = &tensors[i];

        args[i] = (KilnPrimitiveArg) { .id = tensor->id,
                                       .md = dnnl_primitive_desc_query_md(
                                           pd, tensor->what, tensor->id == DNNL_ARG_BIAS),
                                       .buffer = KILN_BUFFER_INPUT };
        status = tensor->input < 0 ? output_arg(call, tensor, &args[i], err)
                                   : input_arg(call, tensor, &args[i], err);
    }
    if (status == KILN_OK)
        status = add_residual(call, result, err);
    if (status == KILN_OK)
        status = kiln_primitives_add(call, pd, args, n, err);
    if (status == KILN_OK && result->buffer == KILN_BUFFER_WORKSPACE) {
        status = add_plain(call, tensors[n - 1].role, result, err);
        if (status != KILN_OK)
            kiln_primitives_release(call);
    }
    return status;
}

/* ---- The kernels -------------------------------------------------------------------- */

static bool has_tiles(const KilnCall *call)
{
    return kiln_cpu(call)->tiles != NULL;
}

/* Kernels of kiln's own; false: none takes the call. */
static KilnStatus own_prepare(KilnCall *call, bool gradient, bool *ret_taken, KilnError *err)
{
    *ret_taken = kiln_dense_conv_prepare(call, gradient);
    if (*ret_taken)
        return KILN_OK;
    *ret_taken = has_tiles(call) && (kiln_bf16_conv_point_prepare(call, gradient) ||
                                     kiln_bf16_conv_winograd_prepare(call, gradient) ||
                                     kiln_bf16_conv_image_prepare(call, gradient));
    return *ret_taken ? KILN_OK : kiln_winograd_conv_prepare(call, gradient, ret_taken, err);
}

static void own_run(KilnCall *call, bool gradient)
{
    if (!kiln_dense_conv_run(call, gradient) && !kiln_winograd_conv_run(call, gradient) &&
        !kiln_bf16_conv_point_run(call, gradient) && !kiln_bf16_conv_winograd_run(call, gradient))
        kiln_bf16_conv_image_run(call, gradient);
}

static KilnStatus conv2d_prepare(KilnCall *call, KilnError *err)
{
    static const ConvTensor tensors[] = {
        { DNNL_ARG_BIAS, dnnl_query_weights_md, KILN_MD_VECTOR, 2 },
        { DNNL_ARG_SRC, dnnl_query_src_md, KILN_MD_IMAGE, 0 },
        { DNNL_ARG_WEIGHTS, dnnl_query_weights_md, KILN_MD_WEIGHT, 1 },
        { DNNL_ARG_DST, dnnl_query_dst_md, KILN_MD_IMAGE, -1 },
    };
    const KilnConvAttrs *attrs = call->attrs;
    const KilnArg *bias = &call->inputs[2];
    const int without = bias->absent ? 1 : 0;
    KilnConvMd conv = { 0 };
    dnnl_primitive_desc_t pd = NULL;

    bool taken = false;
    KilnStatus status = own_prepare(call, false, &taken, err);

    if (status != KILN_OK || taken)
        return status;
    status = conv_mds(call, &call->inputs[0], &call->inputs[1], &call->outputs[0], &conv, err);
    if (status == KILN_OK && !bias->absent)
        status = kiln_md_make(&kiln_cpu(call)->dnnl, KILN_MD_VECTOR, bias->dtype, &bias->shape,
                              KILN_MD_PLAIN, &conv.bias, err);
    conv.sum = !call->inputs[3].absent;
    if (attrs->activation.code != KILN_MAP_NUMBER)
        conv.activation = &attrs->activation;
    if (status == KILN_OK)
        status = conv_pd(call, kiln_pd_conv, &conv, &pd, err);
    if (status != KILN_OK)
        return status;
    status = conv_steps(call, pd, tensors + without, (int)KILN_COUNT(tensors) - without, err);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

static void conv2d_run(KilnCall *call)
{
    if (call->priv != NULL)
        kiln_primitives_run(call);
    else
        own_run(call, false);
}

/* With oneDNN, for any type. */
static KilnStatus grad_input_steps(KilnCall *call, KilnError *err)
{
    static const ConvTensor tensors[] = {
        { DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, KILN_MD_IMAGE, 0 },
        { DNNL_ARG_WEIGHTS, dnnl_query_weights_md, KILN_MD_WEIGHT, 1 },
        { DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, KILN_MD_IMAGE, -1 },
    };
    KilnConvMd conv = { 0 };
    dnnl_primitive_desc_t pd = NULL;
    KilnStatus status = conv_mds(call, &call->outputs[0], &call->inputs[1], &call->inputs[0], &conv,
                                 err);

    if (status == KILN_OK)
        status = conv_pd(call, kiln_pd_conv_data, &conv, &pd, err);
    if (status != KILN_OK)
        return status;
    status = conv_steps(call, pd, tensors, (int)KILN_COUNT(tensors), err);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

static KilnStatus conv2d_grad_input_prepare(KilnCall *call, KilnError *err)
{
    bool taken = false;
    KilnStatus status = own_prepare(call, true, &taken, err);

    return status != KILN_OK || taken ? status : grad_input_steps(call, err);
}

static void conv2d_grad_input_run(KilnCall *call)
{
    if (call->priv != NULL)
        kiln_primitives_run(call);
    else
        own_run(call, true);
}

static KilnStatus conv2d_grad_weight_prepare(KilnCall *call, KilnError *err)
{
    static const ConvTensor tensors[] = {
        { DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, KILN_MD_IMAGE, 0 },
        { DNNL_ARG_SRC, dnnl_query_src_md, KILN_MD_IMAGE, 1 },
        { DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, KILN_MD_WEIGHT, -1 },
    };
    KilnConvMd conv = { 0 };
    dnnl_primitive_desc_t pd = NULL;

    if (kiln_dense_weight_prepare(call))
        return KILN_OK;
    if (has_tiles(call) &&
        (kiln_bf16_conv_weight_winograd_prepare(call) || kiln_bf16_conv_weight_prepare(call)))
        return KILN_OK;
    bool taken = false;
    KilnStatus status = kiln_winograd_weight_prepare(call, &taken, err);

    if (status == KILN_OK && !taken)
        status = kiln_depthwise_weight_prepare(call, &taken, err);
    if (status != KILN_OK || taken)
        return status;
    status = conv_mds(call, &call->inputs[1], &call->outputs[0], &call->inputs[0], &conv, err);
    if (status == KILN_OK)
        status = conv_pd(call, kiln_pd_conv_weights, &conv, &pd, err);
    if (status != KILN_OK)
        return status;
    status = conv_steps(call, pd, tensors, (int)KILN_COUNT(tensors), err);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

/* Taps that meet nothing but padding have the gradient 0. oneDNN's kernels for AMX leave theirs
 * unwritten, and Winograd's algorithm rounds. */
static void zero_idle_taps(const KilnCall *call)
{
    const int64_t *dy = call->inputs[0].shape.dim, *x = call->inputs[1].shape.dim;
    const KilnArg *weight = &call->outputs[0];
    const int64_t *dim = weight->shape.dim, taps = dim[2] * dim[3];
    const size_t size = kiln_dtype_size(weight->dtype);

    for (int64_t tap = 0; tap < taps; tap++) {
        if (kiln_conv_element_meets(call->attrs, 0, tap / dim[3], x[1], dy[1]) &&
            kiln_conv_element_meets(call->attrs, 1, tap % dim[3], x[2], dy[2]))
            continue;
        for (int64_t i = 0; i < dim[0] * dim[1]; i++)
            memset((char *)weight->data + (size_t)(i * taps + tap) * size, 0, size);
    }
}

static void conv2d_grad_weight_run(KilnCall *call)
{
    if (call->priv != NULL)
        kiln_primitives_run(call);
    else if (!kiln_dense_weight_run(call) && !kiln_winograd_weight_run(call) &&
             !kiln_depthwise_weight_run(call)) {
        if (!kiln_bf16_conv_weight_winograd_run(call))
            kiln_bf16_conv_weight_run(call);
        return;
    }
    zero_idle_taps(call);
}

/* The transpose is the gradient of its input. oneDNN adds no bias there, so it is added afterwards,
 * while rows are in cache. */
typedef struct AddBias {
    const KilnLoops *loops;
    float *y;
    const float *bias;
    int64_t channels, pixels, block;
} AddBias;

static void add_bias_part(void *context, int64_t begin, int64_t end)
{
    const AddBias *add = context;

    for (int64_t run = begin; run < end; run++) {
        const int64_t c = run % (add->channels / add->block) * add->block;

        for (int64_t pixel = 0; pixel < add->pixels; pixel++) {
            float *y = add->y + (run * add->pixels + pixel) * add->block;

            add->loops->add(y, y, add->bias + c, add->block);
        }
    }
}

static void conv_transpose2d_run(KilnCall *call)
{
    const KilnArg *y = &call->outputs[0], *bias = &call->inputs[2];

    kiln_primitives_run(call);
    if (bias->absent)
        return;

    const int64_t *dim = y->shape.dim;
    const KilnMdFormat format = kiln_layout_format(&kiln_cpu(call)->dnnl, y->layout, &y->shape);
    const int64_t block = format == KILN_MD_C16 ? 16 : format == KILN_MD_C8 ? 8 : dim[3];
    AddBias add = {
        .loops = kiln_cpu(call)->loops,
        .y = y->data,
        .bias = bias->data,
        .channels = dim[3],
        .pixels = dim[1] * dim[2],
        .block = block,
    };
    kiln_parallel(call->backend->threads, dim[0] * (dim[3] / block), 1, 1, add_bias_part, &add);
}

/* Only in layouts whose blocks the bias fills. */
static KilnStatus conv_transpose2d_prepare(KilnCall *call, KilnError *err)
{
    KilnArg *y = &call->outputs[0];
    KilnStatus status = grad_input_steps(call, err);

    if (status != KILN_OK || call->inputs[2].absent)
        return status;
    call->inputs[2].layout = KILN_PLAIN;

    KilnMdFormat format = kiln_layout_format(&kiln_cpu(call)->dnnl, y->layout, &y->shape);
    const int64_t block = format == KILN_MD_C16 ? 16 : format == KILN_MD_C8 ? 8 : 1;

    if (format != KILN_MD_ANY && y->shape.dim[3] % block == 0)
        return KILN_OK;
    kiln_primitives_release(call);
    call->workspace_size = 0;
    kiln_output_layout(&kiln_cpu(call)->dnnl, y, KILN_PLAIN);
    y->bytes = (size_t)kiln_cpu_count(y) * kiln_dtype_size(y->dtype);
    y->fixed = true;
    return grad_input_steps(call, err);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_conv2d,
      .prepare = conv2d_prepare,
      .run = conv2d_run,
      .release = kiln_primitives_release,
      .in_place = 1u << 3,
      .bf16_inputs = 1u << 0 | 1u << 1,
      .bf16_outputs = 1u << 0,
      .rounding_inputs = 1u << 1 },
    { .op = &kiln_op_conv2d_grad_input,
      .prepare = conv2d_grad_input_prepare,
      .run = conv2d_grad_input_run,
      .release = kiln_primitives_release,
      .bf16_inputs = 1u << 0 | 1u << 1,
      .bf16_outputs = 1u << 0,
      .rounding_inputs = 1u << 1 },
    { .op = &kiln_op_conv2d_grad_weight,
      .prepare = conv2d_grad_weight_prepare,
      .run = conv2d_grad_weight_run,
      .release = kiln_primitives_release,
      .bf16_inputs = 1u << 0 | 1u << 1 },
    { .op = &kiln_op_conv_transpose2d,
      .prepare = conv_transpose2d_prepare,
      .run = conv_transpose2d_run,
      .release = kiln_primitives_release },
};

const KilnCpuTable kiln_cpu_convolution = { kernels, KILN_COUNT(kernels) };

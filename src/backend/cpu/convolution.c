/* Convolution and its gradients by oneDNN, which chooses the layouts. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/steps.h"

/* Below as many input channels Winograd's transforms cost more than they save. */
enum { WINOGRAD_CHANNELS = 16 };

static KilnMdFormat format_of(const KilnArg *output)
{
    return output->fixed ? KILN_MD_PLAIN : KILN_MD_ANY;
}

typedef dnnl_status_t (*MakePd)(KilnDnnl *dnnl, const KilnConvMd *conv, dnnl_primitive_desc_t *ret);

/* With the backend's algorithm, or directly where that does not exist. */
static KilnStatus conv_pd(const KilnCall *call, MakePd make, KilnConvMd *conv,
                          dnnl_primitive_desc_t *ret, KilnError *err)
{
    const KilnConvAttrs *attrs = call->attrs;
    KilnCpuBackend *cpu = kiln_cpu(call);
    dnnl_status_t status = dnnl_unimplemented;
    int before = kiln_threads_set(cpu->dnnl.threads);

    conv->stride = attrs->stride;
    conv->padding = attrs->padding;
    conv->winograd = cpu->conv == KILN_CONV_AUTO &&
                     kiln_md_facts(conv->src).dims[1] >= WINOGRAD_CHANNELS;
    status = make(&cpu->dnnl, conv, ret);
    if (status == dnnl_unimplemented && conv->winograd) {
        conv->winograd = false;
        status = make(&cpu->dnnl, conv, ret);
    }
    kiln_threads_set(before);
    return status == dnnl_success ? KILN_OK : kiln_dnnl_error(err, status, call->op->name);
}

/* Descriptors of the three shapes of a convolution; the gradients use them too. */
static KilnStatus conv_mds(KilnDnnl *dnnl, KilnConvMd *ret, const KilnShape *x,
                           KilnMdFormat x_format, const KilnShape *weight, const KilnShape *y,
                           KilnMdFormat y_format, KilnError *err)
{
    KilnStatus status = kiln_md_make(dnnl, KILN_MD_IMAGE, x, x_format, &ret->src, err);

    if (status == KILN_OK)
        status = kiln_md_make(dnnl, KILN_MD_WEIGHT, weight, KILN_MD_ANY, &ret->weights, err);
    if (status == KILN_OK)
        status = kiln_md_make(dnnl, KILN_MD_IMAGE, y, y_format, &ret->dst, err);
    return status;
}

static KilnMd queried(const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    return dnnl_primitive_desc_query_md(pd, what, 0);
}

/* ---- Forward --------------------------------------------------------------------- */

static KilnStatus forward_from_pd(KilnCall *call, dnnl_primitive_desc_t pd, KilnMd bias,
                                  KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnMd src = queried(pd, dnnl_query_src_md), dst = queried(pd, dnnl_query_dst_md);
    KilnMd weights = queried(pd, dnnl_query_weights_md);
    KilnLayout y = KILN_PLAIN;
    const KilnStepArg args[] = {
        { DNNL_ARG_SRC, src, KILN_AT_INPUT, 0 },
        { DNNL_ARG_WEIGHTS, weights, KILN_AT_INPUT, 1 },
        { DNNL_ARG_DST, dst, KILN_AT_OUTPUT, 0 },
        { DNNL_ARG_BIAS, bias, KILN_AT_INPUT, 2 },
    };
    KilnStatus status = kiln_layout_of(dnnl, KILN_MD_IMAGE, src, &call->inputs[0].layout, err);

    if (status == KILN_OK)
        status = kiln_layout_of(dnnl, KILN_MD_WEIGHT, weights, &call->inputs[1].layout, err);
    if (status == KILN_OK)
        status = kiln_layout_of(dnnl, KILN_MD_IMAGE, dst, &y, err);
    if (status != KILN_OK)
        return status;
    kiln_output_layout(dnnl, &call->outputs[0], y);
    return kiln_steps_add(call, pd, args, bias != NULL ? 4 : 3, err);
}

static KilnStatus conv2d_prepare(KilnCall *call, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    const KilnArg *bias = &call->inputs[2];
    KilnConvMd conv = { 0 };
    dnnl_primitive_desc_t pd = NULL;
    KilnStatus status = conv_mds(dnnl, &conv, &call->inputs[0].shape, KILN_MD_ANY,
                                 &call->inputs[1].shape, &call->outputs[0].shape,
                                 format_of(&call->outputs[0]), err);

    if (status == KILN_OK && !bias->absent)
        status = kiln_md_make(dnnl, KILN_MD_VECTOR, &bias->shape, KILN_MD_PLAIN, &conv.bias, err);
    if (status == KILN_OK)
        status = conv_pd(call, kiln_pd_conv, &conv, &pd, err);
    if (status != KILN_OK)
        return status;
    status = forward_from_pd(call, pd, conv.bias, err);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

/* ---- Gradient of the input -------------------------------------------------------- */

static KilnStatus grad_input_from_pd(KilnCall *call, dnnl_primitive_desc_t pd, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnMd src = queried(pd, dnnl_query_diff_src_md), dst = queried(pd, dnnl_query_diff_dst_md);
    KilnMd weights = queried(pd, dnnl_query_weights_md);
    KilnLayout dx = KILN_PLAIN;
    const KilnStepArg args[] = {
        { DNNL_ARG_DIFF_DST, dst, KILN_AT_INPUT, 0 },
        { DNNL_ARG_WEIGHTS, weights, KILN_AT_INPUT, 1 },
        { DNNL_ARG_DIFF_SRC, src, KILN_AT_OUTPUT, 0 },
    };
    KilnStatus status = kiln_layout_of(dnnl, KILN_MD_IMAGE, dst, &call->inputs[0].layout, err);

    if (status == KILN_OK)
        status = kiln_layout_of(dnnl, KILN_MD_WEIGHT, weights, &call->inputs[1].layout, err);
    if (status == KILN_OK)
        status = kiln_layout_of(dnnl, KILN_MD_IMAGE, src, &dx, err);
    if (status != KILN_OK)
        return status;
    kiln_output_layout(dnnl, &call->outputs[0], dx);
    return kiln_steps_add(call, pd, args, (int)KILN_COUNT(args), err);
}

static KilnStatus conv2d_grad_input_prepare(KilnCall *call, KilnError *err)
{
    KilnConvMd conv = { 0 };
    dnnl_primitive_desc_t pd = NULL;
    KilnStatus status = conv_mds(&kiln_cpu(call)->dnnl, &conv, &call->outputs[0].shape,
                                 format_of(&call->outputs[0]), &call->inputs[1].shape,
                                 &call->inputs[0].shape, KILN_MD_ANY, err);

    if (status == KILN_OK)
        status = conv_pd(call, kiln_pd_conv_data, &conv, &pd, err);
    if (status != KILN_OK)
        return status;
    status = grad_input_from_pd(call, pd, err);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

/* ---- Gradient of the weight: plain, for that is how parameters and optimizers
 * have it; oneDNN's order is converted here ----------------------------------------- */

static KilnStatus add_plain_weight(KilnCall *call, KilnMd from, size_t at, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnMd plain = NULL;
    dnnl_primitive_desc_t pd = NULL;
    KilnStatus status = kiln_md_make(dnnl, KILN_MD_WEIGHT, &call->outputs[0].shape, KILN_MD_PLAIN,
                                     &plain, err);

    if (status != KILN_OK)
        return status;

    dnnl_status_t made = kiln_pd_reorder(dnnl, from, plain, &pd);
    const KilnStepArg args[] = {
        { DNNL_ARG_FROM, from, KILN_AT_WORKSPACE, at },
        { DNNL_ARG_TO, plain, KILN_AT_OUTPUT, 0 },
    };

    if (made != dnnl_success)
        return kiln_dnnl_error(err, made, "a change of layout");
    status = kiln_steps_add(call, pd, args, (int)KILN_COUNT(args), err);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

static KilnStatus grad_weight_from_pd(KilnCall *call, dnnl_primitive_desc_t pd, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnMd src = queried(pd, dnnl_query_src_md), dst = queried(pd, dnnl_query_diff_dst_md);
    KilnMd weights = queried(pd, dnnl_query_diff_weights_md);
    KilnLayout dweight = KILN_PLAIN;
    KilnStatus status = kiln_layout_of(dnnl, KILN_MD_IMAGE, dst, &call->inputs[0].layout, err);

    if (status == KILN_OK)
        status = kiln_layout_of(dnnl, KILN_MD_IMAGE, src, &call->inputs[1].layout, err);
    if (status == KILN_OK)
        status = kiln_layout_of(dnnl, KILN_MD_WEIGHT, weights, &dweight, err);
    if (status != KILN_OK)
        return status;

    const bool plain = dweight == KILN_PLAIN;
    const size_t room = plain ? 0 : kiln_steps_room(call, kiln_md_bytes(weights));
    const KilnStepArg args[] = {
        { DNNL_ARG_DIFF_DST, dst, KILN_AT_INPUT, 0 },
        { DNNL_ARG_SRC, src, KILN_AT_INPUT, 1 },
        { DNNL_ARG_DIFF_WEIGHTS, weights, plain ? KILN_AT_OUTPUT : KILN_AT_WORKSPACE, room },
    };

    status = kiln_steps_add(call, pd, args, (int)KILN_COUNT(args), err);
    if (status == KILN_OK && !plain)
        status = add_plain_weight(call, weights, room, err);
    return status;
}

static KilnStatus conv2d_grad_weight_prepare(KilnCall *call, KilnError *err)
{
    KilnConvMd conv = { 0 };
    dnnl_primitive_desc_t pd = NULL;
    KilnStatus status = conv_mds(&kiln_cpu(call)->dnnl, &conv, &call->inputs[1].shape, KILN_MD_ANY,
                                 &call->outputs[0].shape, &call->inputs[0].shape, KILN_MD_ANY, err);

    if (status == KILN_OK)
        status = conv_pd(call, kiln_pd_conv_weights, &conv, &pd, err);
    if (status != KILN_OK)
        return status;
    status = grad_weight_from_pd(call, pd, err);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_conv2d,
      .prepare = conv2d_prepare,
      .run = kiln_steps_run,
      .release = kiln_steps_release },
    { .op = &kiln_op_conv2d_grad_input,
      .prepare = conv2d_grad_input_prepare,
      .run = kiln_steps_run,
      .release = kiln_steps_release },
    { .op = &kiln_op_conv2d_grad_weight,
      .prepare = conv2d_grad_weight_prepare,
      .run = kiln_steps_run,
      .release = kiln_steps_release },
};

const KilnCpuTable kiln_cpu_convolution = { kernels, KILN_COUNT(kernels) };

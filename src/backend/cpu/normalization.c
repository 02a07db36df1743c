/* Batch normalization by oneDNN, in the layout in which x comes. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/steps.h"

/* Descriptors that every variant needs. */
typedef struct NormMd {
    KilnMd data, vector;
} NormMd;

/* The big arguments (x, and dy when there is one) share the layout of x, which
 * must be plain when the big output has a place of its own. */
static KilnStatus norm_mds(KilnCall *call, int x, int dy, const KilnShape *channels, NormMd *ret,
                           KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;

    if (call->outputs[0].fixed)
        call->inputs[x].layout = KILN_PLAIN;
    if (dy >= 0)
        call->inputs[dy].layout = call->inputs[x].layout;
    kiln_output_layout(dnnl, &call->outputs[0], call->inputs[x].layout);

    KilnStatus status = kiln_md_of(dnnl, KILN_MD_IMAGE, &call->inputs[x], &ret->data, err);

    if (status == KILN_OK)
        status = kiln_md_make(dnnl, KILN_MD_VECTOR, KILN_F32, channels, KILN_MD_PLAIN, &ret->vector,
                              err);
    return status;
}

static KilnStatus add_step(KilnCall *call, dnnl_status_t made, dnnl_primitive_desc_t pd,
                           const KilnStepArg *args, int n, KilnError *err)
{
    if (made != dnnl_success)
        return kiln_dnnl_error(err, made, call->op->name);

    KilnStatus status = kiln_steps_add(call, pd, args, n, err);

    dnnl_primitive_desc_destroy(pd);
    return status;
}

static KilnStatus batch_norm_prepare(KilnCall *call, KilnError *err)
{
    const KilnBatchNormAttrs *attrs = call->attrs;
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    NormMd md = { 0 };
    dnnl_primitive_desc_t pd = NULL;
    KilnStatus status = norm_mds(call, 0, -1, &call->inputs[1].shape, &md, err);

    if (status != KILN_OK)
        return status;

    int before = kiln_threads_set(dnnl->threads);
    dnnl_status_t made = kiln_pd_batch_norm(dnnl, md.data, attrs->eps, true, &pd);
    const KilnStepArg args[] = {
        { DNNL_ARG_SRC, md.data, KILN_AT_INPUT, 0 },
        { DNNL_ARG_SCALE, md.vector, KILN_AT_INPUT, 1 },
        { DNNL_ARG_SHIFT, md.vector, KILN_AT_INPUT, 2 },
        { DNNL_ARG_DST, md.data, KILN_AT_OUTPUT, 0 },
        { DNNL_ARG_MEAN, md.vector, KILN_AT_OUTPUT, 1 },
        { DNNL_ARG_VARIANCE, md.vector, KILN_AT_OUTPUT, 2 },
    };

    kiln_threads_set(before);
    return add_step(call, made, pd, args, (int)KILN_COUNT(args), err);
}

static KilnStatus batch_norm_eval_prepare(KilnCall *call, KilnError *err)
{
    const KilnBatchNormAttrs *attrs = call->attrs;
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    NormMd md = { 0 };
    dnnl_primitive_desc_t pd = NULL;
    KilnStatus status = norm_mds(call, 0, -1, &call->inputs[1].shape, &md, err);

    if (status != KILN_OK)
        return status;

    int before = kiln_threads_set(dnnl->threads);
    dnnl_status_t made = kiln_pd_batch_norm(dnnl, md.data, attrs->eps, false, &pd);
    const KilnStepArg args[] = {
        { DNNL_ARG_SRC, md.data, KILN_AT_INPUT, 0 },
        { DNNL_ARG_SCALE, md.vector, KILN_AT_INPUT, 1 },
        { DNNL_ARG_SHIFT, md.vector, KILN_AT_INPUT, 2 },
        { DNNL_ARG_MEAN, md.vector, KILN_AT_INPUT, 3 },
        { DNNL_ARG_VARIANCE, md.vector, KILN_AT_INPUT, 4 },
        { DNNL_ARG_DST, md.data, KILN_AT_OUTPUT, 0 },
    };

    kiln_threads_set(before);
    return add_step(call, made, pd, args, (int)KILN_COUNT(args), err);
}

static KilnStatus batch_norm_grad_prepare(KilnCall *call, KilnError *err)
{
    const KilnBatchNormAttrs *attrs = call->attrs;
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    NormMd md = { 0 };
    dnnl_primitive_desc_t pd = NULL;
    KilnStatus status = norm_mds(call, 1, 0, &call->inputs[2].shape, &md, err);

    if (status != KILN_OK)
        return status;

    int before = kiln_threads_set(dnnl->threads);
    dnnl_status_t made = kiln_pd_batch_norm_grad(dnnl, md.data, attrs->eps, &pd);
    const KilnStepArg args[] = {
        { DNNL_ARG_DIFF_DST, md.data, KILN_AT_INPUT, 0 },
        { DNNL_ARG_SRC, md.data, KILN_AT_INPUT, 1 },
        { DNNL_ARG_SCALE, md.vector, KILN_AT_INPUT, 2 },
        { DNNL_ARG_MEAN, md.vector, KILN_AT_INPUT, 3 },
        { DNNL_ARG_VARIANCE, md.vector, KILN_AT_INPUT, 4 },
        { DNNL_ARG_DIFF_SRC, md.data, KILN_AT_OUTPUT, 0 },
        { DNNL_ARG_DIFF_SCALE, md.vector, KILN_AT_OUTPUT, 1 },
        { DNNL_ARG_DIFF_SHIFT, md.vector, KILN_AT_OUTPUT, 2 },
        { DNNL_ARG_SHIFT, md.vector, KILN_AT_INPUT, 2 }, /* asked for but not read; any will do */
    };

    kiln_threads_set(before);
    return add_step(call, made, pd, args, (int)KILN_COUNT(args) - (KILN_NORM_GRAD_SHIFT ? 0 : 1),
                    err);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_batch_norm,
      .prepare = batch_norm_prepare,
      .run = kiln_steps_run,
      .release = kiln_steps_release,
      .narrow_inputs = 1u << 0,
      .narrow_outputs = 1u << 0 },
    { .op = &kiln_op_batch_norm_grad,
      .prepare = batch_norm_grad_prepare,
      .run = kiln_steps_run,
      .release = kiln_steps_release,
      .narrow_inputs = 1u << 0 | 1u << 1,
      .narrow_outputs = 1u << 0 },
    { .op = &kiln_op_batch_norm_eval,
      .prepare = batch_norm_eval_prepare,
      .run = kiln_steps_run,
      .release = kiln_steps_release,
      .in_place = true,
      .narrow_inputs = 1u << 0,
      .narrow_outputs = 1u << 0 },
};

const KilnCpuTable kiln_cpu_normalization = { kernels, KILN_COUNT(kernels) };

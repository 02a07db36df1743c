/* Pooling: maximum by oneDNN, whose own code of the maximum's place is the
 * `index` output; the global average by loops over any layout of channels. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/steps.h"

/* ---- Maximum ---------------------------------------------------------------------- */

static KilnStatus pool_mds(KilnCall *call, const KilnShape *x, const KilnShape *y,
                           KilnMdFormat format, KilnPoolMd *ret, KilnError *err)
{
    const KilnPoolAttrs *attrs = call->attrs;
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnStatus status = kiln_md_make(dnnl, KILN_MD_IMAGE, x, format, &ret->src, err);

    ret->kernel = attrs->kernel;
    ret->stride = attrs->stride;
    ret->padding = attrs->padding;
    if (status == KILN_OK)
        status = kiln_md_make(dnnl, KILN_MD_IMAGE, y, format, &ret->dst, err);
    return status;
}

/* The layouts of the two images of a pooling, as far as they are the call's. */
static KilnStatus set_layouts(KilnCall *call, KilnMd in, KilnMd out, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnLayout layout = KILN_PLAIN;
    KilnStatus status = kiln_layout_of(dnnl, KILN_MD_IMAGE, in, &call->inputs[0].layout, err);

    if (status == KILN_OK)
        status = kiln_layout_of(dnnl, KILN_MD_IMAGE, out, &layout, err);
    if (status == KILN_OK)
        kiln_output_layout(dnnl, &call->outputs[0], layout);
    return status;
}

static KilnStatus max_pool2d_from_pd(KilnCall *call, const KilnPoolMd *pool,
                                     dnnl_primitive_desc_t pd, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnMd index = dnnl_primitive_desc_query_md(pd, dnnl_query_workspace_md, 0);
    KilnLayout code = KILN_PLAIN;
    const KilnStepArg args[] = {
        { DNNL_ARG_SRC, pool->src, KILN_AT_INPUT, 0 },
        { DNNL_ARG_DST, pool->dst, KILN_AT_OUTPUT, 0 },
        { DNNL_ARG_WORKSPACE, index, KILN_AT_OUTPUT, 1 },
    };
    KilnStatus status = kiln_layout_of(dnnl, KILN_MD_CODE, index, &code, err);

    if (status == KILN_OK)
        status = set_layouts(call, pool->src, pool->dst, err);
    if (status != KILN_OK)
        return status;
    kiln_output_layout(dnnl, &call->outputs[1], code);
    return kiln_steps_add(call, pd, args, (int)KILN_COUNT(args), err);
}

static KilnStatus max_pool2d_prepare(KilnCall *call, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    const KilnArg *x = &call->inputs[0];
    KilnMdFormat format = kiln_layout_format(dnnl, x->layout, &x->shape);
    KilnPoolMd pool = { 0 };
    dnnl_primitive_desc_t pd = NULL;

    if (format == KILN_MD_ANY || call->outputs[0].fixed)
        format = KILN_MD_PLAIN;

    KilnStatus status = pool_mds(call, &x->shape, &call->outputs[0].shape, format, &pool, err);

    if (status != KILN_OK)
        return status;

    int before = kiln_threads_set(dnnl->threads);
    dnnl_status_t made = kiln_pd_pool(dnnl, &pool, &pd);

    kiln_threads_set(before);
    if (made != dnnl_success)
        return kiln_dnnl_error(err, made, call->op->name);
    status = max_pool2d_from_pd(call, &pool, pd, err);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

static KilnStatus max_pool2d_grad_from_pd(KilnCall *call, const KilnPoolMd *pool,
                                          dnnl_primitive_desc_t pd, KilnError *err)
{
    KilnMd index = dnnl_primitive_desc_query_md(pd, dnnl_query_workspace_md, 0);
    const KilnStepArg args[] = {
        { DNNL_ARG_DIFF_DST, pool->dst, KILN_AT_INPUT, 0 },
        { DNNL_ARG_WORKSPACE, index, KILN_AT_INPUT, 1 },
        { DNNL_ARG_DIFF_SRC, pool->src, KILN_AT_OUTPUT, 0 },
    };

    if (!kiln_md_equal(index, kiln_layout_md(&kiln_cpu(call)->dnnl, call->inputs[1].layout, NULL)))
        return kiln_error_set(err, KILN_E_INTERNAL,
                              "max_pool2d_grad: the index is in another form than max_pool2d's");

    KilnStatus status = set_layouts(call, pool->dst, pool->src, err);

    return status == KILN_OK ? kiln_steps_add(call, pd, args, (int)KILN_COUNT(args), err) : status;
}

/* Images lie as the index does, which the forward pass decided. */
static KilnStatus max_pool2d_grad_prepare(KilnCall *call, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    const KilnArg *dy = &call->inputs[0], *index = &call->inputs[1];
    KilnMdFormat format = kiln_layout_format(dnnl, index->layout, &dy->shape);
    KilnPoolMd pool = { 0 };
    dnnl_primitive_desc_t pd = NULL;

    if (index->layout == KILN_PLAIN || format == KILN_MD_ANY ||
        (call->outputs[0].fixed && format != KILN_MD_PLAIN))
        return kiln_error_set(err, KILN_E_INTERNAL,
                              "max_pool2d_grad: the index does not come from max_pool2d");

    KilnStatus status = pool_mds(call, &call->outputs[0].shape, &dy->shape, format, &pool, err);

    if (status != KILN_OK)
        return status;

    int before = kiln_threads_set(dnnl->threads);
    dnnl_status_t made = kiln_pd_pool_grad(dnnl, &pool, &pd);

    kiln_threads_set(before);
    if (made != dnnl_success)
        return kiln_dnnl_error(err, made, call->op->name);
    status = max_pool2d_grad_from_pd(call, &pool, pd, err);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

/* ---- Global average ------------------------------------------------------------------
 * An image is `blocks` planes of [places, block]; plain order is one plane. */

typedef struct Average {
    const KilnLoops *loops;
    const float *from;
    float *to;
    int64_t places, channels, block, blocks;
} Average;

static Average average_of(KilnCall *call, const KilnArg *image)
{
    const KilnMdFormat format = kiln_layout_format(&kiln_cpu(call)->dnnl, image->layout,
                                                   &image->shape);
    Average average = {
        .loops = kiln_cpu(call)->loops,
        .from = call->inputs[0].data,
        .to = call->outputs[0].data,
        .places = image->shape.dim[1] * image->shape.dim[2],
        .channels = image->shape.dim[3],
    };

    average.block = format == KILN_MD_C16 ? 16 : format == KILN_MD_C8 ? 8 : average.channels;
    average.blocks = (average.channels + average.block - 1) / average.block;
    return average;
}

static int64_t average_grain(const Average *average)
{
    return 16384 / (average->places * average->channels + 1) + 1;
}

static KilnStatus global_avg_pool2d_prepare(KilnCall *call, KilnError *err)
{
    KilnArg *x = &call->inputs[0];

    (void)err;
    if (kiln_layout_format(&kiln_cpu(call)->dnnl, x->layout, &x->shape) == KILN_MD_ANY)
        x->layout = KILN_PLAIN;
    return KILN_OK;
}

static void average_part(void *context, int64_t begin, int64_t end)
{
    const Average *a = context;
    const float scale = 1.0f / (float)a->places;

    for (int64_t n = begin; n < end; n++) {
        const float *image = a->from + n * a->blocks * a->block * a->places;
        float *y = a->to + n * a->channels;

        for (int64_t c = 0; c < a->channels; c += a->block) {
            int64_t width = a->channels - c < a->block ? a->channels - c : a->block;

            a->loops->sum_rows(y + c, image + c * a->places, a->places, width, a->block);
        }
        a->loops->scale(y, y, scale, a->channels);
    }
}

static void global_avg_pool2d_run(KilnCall *call)
{
    Average average = average_of(call, &call->inputs[0]);

    kiln_parallel(call->backend->threads, call->inputs[0].shape.dim[0], average_grain(&average), 1,
                  average_part, &average);
}

/* The image goes to a convolution's neighbour, so whole blocks of channels lie as
 * convolutions like them. */
static KilnStatus global_avg_pool2d_grad_prepare(KilnCall *call, KilnError *err)
{
    KilnCpuBackend *cpu = kiln_cpu(call);
    KilnArg *dx = &call->outputs[0];
    const int64_t block = cpu->blocked == KILN_MD_C16 ? 16 : 8;
    KilnLayout layout = KILN_PLAIN;

    call->inputs[0].layout = KILN_PLAIN;
    if (dx->fixed || cpu->blocked == KILN_MD_PLAIN || dx->shape.dim[3] % block != 0)
        return KILN_OK;

    KilnStatus status = kiln_layout_image(&cpu->dnnl, &dx->shape, cpu->blocked, &layout, err);

    if (status == KILN_OK)
        kiln_output_layout(&cpu->dnnl, dx, layout);
    return status;
}

static void average_grad_part(void *context, int64_t begin, int64_t end)
{
    const Average *a = context;
    const float scale = 1.0f / (float)a->places;

    for (int64_t n = begin; n < end; n++)
        for (int64_t c = 0; c < a->channels; c += a->block) {
            const float *dy = a->from + n * a->channels + c;
            float *plane = a->to + (n * a->channels + c) * a->places;

            for (int64_t place = 0; place < a->places; place++)
                a->loops->scale(plane + place * a->block, dy, scale, a->block);
        }
}

static void global_avg_pool2d_grad_run(KilnCall *call)
{
    Average average = average_of(call, &call->outputs[0]);

    kiln_parallel(call->backend->threads, call->outputs[0].shape.dim[0], average_grain(&average), 1,
                  average_grad_part, &average);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_max_pool2d,
      .prepare = max_pool2d_prepare,
      .run = kiln_steps_run,
      .release = kiln_steps_release },
    { .op = &kiln_op_max_pool2d_grad,
      .prepare = max_pool2d_grad_prepare,
      .run = kiln_steps_run,
      .release = kiln_steps_release },
    { .op = &kiln_op_global_avg_pool2d,
      .prepare = global_avg_pool2d_prepare,
      .run = global_avg_pool2d_run },
    { .op = &kiln_op_global_avg_pool2d_grad,
      .prepare = global_avg_pool2d_grad_prepare,
      .run = global_avg_pool2d_grad_run },
};

const KilnCpuTable kiln_cpu_pooling = { kernels, KILN_COUNT(kernels) };

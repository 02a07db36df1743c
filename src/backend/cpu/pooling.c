/* Pooling: maximum by oneDNN, whose own code of the maximum's place is the
 * `index` output; averages by loops over any layout of channels. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/steps.h"

/* ---- Maximum ---------------------------------------------------------------------- */

static KilnStatus pool_mds(KilnCall *call, const KilnShape *x, const KilnShape *y,
                           KilnMdFormat format, KilnPoolMd *ret, KilnError *err)
{
    const KilnPoolAttrs *attrs = call->attrs;
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnStatus status = kiln_md_make(dnnl, KILN_MD_IMAGE, call->inputs[0].dtype, x, format,
                                     &ret->src, err);

    ret->kernel = attrs->kernel;
    ret->stride = attrs->stride;
    ret->padding = attrs->padding;
    if (status == KILN_OK)
        status = kiln_md_make(dnnl, KILN_MD_IMAGE, call->inputs[0].dtype, y, format, &ret->dst,
                              err);
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

/* ---- Average --------------------------------------------------------------------------
 * An image is `blocks` planes of [places, block]; plain order is one plane. */

typedef struct Average {
    const KilnImageLoops *loops;
    const KilnPoolAttrs *attrs;
    const int64_t *x_dim, *y_dim; /* [N, H, W, C] */
    float *x, *y;
    int64_t block, blocks;
} Average;

static int64_t block_of(const KilnCall *call, const KilnArg *image)
{
    const KilnMdFormat format = kiln_layout_format(&kiln_cpu(call)->dnnl, image->layout,
                                                   &image->shape);

    return format == KILN_MD_C16 ? 16 : format == KILN_MD_C8 ? 8 : image->shape.dim[3];
}

static Average average_of(const KilnCall *call, const KilnArg *x, const KilnArg *y)
{
    const KilnArg *larger = x->layout != KILN_PLAIN ? x : y;
    Average average = {
        .loops = kiln_cpu(call)->image_loops,
        .attrs = call->attrs,
        .x_dim = x->shape.dim,
        .y_dim = y->shape.dim,
        .x = x->data,
        .y = y->data,
        .block = block_of(call, larger),
    };

    average.blocks = (x->shape.dim[3] + average.block - 1) / average.block;
    return average;
}

/* Planes share the channels among themselves: one pixel of them all is plain. */
static bool one_place(const KilnShape *image)
{
    return image->dim[1] == 1 && image->dim[2] == 1;
}

/* Whole blocks alone, so that one place of y can be plain whatever x is. */
static KilnStatus average_layouts(KilnCall *call, KilnMdFormat format, KilnArg *x, KilnArg *y,
                                  KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    const int64_t block = format == KILN_MD_C16 ? 16 : format == KILN_MD_C8 ? 8 : 1;
    KilnStatus status = KILN_OK;

    if (format == KILN_MD_ANY || x->shape.dim[3] % block != 0)
        format = KILN_MD_PLAIN;
    x->layout = y->layout = KILN_PLAIN;
    if (format == KILN_MD_PLAIN)
        return KILN_OK;
    status = kiln_layout_image(dnnl, x->dtype, &x->shape, format, &x->layout, err);
    if (status == KILN_OK && !one_place(&y->shape))
        status = kiln_layout_image(dnnl, y->dtype, &y->shape, format, &y->layout, err);
    return status;
}

static KilnStatus avg_pool2d_prepare(KilnCall *call, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnArg *x = &call->inputs[0], *y = &call->outputs[0];
    KilnMdFormat format = kiln_layout_format(dnnl, x->layout, &x->shape);

    if (y->fixed && !one_place(&y->shape))
        format = KILN_MD_PLAIN;

    KilnStatus status = average_layouts(call, format, x, y, err);

    if (status == KILN_OK)
        kiln_output_layout(dnnl, y, y->layout);
    return status;
}

/* The window of one place of y. */
static KilnWindowLoop window_at(const Average *a, int64_t row, int64_t column, int64_t *ret_from)
{
    const KilnWindow rows = kiln_pool_window(a->attrs, 0, a->x_dim[1], a->y_dim[1], row);
    const KilnWindow columns = kiln_pool_window(a->attrs, 1, a->x_dim[2], a->y_dim[2], column);

    *ret_from = (rows.begin * a->x_dim[2] + columns.begin) * a->block;
    return (KilnWindowLoop) {
        .rows = rows.end - rows.begin,
        .columns = columns.end - columns.begin,
        .row_stride = a->x_dim[2] * a->block,
        .block = a->block,
        .scale = 1.0f / ((float)rows.count * (float)columns.count),
    };
}

static void average_plane(const Average *a, const float *x, float *y)
{
    for (int64_t row = 0; row < a->y_dim[1]; row++)
        for (int64_t column = 0; column < a->y_dim[2]; column++, y += a->block) {
            int64_t from;
            const KilnWindowLoop window = window_at(a, row, column, &from);

            a->loops->window_sum(y, x + from, &window);
        }
}

static void average_part(void *context, int64_t begin, int64_t end)
{
    const Average *a = context;
    const int64_t x_places = a->x_dim[1] * a->x_dim[2], y_places = a->y_dim[1] * a->y_dim[2];

    for (int64_t plane = begin; plane < end; plane++)
        average_plane(a, a->x + plane * x_places * a->block, a->y + plane * y_places * a->block);
}

static void avg_pool2d_run(KilnCall *call)
{
    Average a = average_of(call, &call->inputs[0], &call->outputs[0]);
    const int64_t grain = 16384 / (a.x_dim[1] * a.x_dim[2] * a.block + 1) + 1;

    kiln_parallel(call->backend->threads, a.x_dim[0] * a.blocks, grain, 1, average_part, &a);
}

/* The image goes to a convolution's neighbour, so whole blocks of channels lie as
 * convolutions like them. */
static KilnStatus avg_pool2d_grad_prepare(KilnCall *call, KilnError *err)
{
    KilnCpuBackend *cpu = kiln_cpu(call);
    KilnArg *dy = &call->inputs[0], *dx = &call->outputs[0];
    KilnStatus status = average_layouts(call, dx->fixed ? KILN_MD_PLAIN : cpu->blocked, dx, dy,
                                        err);

    if (status == KILN_OK)
        kiln_output_layout(&cpu->dnnl, dx, dx->layout);
    return status;
}

/* Windows may overlap, so shares are added up. */
static void average_grad_plane(const Average *a, float *dx, const float *dy)
{
    memset(dx, 0, (size_t)(a->x_dim[1] * a->x_dim[2] * a->block) * sizeof(*dx));
    for (int64_t row = 0; row < a->y_dim[1]; row++)
        for (int64_t column = 0; column < a->y_dim[2]; column++, dy += a->block) {
            int64_t from;
            const KilnWindowLoop window = window_at(a, row, column, &from);

            a->loops->window_add(dx + from, dy, &window);
        }
}

static void average_grad_part(void *context, int64_t begin, int64_t end)
{
    const Average *a = context;
    const int64_t x_places = a->x_dim[1] * a->x_dim[2], y_places = a->y_dim[1] * a->y_dim[2];

    for (int64_t plane = begin; plane < end; plane++)
        average_grad_plane(a, a->x + plane * x_places * a->block,
                           a->y + plane * y_places * a->block);
}

static void avg_pool2d_grad_run(KilnCall *call)
{
    Average a = average_of(call, &call->outputs[0], &call->inputs[0]);
    const int64_t grain = 16384 / (a.x_dim[1] * a.x_dim[2] * a.block + 1) + 1;

    kiln_parallel(call->backend->threads, a.x_dim[0] * a.blocks, grain, 1, average_grad_part, &a);
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
    { .op = &kiln_op_avg_pool2d, .prepare = avg_pool2d_prepare, .run = avg_pool2d_run },
    { .op = &kiln_op_avg_pool2d_grad,
      .prepare = avg_pool2d_grad_prepare,
      .run = avg_pool2d_grad_run },
};

const KilnCpuTable kiln_cpu_pooling = { kernels, KILN_COUNT(kernels) };

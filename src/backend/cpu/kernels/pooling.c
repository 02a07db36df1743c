/* Pooling in any layout of channels. The vector loops are in isa/images/pooling.c. */
#include <string.h>

#include "backend/cpu/cpu.h"

/* An image is `blocks` planes of [pixels, block]; plain order is one plane. */

static int64_t block_of(KilnMdFormat format, const KilnShape *image)
{
    return format == KILN_MD_C16 ? 16 : format == KILN_MD_C8 ? 8 : image->dim[3];
}

static KilnMdFormat format_of(const KilnCall *call, const KilnArg *image)
{
    return kiln_layout_format(&kiln_cpu(call)->dnnl, image->layout, &image->shape);
}

/* ---- Maximum ---------------------------------------------------------------------- */

/* The layouts of large image, small image and indices, all in one format. */
static KilnStatus max_layouts(KilnCall *call, KilnMdFormat format, KilnArg *const args[3],
                              KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnStatus status = KILN_OK;

    for (int i = 0; i < 3 && status == KILN_OK; i++)
        status = kiln_layout_image(dnnl, args[i]->dtype, &args[i]->shape, format, &args[i]->layout,
                                   err);
    for (int i = 0; i < call->n_outputs && status == KILN_OK; i++)
        kiln_output_layout(dnnl, &call->outputs[i], call->outputs[i].layout);
    return status;
}

static KilnStatus max_pool2d_prepare(KilnCall *call, KilnError *err)
{
    KilnArg *const args[] = { &call->inputs[0], &call->outputs[0], &call->outputs[1] };
    KilnMdFormat format = format_of(call, args[0]);

    if (format == KILN_MD_ANY || call->outputs[0].fixed || call->outputs[1].fixed)
        format = KILN_MD_PLAIN;
    return max_layouts(call, format, args, err);
}

/* Images take the layout of the indices, which the forward pass chose. */
static KilnStatus max_pool2d_grad_prepare(KilnCall *call, KilnError *err)
{
    KilnArg *const args[] = { &call->outputs[0], &call->inputs[0], &call->inputs[1] };
    KilnMdFormat format = format_of(call, args[2]);

    if (format == KILN_MD_ANY || call->outputs[0].fixed)
        format = KILN_MD_PLAIN;
    return max_layouts(call, format, args, err);
}

/* A large image x, a small one y and the indices, in either direction. */
typedef struct Maximum {
    const KilnPoolingLoops *loops;
    KilnMaxPool pool;
    char *x, *y, *index;
    size_t x_plane, y_plane, index_plane; /* bytes */
    int64_t planes;
} Maximum;

static Maximum maximum_of(const KilnCall *call, const KilnArg *x, const KilnArg *y,
                          const KilnArg *index)
{
    const KilnPoolAttrs *attrs = call->attrs;
    const int64_t block = block_of(format_of(call, x), &x->shape);
    Maximum m = {
        .loops = kiln_cpu(call)->loops->pooling,
        .pool = { .block = block, .bf16 = x->dtype == KILN_BF16, .i32 = index->dtype == KILN_I32 },
        .x = x->data,
        .y = y->data,
        .index = index->data,
        .planes = x->shape.dim[0] * ((x->shape.dim[3] + block - 1) / block),
    };

    for (int axis = 0; axis < 2; axis++) {
        m.pool.kernel[axis] = attrs->kernel[axis];
        m.pool.stride[axis] = attrs->stride[axis];
        m.pool.padding[axis] = attrs->padding[axis];
        m.pool.x_size[axis] = x->shape.dim[1 + axis];
        m.pool.y_size[axis] = y->shape.dim[1 + axis];
    }
    m.x_plane = (size_t)(m.pool.x_size[0] * m.pool.x_size[1] * block) * kiln_dtype_size(x->dtype);
    m.y_plane = (size_t)(m.pool.y_size[0] * m.pool.y_size[1] * block) * kiln_dtype_size(y->dtype);
    m.index_plane = (size_t)(m.pool.y_size[0] * m.pool.y_size[1] * block) *
                    kiln_dtype_size(index->dtype);
    return m;
}

/* Rows of y, over all planes. */
static void max_part(void *context, int64_t begin, int64_t end)
{
    const Maximum *m = context;

    for (int64_t i = begin; i < end; i++) {
        const size_t plane = (size_t)(i / m->pool.y_size[0]);

        m->loops->max_row(&m->pool, i % m->pool.y_size[0], m->y + plane * m->y_plane,
                          m->index + plane * m->index_plane, m->x + plane * m->x_plane);
    }
}

static void max_pool2d_run(KilnCall *call)
{
    Maximum m = maximum_of(call, &call->inputs[0], &call->outputs[0], &call->outputs[1]);
    const int64_t grain = 16384 / (m.pool.x_size[1] * m.pool.block * m.pool.stride[0] + 1) + 1;

    kiln_parallel(call->backend->threads, m.planes * m.pool.y_size[0], grain, 1, max_part, &m);
}

/* Rows of dx, over all planes. */
static void max_grad_part(void *context, int64_t begin, int64_t end)
{
    const Maximum *m = context;

    for (int64_t i = begin; i < end; i++) {
        const size_t plane = (size_t)(i / m->pool.x_size[0]);

        m->loops->max_grad_row(&m->pool, i % m->pool.x_size[0], m->x + plane * m->x_plane,
                               m->y + plane * m->y_plane, m->index + plane * m->index_plane);
    }
}

static void max_pool2d_grad_run(KilnCall *call)
{
    Maximum m = maximum_of(call, &call->outputs[0], &call->inputs[0], &call->inputs[1]);
    const int64_t grain = 16384 / (m.pool.x_size[1] * m.pool.block + 1) + 1;

    kiln_parallel(call->backend->threads, m.planes * m.pool.x_size[0], grain, 1, max_grad_part, &m);
}

/* ---- Average ---------------------------------------------------------------------- */

typedef struct Average {
    const KilnPoolingLoops *loops;
    const KilnPoolAttrs *attrs;
    const int64_t *x_dim, *y_dim; /* [N, H, W, C] */
    float *x, *y;
    int64_t block, blocks;
} Average;

static Average average_of(const KilnCall *call, const KilnArg *x, const KilnArg *y)
{
    const KilnArg *larger = x->layout != KILN_PLAIN ? x : y;
    Average average = {
        .loops = kiln_cpu(call)->loops->pooling,
        .attrs = call->attrs,
        .x_dim = x->shape.dim,
        .y_dim = y->shape.dim,
        .x = x->data,
        .y = y->data,
        .block = block_of(format_of(call, larger), &larger->shape),
    };

    average.blocks = (x->shape.dim[3] + average.block - 1) / average.block;
    return average;
}

/* With a single pixel the planes of channels are adjacent, so blocked and plain order agree. */
static bool is_one_pixel(const KilnShape *image)
{
    return image->dim[1] == 1 && image->dim[2] == 1;
}

/* Whole blocks only, so that a single pixel of y can be plain with any x. */
static KilnStatus average_layouts(KilnCall *call, KilnMdFormat format, KilnArg *x, KilnArg *y,
                                  KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnStatus status = KILN_OK;

    if (format == KILN_MD_ANY || x->shape.dim[3] % block_of(format, &x->shape) != 0)
        format = KILN_MD_PLAIN;
    x->layout = y->layout = KILN_PLAIN;
    if (format == KILN_MD_PLAIN)
        return KILN_OK;
    status = kiln_layout_image(dnnl, x->dtype, &x->shape, format, &x->layout, err);
    if (status == KILN_OK && !is_one_pixel(&y->shape))
        status = kiln_layout_image(dnnl, y->dtype, &y->shape, format, &y->layout, err);
    return status;
}

static KilnStatus avg_pool2d_prepare(KilnCall *call, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnArg *x = &call->inputs[0], *y = &call->outputs[0];
    KilnMdFormat format = kiln_layout_format(dnnl, x->layout, &x->shape);

    if (y->fixed && !is_one_pixel(&y->shape))
        format = KILN_MD_PLAIN;

    KilnStatus status = average_layouts(call, format, x, y, err);

    if (status == KILN_OK)
        kiln_output_layout(dnnl, y, y->layout);
    return status;
}

/* The window of one pixel of y. */
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
    const int64_t x_pixels = a->x_dim[1] * a->x_dim[2], y_pixels = a->y_dim[1] * a->y_dim[2];

    for (int64_t plane = begin; plane < end; plane++)
        average_plane(a, a->x + plane * x_pixels * a->block, a->y + plane * y_pixels * a->block);
}

static void avg_pool2d_run(KilnCall *call)
{
    Average a = average_of(call, &call->inputs[0], &call->outputs[0]);
    const int64_t grain = 16384 / (a.x_dim[1] * a.x_dim[2] * a.block + 1) + 1;

    kiln_parallel(call->backend->threads, a.x_dim[0] * a.blocks, grain, 1, average_part, &a);
}

/* The image goes to a neighbouring convolution, so it uses whole blocks of channels, as
 * convolutions prefer. */
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

/* Windows may overlap, so contributions are added. */
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
    const int64_t x_pixels = a->x_dim[1] * a->x_dim[2], y_pixels = a->y_dim[1] * a->y_dim[2];

    for (int64_t plane = begin; plane < end; plane++)
        average_grad_plane(a, a->x + plane * x_pixels * a->block,
                           a->y + plane * y_pixels * a->block);
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
      .run = max_pool2d_run,
      .bf16_inputs = 1u << 0,
      .bf16_outputs = 1u << 0 },
    { .op = &kiln_op_max_pool2d_grad,
      .prepare = max_pool2d_grad_prepare,
      .run = max_pool2d_grad_run,
      .bf16_inputs = 1u << 0,
      .bf16_outputs = 1u << 0 },
    { .op = &kiln_op_avg_pool2d, .prepare = avg_pool2d_prepare, .run = avg_pool2d_run },
    { .op = &kiln_op_avg_pool2d_grad,
      .prepare = avg_pool2d_grad_prepare,
      .run = avg_pool2d_grad_run },
};

const KilnCpuTable kiln_cpu_pooling = { kernels, KILN_COUNT(kernels) };

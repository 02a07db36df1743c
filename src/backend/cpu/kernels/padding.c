/* Padding with a tensor's edges: x as [outer, size, inner], y longer in the middle. An image in
 * blocks of channels, padded along its rows or columns, is one of [N, C / block, H, W, block]. */
#include "backend/cpu/cpu.h"

#include <string.h>

typedef struct Padding {
    const KilnPadAttrs *attrs;
    const KilnLoops *loops;
    const char *from;
    char *to;
    int64_t outer, size, padded, inner;
    size_t bytes; /* of one index: inner elements */
} Padding;

static KilnStatus pad_axis_prepare(KilnCall *call, KilnError *err)
{
    const KilnPadAttrs *attrs = call->attrs;
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnArg *x = &call->inputs[0], *y = &call->outputs[0];
    const bool stays = !y->fixed && (attrs->axis == 1 || attrs->axis == 2);
    const int64_t block = stays ? kiln_layout_whole_block(dnnl, x) : 0;
    KilnStatus status = kiln_layout_set_block(dnnl, x, block, err);

    if (status == KILN_OK)
        status = kiln_layout_set_block(dnnl, y, block, err);
    kiln_output_layout(dnnl, y, y->layout);
    return status;
}

/* `x` is the shorter of the two. */
static Padding padding_of(const KilnCall *call, const KilnArg *x)
{
    const KilnPadAttrs *attrs = call->attrs;
    const int64_t *dim = x->shape.dim;
    const int64_t block = kiln_layout_block(&kiln_cpu(call)->dnnl, x->layout, &x->shape);
    Padding p = {
        .attrs = attrs,
        .loops = kiln_cpu(call)->loops,
        .from = call->inputs[0].data,
        .to = call->outputs[0].data,
        .outer = 1,
        .size = dim[attrs->axis],
        .inner = 1,
    };

    for (int axis = 0; axis < attrs->axis; axis++)
        p.outer *= dim[axis];
    for (int axis = (int)attrs->axis + 1; axis < x->shape.rank; axis++)
        p.inner *= dim[axis];
    if (block > 0) {
        p.outer *= dim[3] / block;
        p.inner /= dim[3] / block;
    }
    p.padded = p.size + attrs->before + attrs->after;
    p.bytes = (size_t)p.inner * kiln_dtype_size(x->dtype);
    return p;
}

/* One by one: there are few, and they may be single elements. */
static void copy_edges(const Padding *p, const char *from, char *to, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        const char *place = from + (size_t)kiln_pad_source(p->attrs, p->size, i) * p->bytes;

        if (p->bytes == sizeof(float))
            memcpy(to + (size_t)i * p->bytes, place, sizeof(float));
        else
            memcpy(to + (size_t)i * p->bytes, place, p->bytes);
    }
}

static void pad_part(void *context, int64_t begin, int64_t end)
{
    const Padding *p = context;
    const int64_t first = p->attrs->before;

    for (int64_t o = begin; o < end; o++) {
        const char *from = p->from + (size_t)(o * p->size) * p->bytes;
        char *to = p->to + (size_t)(o * p->padded) * p->bytes;

        copy_edges(p, from, to, 0, first);
        memcpy(to + (size_t)first * p->bytes, from, (size_t)p->size * p->bytes);
        copy_edges(p, from, to, first + p->size, p->padded);
    }
}

/* Least rows per thread. */
static int64_t grain_of(const Padding *p)
{
    return 16384 / (p->padded * p->inner + 1) + 1;
}

static void pad_axis_run(KilnCall *call)
{
    Padding p = padding_of(call, &call->inputs[0]);

    kiln_parallel(call->backend->threads, p.outer, grain_of(&p), 1, pad_part, &p);
}

static void add_edges(const Padding *p, const float *from, float *to, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        float *place = to + kiln_pad_source(p->attrs, p->size, i) * p->inner;

        if (p->inner == 1)
            *place += from[i];
        else
            p->loops->add(place, place, from + i * p->inner, p->inner);
    }
}

static void pad_grad_part(void *context, int64_t begin, int64_t end)
{
    const Padding *p = context;
    const int64_t first = p->attrs->before;

    for (int64_t o = begin; o < end; o++) {
        const float *from = (const float *)(const void *)p->from + o * p->padded * p->inner;
        float *to = (float *)(void *)p->to + o * p->size * p->inner;

        memcpy(to, from + first * p->inner, (size_t)p->size * p->bytes);
        add_edges(p, from, to, 0, first);
        add_edges(p, from, to, first + p->size, p->padded);
    }
}

static void pad_axis_grad_run(KilnCall *call)
{
    Padding p = padding_of(call, &call->outputs[0]);

    kiln_parallel(call->backend->threads, p.outer, grain_of(&p), 1, pad_grad_part, &p);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_pad_axis,
      .prepare = pad_axis_prepare,
      .run = pad_axis_run,
      .bf16_inputs = 1,
      .bf16_outputs = 1 },
    { .op = &kiln_op_pad_axis_grad, .prepare = pad_axis_prepare, .run = pad_axis_grad_run },
};

const KilnCpuTable kiln_cpu_padding = { kernels, KILN_COUNT(kernels) };

/* Resizes an axis by weighted sums. Threads split the axes before it, and blocks of the elements
 * after it, so that the gradient's sums stay within a thread. */
#include "backend/cpu/cpu.h"

#include <string.h>

#include "graph/ops/select/lines.h"

enum { BLOCK = 512 };

/* The weights of each element of y are made once per run. */
typedef struct Window {
    int64_t first, n;
    float *weights;
} Window;

typedef struct Resize {
    const float *from;
    float *to;
    const Window *windows; /* of y */
    int64_t x, y, inner, blocks;
    bool back;
} Resize;

static int64_t blocks_of(int64_t inner)
{
    return (inner + BLOCK - 1) / BLOCK;
}

/* One block of one index of the axes before. */
static void resize_block(const Resize *r, int64_t outer, int64_t begin, int64_t n)
{
    const int64_t from_n = r->back ? r->y : r->x, to_n = r->back ? r->x : r->y;
    const float *from = r->from + outer * from_n * r->inner + begin;
    float *to = r->to + outer * to_n * r->inner + begin;

    for (int64_t i = 0; i < to_n; i++)
        memset(to + i * r->inner, 0, (size_t)n * sizeof(*to));
    for (int64_t i = 0; i < r->y; i++)
        for (int64_t k = 0; k < r->windows[i].n; k++) {
            const float weight = r->windows[i].weights[k];
            const int64_t at = r->windows[i].first + k;
            const float *source = from + (r->back ? i : at) * r->inner;
            float *target = to + (r->back ? at : i) * r->inner;

#pragma omp simd
            for (int64_t c = 0; c < n; c++)
                target[c] += weight * source[c];
        }
}

static void resize_part(void *context, int64_t begin, int64_t end)
{
    const Resize *r = context;

    for (int64_t item = begin; item < end; item++) {
        const int64_t at = item % r->blocks * BLOCK, left = r->inner - at;

        resize_block(r, item / r->blocks, at, left < BLOCK ? left : BLOCK);
    }
}

/* Windows, then their weights, in the workspace. */
static const Window *make_windows(const KilnCall *call)
{
    const KilnResizeAttrs *attrs = call->attrs;
    const int64_t most = kiln_resize_window(attrs);
    Window *windows = call->workspace;
    double *exact = (double *)(windows + attrs->out);
    void *rest = exact + most;
    float *weights = rest;

    for (int64_t i = 0; i < attrs->out; i++) {
        windows[i].weights = weights + i * most;
        windows[i].first = kiln_resize_weights(attrs, i, exact, &windows[i].n);
        for (int64_t k = 0; k < windows[i].n; k++)
            windows[i].weights[k] = (float)exact[k];
    }
    return windows;
}

static KilnStatus resize_prepare(KilnCall *call, KilnError *err)
{
    const KilnResizeAttrs *attrs = call->attrs;
    const size_t most = (size_t)kiln_resize_window(attrs);
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnArg *x = &call->inputs[0], *y = &call->outputs[0];
    const bool stays = !y->fixed && (attrs->axis == 1 || attrs->axis == 2);
    const int64_t block = stays ? kiln_layout_whole_block(dnnl, x) : 0;
    KilnStatus status = kiln_layout_set_block(dnnl, x, block, err);

    if (status == KILN_OK)
        status = kiln_layout_set_block(dnnl, y, block, err);
    kiln_output_layout(dnnl, y, y->layout);
    call->workspace_size = (size_t)attrs->out * (sizeof(Window) + most * sizeof(float)) +
                           most * sizeof(double);
    return status;
}

/* Lines in memory order: each block of channels is an image of its own. */
static KilnLines stored_lines(const KilnCall *call, int64_t axis)
{
    const KilnArg *x = &call->inputs[0];
    const int64_t *dim = x->shape.dim;
    const int64_t block = kiln_layout_block(&kiln_cpu(call)->dnnl, x->layout, &x->shape);

    if (block == 0)
        return kiln_lines_of(&x->shape, axis);
    return kiln_lines_of(&KILN_SHAPE(dim[0] * dim[3] / block, dim[1], dim[2], block), axis);
}

static void resize_run(KilnCall *call)
{
    const KilnResizeAttrs *attrs = call->attrs;
    const KilnLines lines = stored_lines(call, attrs->axis);
    Resize r = {
        .from = call->inputs[0].data,
        .to = call->outputs[0].data,
        .windows = make_windows(call),
        .x = attrs->in,
        .y = attrs->out,
        .inner = lines.inner,
        .blocks = blocks_of(lines.inner),
        .back = attrs->back != 0,
    };
    const int64_t work = attrs->out * kiln_resize_window(attrs) *
                         (lines.inner < BLOCK ? lines.inner : BLOCK);

    kiln_parallel(call->backend->threads, lines.count / lines.inner * r.blocks, 32768 / work + 1, 1,
                  resize_part, &r);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_resize, .prepare = resize_prepare, .run = resize_run },
};

const KilnCpuTable kiln_cpu_resize = { kernels, KILN_COUNT(kernels) };

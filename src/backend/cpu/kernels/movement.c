/* Kernels that only move bytes, of any element type: reshape, permute, slice, pad,
 * concat, split, broadcast of a row. */
#include "backend/cpu/cpu.h"

#include <string.h>

#include "backend/cpu/kernels/strided.h"
#include "tensor/bf16.h"

static void reshape_run(KilnCall *call)
{
    (void)call; /* the output shares the input's bytes */
}

/* ---- Permute -------------------------------------------------------------------- */

static void permute_run(KilnCall *call)
{
    const KilnPermuteAttrs *attrs = call->attrs;
    const KilnShape *out = &call->outputs[0].shape;
    int64_t stride[KILN_MAX_RANK] = { 0 };
    KilnStrided copy = {
        .rank = out->rank,
        .from = call->inputs[0].data,
        .to = call->outputs[0].data,
        .size = kiln_dtype_size(call->outputs[0].dtype),
    };

    kiln_plain_steps(&call->inputs[0].shape, stride);
    kiln_plain_steps(out, copy.to_step);
    for (int axis = 0; axis < out->rank; axis++) {
        copy.dim[axis] = out->dim[axis];
        copy.from_step[axis] = stride[attrs->order[axis]];
    }
    kiln_strided_copy(call->backend->threads, copy);
}

/* ---- Images in blocks of channels ------------------------------------------------- */

/* An image [N, H, W, C] in whole blocks is [N, C / block, H, W, block]: where its axes come from.
 */
static const int blocked_axes[] = { 0, 3, 1, 2 };

/* Channels in a block of a call's image; 0: plain order. */
static int64_t block_of(const KilnCall *call, const KilnArg *image)
{
    return kiln_layout_block(&kiln_cpu(call)->dnnl, image->layout, &image->shape);
}

/* A shape in memory order. */
static KilnShape stored_shape(const KilnShape *shape, int64_t block)
{
    const int64_t *dim = shape->dim;

    return block > 0 ? KILN_SHAPE(dim[0], dim[3] / block, dim[1], dim[2], block) : *shape;
}

/* The place in memory order of an axis. */
static int stored_axis(int64_t axis, int64_t block)
{
    return block == 0 ? (int)axis : axis == 3 ? 1 : axis == 0 ? 0 : (int)axis + 1;
}

/* Gives the images of a call, which differ in size, the same blocks; 0: plain order. */
static KilnStatus set_blocks(KilnCall *call, int64_t block, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnStatus status = KILN_OK;

    for (int i = 0; i < call->n_inputs && status == KILN_OK; i++)
        status = kiln_layout_set_block(dnnl, &call->inputs[i], block, err);
    for (int i = 0; i < call->n_outputs && status == KILN_OK; i++) {
        status = kiln_layout_set_block(dnnl, &call->outputs[i], block, err);
        kiln_output_layout(dnnl, &call->outputs[i], call->outputs[i].layout);
    }
    return status;
}

/* ---- Windows -------------------------------------------------------------------- */

/* Maps the window of `part`'s shape in `whole`: returns the offset of its first element, and the
 * steps in memory order, in elements. */
static int64_t window_steps(const KilnWindowAttrs *attrs, const KilnShape *whole, int64_t block,
                            int64_t step[KILN_MAX_RANK])
{
    const KilnShape stored = stored_shape(whole, block);
    int64_t first = 0;

    kiln_plain_steps(&stored, step);
    for (int axis = 0; axis < whole->rank; axis++) {
        const int from = block > 0 ? blocked_axes[axis] : axis;
        const int64_t start = attrs->start[from];

        first += (block > 0 && from == 3 ? start / block : start) * step[axis];
        step[axis] *= attrs->step[from];
    }
    return first;
}

static KilnStrided strided_of(const KilnArg *part, int64_t block)
{
    const KilnShape stored = stored_shape(&part->shape, block);
    KilnStrided copy = { .rank = stored.rank, .size = kiln_dtype_size(part->dtype) };

    memcpy(copy.dim, stored.dim, sizeof(copy.dim));
    return copy;
}

static void stored_steps(const KilnArg *arg, int64_t block, int64_t step[KILN_MAX_RANK])
{
    const KilnShape stored = stored_shape(&arg->shape, block);

    kiln_plain_steps(&stored, step);
}

/* An image stays in blocks of channels if the window begins and ends between two of them. */
static KilnStatus window_prepare(KilnCall *call, KilnError *err)
{
    const KilnWindowAttrs *attrs = call->attrs;
    const KilnArg *x = &call->inputs[0], *y = &call->outputs[0];
    int64_t block = y->fixed ? 0 : kiln_layout_whole_block(&kiln_cpu(call)->dnnl, x);

    if (block > 0 &&
        (attrs->step[3] != 1 || attrs->start[3] % block != 0 || y->shape.dim[3] % block != 0))
        block = 0;
    return set_blocks(call, block, err);
}

static void slice_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0], *y = &call->outputs[0];
    const int64_t block = block_of(call, y);
    KilnStrided copy = strided_of(y, block);

    copy.from = (const char *)x->data +
                window_steps(call->attrs, &x->shape, block, copy.from_step) * (int64_t)copy.size;
    stored_steps(y, block, copy.to_step);
    copy.to = y->data;
    kiln_strided_copy(call->backend->threads, copy);
}

/* One element of `dtype` that holds `value`. */
static void element_of(KilnDType dtype, double value, char ret[8])
{
    const float f32 = (float)value;
    const int32_t i32 = dtype == KILN_I32 ? (int32_t)value : 0;
    const int64_t i64 = dtype == KILN_I64 ? (int64_t)value : 0;
    const uint8_t u8 = dtype == KILN_U8 ? (uint8_t)value : 0;
    const uint16_t bf16 = kiln_bf16_of(f32);

    switch (dtype) {
    case KILN_F32:
        memcpy(ret, &f32, sizeof(f32));
        break;
    case KILN_BF16:
        memcpy(ret, &bf16, sizeof(bf16));
        break;
    case KILN_I32:
        memcpy(ret, &i32, sizeof(i32));
        break;
    case KILN_U8:
        memcpy(ret, &u8, sizeof(u8));
        break;
    case KILN_I64:
        memcpy(ret, &i64, sizeof(i64));
        break;
    case KILN_F64:
        memcpy(ret, &value, sizeof(value));
        break;
    }
}

static void pad_run(KilnCall *call)
{
    const KilnWindowAttrs *attrs = call->attrs;
    const KilnArg *x = &call->inputs[0], *y = &call->outputs[0];
    const int64_t block = block_of(call, y);
    KilnStrided copy = strided_of(x, block), fill = strided_of(y, block);
    char value[8];

    if (kiln_cpu_count(y) > kiln_cpu_count(x)) { /* one element, read repeatedly */
        element_of(y->dtype, attrs->value, value);
        fill.from = value;
        fill.to = y->data;
        stored_steps(y, block, fill.to_step);
        kiln_strided_copy(call->backend->threads, fill);
    }
    copy.from = x->data;
    stored_steps(x, block, copy.from_step);
    copy.to = (char *)y->data +
              window_steps(attrs, &y->shape, block, copy.to_step) * (int64_t)copy.size;
    kiln_strided_copy(call->backend->threads, copy);
}

/* ---- Joining and cutting --------------------------------------------------------- */

/* Whether a block divides the channels of all pieces, so that each begins with a block. */
static bool pieces_fit(const KilnArg *pieces, int n, int64_t block)
{
    for (int i = 0; i < n; i++)
        if (pieces[i].shape.dim[3] % block != 0)
            return false;
    return true;
}

/* In blocks of channels if most of the pieces' elements are and all can be. */
static KilnStatus concat_prepare(KilnCall *call, KilnError *err)
{
    const int64_t all = kiln_cpu_count(&call->outputs[0]);
    int64_t block = 0, blocked = 0;

    for (int i = 0; i < call->n_inputs && !call->outputs[0].fixed; i++) {
        const int64_t own = kiln_layout_whole_block(&kiln_cpu(call)->dnnl, &call->inputs[i]);

        if (own > 0 && (block == 0 || own == block)) {
            block = own;
            blocked += kiln_cpu_count(&call->inputs[i]);
        }
    }
    if (2 * blocked < all || (block > 0 && !pieces_fit(call->inputs, call->n_inputs, block)))
        block = 0;
    return set_blocks(call, block, err);
}

static KilnStatus split_prepare(KilnCall *call, KilnError *err)
{
    int64_t block = kiln_layout_whole_block(&kiln_cpu(call)->dnnl, &call->inputs[0]);

    for (int i = 0; i < call->n_outputs; i++)
        if (call->outputs[i].fixed)
            block = 0;
    if (block > 0 && !pieces_fit(call->outputs, call->n_outputs, block))
        block = 0;
    return set_blocks(call, block, err);
}

/* Copies a piece into or out of the whole, starting at `from` on the axis. */
static void copy_piece(const KilnCall *call, const KilnArg *part, const KilnArg *whole,
                       int64_t axis, int64_t from, bool out)
{
    const int64_t block = block_of(call, whole);
    KilnStrided copy = strided_of(part, block);
    int64_t *part_step = out ? copy.to_step : copy.from_step;
    int64_t *whole_step = out ? copy.from_step : copy.to_step;

    stored_steps(part, block, part_step);
    stored_steps(whole, block, whole_step);
    if (block > 0 && axis == 3)
        from /= block;
    char *start = (char *)whole->data +
                  from * whole_step[stored_axis(axis, block)] * (int64_t)copy.size;
    copy.from = out ? start : part->data;
    copy.to = out ? part->data : start;
    kiln_strided_copy(call->backend->threads, copy);
}

static void concat_run(KilnCall *call)
{
    const int64_t axis = ((const KilnConcatAttrs *)call->attrs)->axis;
    int64_t from = 0;

    for (int i = 0; i < call->n_inputs; i++) {
        copy_piece(call, &call->inputs[i], &call->outputs[0], axis, from, false);
        from += call->inputs[i].shape.dim[axis];
    }
}

static void split_run(KilnCall *call)
{
    const int64_t axis = ((const KilnSplitAttrs *)call->attrs)->axis;
    int64_t from = 0;

    for (int i = 0; i < call->n_outputs; i++) {
        copy_piece(call, &call->outputs[i], &call->inputs[0], axis, from, true);
        from += call->outputs[i].shape.dim[axis];
    }
}

/* ---- Triangles ----------------------------------------------------------------- */

/* Rows [begin, end) of all matrices; a row keeps its first columns, or its last ones. */
static void triangle_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnTriangleAttrs *attrs = call->attrs;
    const KilnShape *shape = &call->outputs[0].shape;
    const int64_t columns = shape->dim[shape->rank - 1], rows = shape->dim[shape->rank - 2];
    const bool upper = attrs->upper != 0;

    for (int64_t r = begin; r < end; r++) {
        const float *x = (const float *)call->inputs[0].data + r * columns;
        float *y = (float *)call->outputs[0].data + r * columns;
        int64_t cut = r % rows + attrs->diagonal + (upper ? 0 : 1); /* of the first kind */

        cut = cut < 0 ? 0 : cut > columns ? columns : cut;
        const int64_t from = upper ? cut : 0, kept = upper ? columns - cut : cut;

        if (x != y)
            memcpy(y + from, x + from, (size_t)kept * sizeof(*y));
        kiln_cpu(call)->loops->fill(y + (upper ? 0 : cut), (float)attrs->value, columns - kept);
    }
}

static void triangle_run(KilnCall *call)
{
    const KilnArg *y = &call->outputs[0];

    kiln_parallel(call->backend->threads, kiln_cpu_rows(y), 16384 / (kiln_cpu_columns(y) + 1) + 1,
                  1, triangle_part, call);
}

enum { ALL_PIECES = (1 << KILN_MAX_PIECES) - 1 };

static const KilnKernel kernels[] = {
    { .op = &kiln_op_reshape,
      .run = reshape_run,
      .alias = true,
      .bf16_inputs = 1,
      .bf16_outputs = 1 },
    { .op = &kiln_op_permute, .run = permute_run, .bf16_inputs = 1, .bf16_outputs = 1 },
    { .op = &kiln_op_slice,
      .prepare = window_prepare,
      .run = slice_run,
      .bf16_inputs = 1,
      .bf16_outputs = 1 },
    { .op = &kiln_op_pad,
      .prepare = window_prepare,
      .run = pad_run,
      .bf16_inputs = 1,
      .bf16_outputs = 1 },
    { .op = &kiln_op_concat,
      .prepare = concat_prepare,
      .run = concat_run,
      .bf16_inputs = ALL_PIECES,
      .bf16_outputs = 1 },
    { .op = &kiln_op_split,
      .prepare = split_prepare,
      .run = split_run,
      .bf16_inputs = 1,
      .bf16_outputs = ALL_PIECES },
    { .op = &kiln_op_triangle, .run = triangle_run, .in_place = 1 },
};

const KilnCpuTable kiln_cpu_movement = { kernels, KILN_COUNT(kernels) };

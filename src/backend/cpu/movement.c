/* Kernels that only move bytes: reshape, permute, rows from one row. */
#include "backend/cpu/cpu.h"

#include <string.h>

static void reshape_run(KilnCall *call)
{
    (void)call; /* the output is the input's bytes */
}

/* ---- Permute -------------------------------------------------------------------- */

/* Copies output rows (along the last axis) begin..end: the input steps by
 * `step` elements per output axis. */
typedef struct Permute {
    int rank;
    int64_t dim[KILN_MAX_RANK], step[KILN_MAX_RANK];
    const float *from;
    float *to;
} Permute;

static void permute_rows(void *context, int64_t begin, int64_t end)
{
    const Permute *permute = context;
    const int last = permute->rank - 1;
    const int64_t columns = permute->dim[last], step = permute->step[last];

    for (int64_t row = begin; row < end; row++) {
        const float *from = permute->from;
        float *to = permute->to + row * columns;
        int64_t rest = row;

        for (int axis = last - 1; axis >= 0; axis--) {
            from += rest % permute->dim[axis] * permute->step[axis];
            rest /= permute->dim[axis];
        }
        for (int64_t c = 0; c < columns; c++)
            to[c] = from[c * step];
    }
}

static void permute_run(KilnCall *call)
{
    const KilnPermuteAttrs *attrs = call->attrs;
    const KilnShape *in = &call->inputs[0].shape, *out = &call->outputs[0].shape;
    Permute permute = {
        .rank = out->rank,
        .from = call->inputs[0].data,
        .to = call->outputs[0].data,
    };
    int64_t stride[KILN_MAX_RANK] = { 0 }, size = 1;

    for (int axis = in->rank - 1; axis >= 0; axis--) {
        stride[axis] = size;
        size *= in->dim[axis];
    }
    for (int axis = 0; axis < out->rank; axis++) {
        permute.dim[axis] = out->dim[axis];
        permute.step[axis] = stride[attrs->order[axis]];
    }
    if (out->rank == 0) {
        permute.to[0] = permute.from[0];
        return;
    }
    kiln_parallel(call->backend->threads, kiln_cpu_rows(&call->outputs[0]),
                  16384 / (kiln_cpu_columns(&call->outputs[0]) + 1) + 1, 1, permute_rows, &permute);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_reshape,
      .run = reshape_run,
      .alias = true,
      .narrow_inputs = 1u << 0,
      .narrow_outputs = 1u << 0 },
    { .op = &kiln_op_permute, .run = permute_run },
};

const KilnCpuTable kiln_cpu_movement = { kernels, KILN_COUNT(kernels) };

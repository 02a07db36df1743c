/* Batches of products as products of matrices. */
#include "backend/cpu/kernels/bmm.h"

KilnGemm kiln_bmm_gemm(const KilnBmm *batch)
{
    return (KilnGemm) { .m = batch->m,
                        .n = batch->n,
                        .k = batch->k,
                        .lda = batch->transpose_a ? batch->m : batch->k,
                        .ldb = batch->transpose_b ? batch->k : batch->n,
                        .ldc = batch->n,
                        .transpose_a = batch->transpose_a,
                        .transpose_b = batch->transpose_b,
                        .alpha = 1.0f };
}

/* Whether consecutive products use consecutive matrices, or always the first. */
static bool steps_even(const KilnBmm *batch, const int64_t *steps)
{
    int64_t step = 1;

    for (int i = batch->axes.rank - 1; i >= 0; i--) {
        if (batch->axes.dim[i] > 1 && steps[i] != step)
            return false;
        step *= batch->axes.dim[i];
    }
    return true;
}

static bool steps_none(const KilnBmm *batch, const int64_t *steps)
{
    for (int i = 0; i < batch->axes.rank; i++)
        if (batch->axes.dim[i] > 1 && steps[i] != 0)
            return false;
    return true;
}

void kiln_bmm_merge(KilnBmm *batch)
{
    bool a = steps_even(batch, batch->step_a), b = steps_even(batch, batch->step_b);

    if (a && !batch->transpose_a && steps_none(batch, batch->step_b) &&
        steps_even(batch, batch->step_y))
        batch->m *= batch->count;
    else if (a && b && batch->transpose_a && !batch->transpose_b &&
             steps_none(batch, batch->step_y))
        batch->k *= batch->count;
    else
        return;
    batch->count = 1;
    batch->axes.rank = 0;
    batch->add_up = false;
}

/* The first is at the start of every summed axis. */
bool kiln_bmm_adds(const KilnBmm *batch, int64_t i)
{
    for (int axis = batch->axes.rank - 1; axis >= 0; axis--) {
        if (batch->step_y[axis] == 0 && i % batch->axes.dim[axis] != 0)
            return true;
        i /= batch->axes.dim[axis];
    }
    return false;
}

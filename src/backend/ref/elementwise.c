/* Reference of dropout, fill, permute and other element by element operations; those with a map
 * rule are in map.c. */
#include "backend/ref/ref.h"

#include <math.h>

#include "kiln/rng.h"

static void fill_run(KilnCall *call)
{
    const KilnFillAttrs *attrs = call->attrs;

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++)
        kiln_ref_set(&call->outputs[0], i, attrs->value);
}

static void reshape_run(KilnCall *call)
{
    (void)call; /* the output shares the input's bytes */
}

/* Counts up the output's multi-index; `from` follows it in the input. */
static void permute_run(KilnCall *call)
{
    const KilnPermuteAttrs *attrs = call->attrs;
    const KilnShape *in = &call->inputs[0].shape, *out = &call->outputs[0].shape;
    int64_t stride[KILN_MAX_RANK] = { 0 }, step[KILN_MAX_RANK] = { 0 };
    int64_t index[KILN_MAX_RANK] = { 0 };
    int64_t size = 1, from = 0;

    for (int axis = in->rank - 1; axis >= 0; axis--) {
        stride[axis] = size;
        size *= in->dim[axis];
    }
    for (int axis = 0; axis < out->rank; axis++)
        step[axis] = stride[attrs->order[axis]];
    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++) {
        kiln_ref_set(&call->outputs[0], i, kiln_ref_get(&call->inputs[0], from));
        for (int axis = out->rank - 1; axis >= 0; axis--) {
            from += step[axis];
            if (++index[axis] < out->dim[axis])
                break;
            from -= step[axis] * out->dim[axis];
            index[axis] = 0;
        }
    }
}

/* Element i is dropped if word i%4 of the Philox block with counter [i/4, stream] under the step's
 * key, as a number in [0, 1), is below p. */
bool kiln_ref_keeps(const int32_t *key, int64_t stream, int64_t i, double p)
{
    const uint32_t philox_key[2] = { (uint32_t)key[0], (uint32_t)key[1] };
    const uint64_t block = (uint64_t)i / 4, lane = (uint64_t)i % 4;
    const uint32_t counter[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream,
                                  (uint32_t)((uint64_t)stream >> 32) };
    uint32_t words[4];

    kiln_philox(philox_key, counter, words);
    return (double)(words[lane] >> 8) * 0x1p-24 >= p;
}

/* That of input 2, if there is one; NaN if it is out of range. */
static double rate_of(const KilnCall *call)
{
    const KilnDropoutAttrs *attrs = call->attrs;

    if (call->inputs[2].absent)
        return attrs->p;

    const double p = kiln_ref_get(&call->inputs[2], 0);

    return p >= 0.0 && p < 1.0 ? p : NAN;
}

static void dropout_run(KilnCall *call)
{
    const KilnDropoutAttrs *attrs = call->attrs;
    const int32_t *key = call->inputs[1].data;
    const double p = rate_of(call);

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++) {
        bool kept = isnan(p) || kiln_ref_keeps(key, attrs->stream, i, p);
        double x = kiln_ref_get(&call->inputs[0], i);

        kiln_ref_set(&call->outputs[0], i, kept ? x / (1.0 - p) : 0.0);
        kiln_ref_set(&call->outputs[1], i, kept);
    }
}

static void dropout_grad_run(KilnCall *call)
{
    const double p = rate_of(call);

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++) {
        bool kept = kiln_ref_get(&call->inputs[1], i) > 0.0;

        kiln_ref_set(&call->outputs[0], i,
                     kept ? kiln_ref_get(&call->inputs[0], i) / (1.0 - p) : 0.0);
    }
}

static void equal_run(KilnCall *call)
{
    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++) {
        double a = kiln_ref_get(&call->inputs[0], i), b = kiln_ref_get(&call->inputs[1], i);

        kiln_ref_set(&call->outputs[0], i, a == b ? 1.0 : 0.0);
    }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_fill, .run = fill_run },
    { .op = &kiln_op_reshape,
      .run = reshape_run,
      .alias = true,
      .bf16_inputs = 1u << 0,
      .bf16_outputs = 1u << 0 },
    { .op = &kiln_op_permute, .run = permute_run },
    { .op = &kiln_op_dropout, .run = dropout_run, .in_place = 1 },
    { .op = &kiln_op_dropout_grad, .run = dropout_grad_run, .in_place = 1 },
    { .op = &kiln_op_equal, .run = equal_run },
};

const KilnRefTable kiln_ref_elementwise = { kernels, KILN_COUNT(kernels) };

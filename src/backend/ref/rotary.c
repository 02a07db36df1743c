/* Reference of rotary position embedding. */
#include <math.h>

#include "backend/ref/ref.h"

/* The position of row 0 in the sequence of row r. */
static int64_t first_of(const KilnCall *call, int64_t r)
{
    const KilnRotaryAttrs *attrs = call->attrs;
    const int64_t sequence = r / (kiln_ref_rows(&call->inputs[0]) / call->inputs[0].shape.dim[0]);

    if (call->n_inputs == 1)
        return attrs->first;
    return attrs->first + ((const int32_t *)call->inputs[1]
                               .data)[kiln_ref_count(&call->inputs[1]) > 1 ? sequence : 0];
}

static void rotary_run(KilnCall *call)
{
    const KilnRotaryAttrs *attrs = call->attrs;
    const KilnArg *x = &call->inputs[0];
    const int64_t width = x->shape.dim[3], half = width / 2;
    const int64_t inner = attrs->heads_first != 0 ? 1 : x->shape.dim[2];
    const int64_t steps = x->shape.dim[attrs->heads_first != 0 ? 2 : 1];

    for (int64_t r = 0; r < kiln_ref_rows(x); r++) {
        const double position = (double)(first_of(call, r) + r / inner % steps);

        for (int64_t i = 0; i < half; i++) {
            const double angle = position * pow(attrs->base, -(double)i / (double)half);
            const double sine = attrs->back != 0 ? -sin(angle) : sin(angle), cosine = cos(angle);
            const int64_t first = r * width + (attrs->interleaved != 0 ? 2 * i : i);
            const int64_t second = attrs->interleaved != 0 ? first + 1 : first + half;
            const double a = kiln_ref_get(x, first), b = kiln_ref_get(x, second);

            kiln_ref_set(&call->outputs[0], first, a * cosine - b * sine);
            kiln_ref_set(&call->outputs[0], second, a * sine + b * cosine);
        }
    }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_rotary, .run = rotary_run, .in_place = 1 },
};

const KilnRefTable kiln_ref_rotary = { kernels, KILN_COUNT(kernels) };

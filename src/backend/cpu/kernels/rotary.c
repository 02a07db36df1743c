/* Rotary position embedding. The angles of all rows are computed once per run; heads share them,
 * and so do sequences that begin at the same position. */
#include <math.h>

#include "backend/cpu/cpu.h"

typedef struct Rotary {
    const float *x;
    float *y;
    const float *rotations; /* [starts][steps][half][cosine, sine] */
    int64_t width, inner, steps;
    int64_t sequence; /* rows of one; 0: all begin at one position */
    bool interleaved;
} Rotary;

static int64_t steps_of(const KilnCall *call)
{
    const KilnRotaryAttrs *attrs = call->attrs;

    return call->inputs[0].shape.dim[attrs->heads_first != 0 ? 2 : 1];
}

/* Positions at which sequences begin: one for all, or one for each. */
static int64_t starts_of(const KilnCall *call)
{
    return call->n_inputs > 1 ? kiln_cpu_count(&call->inputs[1]) : 1;
}

static KilnStatus rotary_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    call->inputs[0].layout = KILN_PLAIN;
    call->workspace_size =
        (size_t)(starts_of(call) * steps_of(call) * kiln_cpu_columns(&call->inputs[0])) *
        sizeof(float);
    return KILN_OK;
}

/* Of one sequence, whose row 0 is at position `first`. */
static void make_rotations(const KilnCall *call, float *rotations, int64_t first, int64_t half)
{
    const KilnRotaryAttrs *attrs = call->attrs;
    const int64_t steps = steps_of(call);

    for (int64_t i = 0; i < half; i++) {
        const double speed = pow(attrs->base, -(double)i / (double)half);

        for (int64_t t = 0; t < steps; t++) {
            const double angle = (double)(first + t) * speed;

            rotations[2 * (t * half + i)] = (float)cos(angle);
            rotations[2 * (t * half + i) + 1] = (float)(attrs->back != 0 ? -sin(angle)
                                                                         : sin(angle));
        }
    }
}

static void rotate_row(const Rotary *rotary, const float *rotations, const float *x, float *y)
{
    const int64_t half = rotary->width / 2, apart = rotary->interleaved ? 1 : half;
    const int64_t step = rotary->interleaved ? 2 : 1;

    for (int64_t i = 0; i < half; i++) {
        const float cosine = rotations[2 * i], sine = rotations[2 * i + 1];
        const float a = x[i * step], b = x[i * step + apart];

        y[i * step] = a * cosine - b * sine;
        y[i * step + apart] = a * sine + b * cosine;
    }
}

static void rotary_part(void *context, int64_t begin, int64_t end)
{
    const Rotary *rotary = context;

    for (int64_t r = begin; r < end; r++) {
        const int64_t start = rotary->sequence > 0 ? r / rotary->sequence : 0;
        const int64_t t = start * rotary->steps + r / rotary->inner % rotary->steps;

        rotate_row(rotary, rotary->rotations + t * rotary->width, rotary->x + r * rotary->width,
                   rotary->y + r * rotary->width);
    }
}

static void rotary_run(KilnCall *call)
{
    const KilnRotaryAttrs *attrs = call->attrs;
    const KilnArg *x = &call->inputs[0];
    Rotary rotary = {
        .x = x->data,
        .y = call->outputs[0].data,
        .rotations = call->workspace,
        .width = kiln_cpu_columns(x),
        .inner = attrs->heads_first != 0 ? 1 : x->shape.dim[2],
        .steps = steps_of(call),
        .interleaved = attrs->interleaved != 0,
    };

    const int64_t starts = starts_of(call);

    rotary.sequence = starts > 1 ? kiln_cpu_rows(x) / starts : 0;
    for (int64_t i = 0; i < starts; i++) {
        const int64_t more = call->n_inputs > 1 ? ((const int32_t *)call->inputs[1].data)[i] : 0;

        make_rotations(call, (float *)call->workspace + i * rotary.steps * rotary.width,
                       attrs->first + more, rotary.width / 2);
    }
    kiln_parallel(call->backend->threads, kiln_cpu_rows(x), 8192 / (rotary.width + 1) + 1, 1,
                  rotary_part, &rotary);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_rotary, .prepare = rotary_prepare, .run = rotary_run, .in_place = 1 },
};

const KilnCpuTable kiln_cpu_rotary = { kernels, KILN_COUNT(kernels) };

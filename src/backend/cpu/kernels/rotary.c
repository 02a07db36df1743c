/* Rotary position embedding. The rotations of fixed positions are made once, in a table that all
 * calls of a backend share; where positions are data, each run makes those of its rows. */
#include <math.h>
#include <stdlib.h>

#include "backend/cpu/cpu.h"
#include "base/system/zeros.h"

/* ---- Tables ---------------------------------------------------------------------------- */

struct KilnRotaryTable {
    KilnRotaryTable *next;
    int users; /* calls */
    double base;
    int64_t half; /* pairs of a row */
    int64_t first, steps;
    double *speeds;   /* [half]: angle per position */
    float *rotations; /* [steps][half][cosine, sine] */
    bool made;        /* of the rotations: at the first run */
};

static int64_t steps_of(const KilnCall *call)
{
    const KilnRotaryAttrs *attrs = call->attrs;

    return call->inputs[0].shape.dim[attrs->heads_first != 0 ? 2 : 1];
}

/* Where positions are data, only the speeds are known. */
static KilnRotaryTable table_of(const KilnCall *call)
{
    const KilnRotaryAttrs *attrs = call->attrs;

    return (KilnRotaryTable) {
        .base = attrs->base,
        .half = kiln_cpu_columns(&call->inputs[0]) / 2,
        .first = call->n_inputs > 1 ? 0 : attrs->first,
        .steps = call->n_inputs > 1 ? 0 : steps_of(call),
    };
}

static KilnRotaryTable *find(KilnRotaryTable *tables, const KilnRotaryTable *wanted)
{
    while (tables != NULL && (tables->base != wanted->base || tables->half != wanted->half ||
                              tables->first != wanted->first || tables->steps != wanted->steps))
        tables = tables->next;
    return tables;
}

static void table_free(KilnRotaryTable *table)
{
    free(table->speeds);
    kiln_zeros_free(table->rotations);
    free(table);
}

static KilnRotaryTable *table_new(const KilnRotaryTable *wanted)
{
    KilnRotaryTable *table = malloc(sizeof(*table));

    if (table == NULL)
        return NULL;
    *table = *wanted;
    table->speeds = malloc((size_t)(wanted->half + 1) * sizeof(*table->speeds));
    table->rotations = kiln_zeros((size_t)(wanted->steps * wanted->half * 2) * sizeof(float));
    if (table->speeds == NULL || table->rotations == NULL) {
        table_free(table);
        return NULL;
    }
    for (int64_t i = 0; i < table->half; i++)
        table->speeds[i] = pow(table->base, -(double)i / (double)table->half);
    return table;
}

static KilnStatus rotary_prepare(KilnCall *call, KilnError *err)
{
    KilnRotaryTable **tables = &kiln_cpu(call)->rotary_tables;
    const KilnRotaryTable wanted = table_of(call);
    KilnRotaryTable *table = find(*tables, &wanted);

    call->inputs[0].layout = KILN_PLAIN;
    if (call->n_inputs > 1)
        call->workspace_size = (size_t)(kiln_cpu_count(&call->inputs[1]) * steps_of(call) *
                                        kiln_cpu_columns(&call->inputs[0])) *
                               sizeof(float);
    if (table == NULL) {
        table = table_new(&wanted);
        if (table == NULL)
            return kiln_error_nomem(err, sizeof(*table));
        table->next = *tables;
        *tables = table;
    }
    table->users++;
    call->priv = table;
    return KILN_OK;
}

static void rotary_release(KilnCall *call)
{
    KilnRotaryTable **at = &kiln_cpu(call)->rotary_tables, *table = call->priv;

    call->priv = NULL;
    if (--table->users > 0)
        return;
    while (*at != table)
        at = &(*at)->next;
    *at = table->next;
    table_free(table);
}

/* ---- Rotations -------------------------------------------------------------------------- */

/* Of `steps` positions from each start on. */
typedef struct Making {
    const KilnRotaryTable *table;
    float *rotations;      /* [starts][steps][half][cosine, sine] */
    const int32_t *starts; /* NULL: one, at 0 */
    int64_t first, steps;
} Making;

static void make_part(void *context, int64_t begin, int64_t end)
{
    const Making *making = context;
    const int64_t half = making->table->half;

    for (int64_t row = begin; row < end; row++) {
        const int64_t start = making->starts != NULL ? making->starts[row / making->steps] : 0;
        float *rotations = making->rotations + 2 * row * half;

        for (int64_t i = 0; i < half; i++) {
            const double angle = (double)(making->first + start + row % making->steps) *
                                 making->table->speeds[i];

            rotations[2 * i] = (float)cos(angle);
            rotations[2 * i + 1] = (float)sin(angle);
        }
    }
}

/* The rotations of a call's rows. */
static const float *rotations_of(const KilnCall *call)
{
    KilnRotaryTable *table = call->priv;
    const KilnRotaryAttrs *attrs = call->attrs;
    const bool data = call->n_inputs > 1;
    Making making = {
        .table = table,
        .rotations = data ? call->workspace : table->rotations,
        .starts = data ? call->inputs[1].data : NULL,
        .first = attrs->first,
        .steps = steps_of(call),
    };
    const int64_t rows = making.steps * (data ? kiln_cpu_count(&call->inputs[1]) : 1);

    if (data || !table->made)
        kiln_parallel(call->backend->threads, rows, 512 / (table->half + 1) + 1, 1, make_part,
                      &making);
    table->made = !data;
    return making.rotations;
}

/* ---- The kernel -------------------------------------------------------------------------- */

typedef struct Rotary {
    const float *x;
    float *y;
    const float *rotations; /* [starts][steps][half][cosine, sine] */
    float sign;             /* of the sines */
    int64_t width, inner, steps;
    int64_t sequence; /* rows of one; 0: all begin at one position */
    bool interleaved;
} Rotary;

/* Backward turns the other way. */
static void rotate_row(const Rotary *rotary, const float *rotations, const float *x, float *y)
{
    const int64_t half = rotary->width / 2, apart = rotary->interleaved ? 1 : half;
    const int64_t step = rotary->interleaved ? 2 : 1;

    for (int64_t i = 0; i < half; i++) {
        const float cosine = rotations[2 * i], sine = rotary->sign * rotations[2 * i + 1];
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
    const int64_t starts = call->n_inputs > 1 ? kiln_cpu_count(&call->inputs[1]) : 1;
    Rotary rotary = {
        .x = x->data,
        .y = call->outputs[0].data,
        .rotations = rotations_of(call),
        .sign = attrs->back != 0 ? -1.0f : 1.0f,
        .width = kiln_cpu_columns(x),
        .inner = attrs->heads_first != 0 ? 1 : x->shape.dim[2],
        .steps = steps_of(call),
        .sequence = starts > 1 ? kiln_cpu_rows(x) / starts : 0,
        .interleaved = attrs->interleaved != 0,
    };

    kiln_parallel(call->backend->threads, kiln_cpu_rows(x), 8192 / (rotary.width + 1) + 1, 1,
                  rotary_part, &rotary);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_rotary,
      .prepare = rotary_prepare,
      .run = rotary_run,
      .release = rotary_release,
      .in_place = 1 },
};

const KilnCpuTable kiln_cpu_rotary = { kernels, KILN_COUNT(kernels) };

/* Finds the first NaN or infinity. If the call also read one, the message says so: the value then
 * came from outside the step, as data or as a parameter. */
#include "graph/plan/anomaly.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "tensor/bf16.h"

/* The floats of an argument, summarized. */
typedef struct Range {
    bool floats;      /* there are floats */
    double low, high; /* over the finite ones */
    int64_t bad;      /* position in memory of the first value that is not finite; -1: none */
    double value;     /* that one */
} Range;

static bool is_float(KilnDType dtype)
{
    return dtype == KILN_F32 || dtype == KILN_F64 || dtype == KILN_BF16;
}

/* The bytes of an argument on the host: in place, or a copy. NULL when out of memory. */
static const void *read_bytes(const KilnCall *call, const KilnArg *arg)
{
    if (kiln_backend_on_host(call->backend))
        return arg->data;
    void *copy = malloc(arg->bytes);
    if (copy != NULL)
        call->backend->ops->memory->download(call->backend, copy, arg->data, arg->bytes);
    return copy;
}

static void free_bytes(const KilnArg *arg, const void *bytes)
{
    if (bytes != arg->data)
        free((void *)bytes);
}

static double element(const void *data, KilnDType dtype, int64_t i)
{
    switch (dtype) {
    case KILN_F32:
        return (double)((const float *)data)[i];
    case KILN_F64:
        return ((const double *)data)[i];
    case KILN_BF16:
        return (double)kiln_bf16_to(((const uint16_t *)data)[i]);
    case KILN_I32:
    case KILN_I64:
    case KILN_U8:
        break;
    }
    return 0.0;
}

static Range range_of(const KilnCall *call, const KilnArg *arg)
{
    Range range = { .low = INFINITY, .high = -INFINITY, .bad = -1 };
    int64_t n = (int64_t)(arg->bytes / kiln_dtype_size(arg->dtype));
    const void *data = is_float(arg->dtype) ? read_bytes(call, arg) : NULL;

    range.floats = data != NULL;
    for (int64_t i = 0; i < n && range.floats; i++) {
        double value = element(data, arg->dtype, i);

        if (isfinite(value)) {
            range.low = fmin(range.low, value);
            range.high = fmax(range.high, value);
        } else if (range.bad < 0) {
            range.bad = i;
            range.value = value;
        }
    }
    if (data != NULL)
        free_bytes(arg, data);
    return range;
}

/* The common case is fast: the sum is finite unless a value is not. */
static bool all_finite(const KilnCall *call, const KilnArg *arg)
{
    int64_t n = (int64_t)(arg->bytes / kiln_dtype_size(arg->dtype));
    double sum = 0.0;

    if (arg->dtype != KILN_F32)
        return range_of(call, arg).bad < 0;
    const float *data = read_bytes(call, arg);
    if (data == NULL)
        return true;
    for (int64_t i = 0; i < n; i++)
        sum += fabs((double)data[i]);
    free_bytes(arg, data);
    return isfinite(sum);
}

static const char *kind_of(double value)
{
    return isnan(value) ? "NaN" : value > 0.0 ? "infinity" : "-infinity";
}

/* "input 1 f32 [8, 4] from -2 to 3.5" for each input. */
static void describe_inputs(KilnText *text, const KilnPlanCall *made)
{
    char shape[KILN_SHAPE_TEXT];

    for (int i = 0; i < made->call.n_inputs; i++) {
        const KilnArg *arg = &made->call.inputs[i];

        if (arg->absent || arg->data == NULL)
            continue;
        Range range = range_of(&made->call, arg);
        kiln_text_printf(text, "%sinput %d %s %s", text->length > 0 ? "; " : "", i + 1,
                         kiln_dtype_name(arg->dtype),
                         kiln_shape_text(&arg->shape, shape, sizeof(shape)));
        if (range.floats && range.low <= range.high)
            kiln_text_printf(text, " from %g to %g", range.low, range.high);
        if (range.bad >= 0)
            kiln_text_printf(text, ", holds %s at element %" PRId64, kind_of(range.value),
                             range.bad);
    }
}

static KilnStatus report(const KilnPlanCall *made, const KilnArg *output, KilnError *err)
{
    Range range = range_of(&made->call, output);
    KilnText inputs = { 0 };
    char shape[KILN_SHAPE_TEXT];

    describe_inputs(&inputs, made);
    KilnStatus status = kiln_error_set(
        err, KILN_E_NUMERIC,
        "%s%s%s: the result %s %s holds %s, first at element %" PRId64 "; it read: %s", made->layer,
        made->layer[0] != '\0' ? ": " : "", made->name, kiln_dtype_name(output->dtype),
        kiln_shape_text(&output->shape, shape, sizeof(shape)), kind_of(range.value), range.bad,
        inputs.length > 0 ? inputs.data : "nothing");
    kiln_text_release(&inputs);
    return status;
}

/* An infinity on purpose: a fill or a mask's value. */
static bool is_intended(const KilnPlanCall *made)
{
    const KilnOp *op = made->call.op;

    if (op == NULL)
        return false;
    if (op == &kiln_op_fill)
        return !isfinite(((const KilnFillAttrs *)made->call.attrs)->value);
    return false;
}

KilnStatus kiln_anomaly_check(const KilnPlanCall *made, KilnError *err)
{
    const KilnCall *call = &made->call;

    if (is_intended(made))
        return KILN_OK;
    for (int i = 0; i < call->n_outputs; i++)
        if (!all_finite(call, &call->outputs[i]))
            return report(made, &call->outputs[i], err);
    for (int i = 0; i < call->n_inputs && call->op != NULL; i++)
        if ((call->op->updates >> i & 1) != 0 && !call->inputs[i].absent &&
            !all_finite(call, &call->inputs[i]))
            return report(made, &call->inputs[i], err);
    return KILN_OK;
}

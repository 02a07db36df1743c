/* Points of the search space: values of axes, and the overrides of a point. */
#include <math.h>

#include "base/parse.h"
#include "sweep/sweep_state.h"

/* ---- Values ------------------------------------------------------------------------------- */

bool kiln_axis_is_interval(const KilnAxis *axis)
{
    return axis->kind == KILN_AXIS_FLOAT || axis->kind == KILN_AXIS_INT;
}

/* The number at `u` of [low, high). */
static double between(double low, double high, bool log_scale, double u)
{
    return log_scale ? low * pow(high / low, u) : low + u * (high - low);
}

KilnAxisValue kiln_axis_value(const KilnAxis *axis, double u)
{
    if (!kiln_axis_is_interval(axis)) {
        const size_t index = (size_t)(u * (double)axis->count);

        return (KilnAxisValue) { .index = index < axis->count ? index : 0 };
    }
    /* A whole number has the share of the interval around it. */
    const double half = axis->kind == KILN_AXIS_INT ? 0.5 : 0.0;
    double number = between(axis->low - half, axis->high + half, axis->log, u);

    if (axis->kind == KILN_AXIS_INT)
        number = floor(number + 0.5);
    return (KilnAxisValue) { .number = fmin(fmax(number, axis->low), axis->high) };
}

bool kiln_axis_accepts(const KilnAxis *axis, KilnAxisValue value)
{
    if (!kiln_axis_is_interval(axis))
        return value.index < axis->count;
    return value.number >= axis->low && value.number <= axis->high &&
           (axis->kind == KILN_AXIS_FLOAT || value.number == floor(value.number));
}

/* ---- Overrides ------------------------------------------------------------------------ */

const char *kiln_axis_override(const KilnAxis *axis, KilnAxisValue value, KilnArena *arena)
{
    char text[KILN_F64_TEXT];

    if (!kiln_axis_is_interval(axis))
        return axis->overrides[value.index];
    if (axis->kind == KILN_AXIS_INT)
        return kiln_arena_printf(arena, "%s=%lld", axis->key, (long long)value.number);
    return kiln_arena_printf(arena, "%s=%s", axis->key,
                             kiln_format_f64(value.number, text, sizeof(text)));
}

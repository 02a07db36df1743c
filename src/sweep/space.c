/* Points of the search space: values of axes, and the overrides of a point. */
#include <math.h>
#include <string.h>

#include "base/parse.h"
#include "kiln/tools/search.h"
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

double kiln_axis_share(const KilnAxis *axis, KilnAxisValue value)
{
    if (!kiln_axis_is_interval(axis))
        return axis->count > 0 ? ((double)value.index + 0.5) / (double)axis->count : 0.5;
    const double half = axis->kind == KILN_AXIS_INT ? 0.5 : 0.0;
    const double low = axis->low - half, high = axis->high + half;

    if (!(high > low))
        return 0.5;
    return axis->log ? log(value.number / low) / log(high / low)
                     : (value.number - low) / (high - low);
}

bool kiln_axis_is_active(const KilnSpace *space, size_t axis, const KilnAxisValue *point)
{
    const KilnAxis *at = space->axes[axis];

    for (; at->active_for != NULL; at = space->axes[at->parent])
        if (point[at->parent].index >= space->axes[at->parent]->count ||
            !at->active_for[point[at->parent].index])
            return false;
    return true;
}

bool kiln_axis_accepts(const KilnAxis *axis, KilnAxisValue value)
{
    if (!kiln_axis_is_interval(axis))
        return value.index < axis->count;
    return value.number >= axis->low && value.number <= axis->high &&
           (axis->kind == KILN_AXIS_FLOAT || value.number == floor(value.number));
}

/* ---- Overrides ------------------------------------------------------------------------ */

/* The override of a value; in the arena, or the axis's own. NULL when memory is out. */
static const char *override_of(const KilnAxis *axis, KilnAxisValue value, KilnArena *arena)
{
    char text[KILN_F64_TEXT];

    if (!kiln_axis_is_interval(axis))
        return axis->overrides[value.index];
    if (axis->kind == KILN_AXIS_INT)
        return kiln_arena_printf(arena, "%s=%lld", axis->key, (long long)value.number);
    return kiln_arena_printf(arena, "%s=%s", axis->key,
                             kiln_format_f64(value.number, text, sizeof(text)));
}

/* The number of an override of an interval: "lr=0.1". */
static bool read_number(const KilnAxis *axis, const char *override, KilnAxisValue *ret)
{
    const size_t n = strlen(axis->key);

    return strncmp(override, axis->key, n) == 0 && override[n] == '=' &&
           kiln_parse_f64(override + n + 1, &ret->number, NULL) >= 0 &&
           kiln_axis_accepts(axis, *ret);
}

/* The value with this override; false: the axis has none. */
static bool locate(const KilnAxis *axis, const char *override, KilnAxisValue *ret)
{
    if (kiln_axis_is_interval(axis))
        return read_number(axis, override, ret);
    for (size_t index = 0; index < axis->count; index++) {
        if (strcmp(axis->overrides[index], override) != 0)
            continue;
        ret->index = index;
        return true;
    }
    return false;
}

bool kiln_space_locate(const KilnSpace *space, const char *const *overrides, KilnAxisValue *ret)
{
    for (size_t i = 0; i < space->count; i++) {
        if (!kiln_axis_is_active(space, i, ret))
            continue;
        if (*overrides == NULL || !locate(space->axes[i], *overrides++, &ret[i]))
            return false;
    }
    return *overrides == NULL;
}

bool kiln_space_overrides(const KilnSpace *space, const KilnAxisValue *point, KilnArena *arena,
                          const char **ret, size_t *ret_count)
{
    size_t n = 0;

    for (size_t i = 0; i < space->count; i++) {
        if (!kiln_axis_is_active(space, i, point))
            continue;
        if ((ret[n++] = override_of(space->axes[i], point[i], arena)) == NULL)
            return false;
    }
    *ret_count = n;
    return true;
}

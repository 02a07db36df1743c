/* Points of the search space: values of axes, and the overrides of a point. */
#include <math.h>
#include <string.h>

#include "base/parse.h"
#include "config/sweep/decimal.h"
#include "kiln/search/history.h"
#include "sweep/sweep_state.h"

/* ---- Values ------------------------------------------------------------------------------- */

bool kiln_axis_is_interval(const KilnAxis *axis)
{
    return axis->kind == KILN_AXIS_FLOAT || axis->kind == KILN_AXIS_INT;
}

/* The steps between values; 0: there are none. */
static double step_of(const KilnAxis *axis)
{
    return axis->kind == KILN_AXIS_INT && axis->step == 0.0 ? 1.0 : axis->step;
}

/* The ends of the shares: a value at a step has the share of the interval around it. */
static void edges(const KilnAxis *axis, double *ret_low, double *ret_high)
{
    const double half = step_of(axis) / 2.0;

    *ret_low = axis->log ? fmax(axis->low - half, axis->low / 2.0) : axis->low - half;
    *ret_high = axis->high + half;
}

/* The number at `u` of [0, 1). */
static double number_at(const KilnAxis *axis, double u)
{
    const double step = step_of(axis);
    double low, high;

    edges(axis, &low, &high);
    double number = axis->log ? low * pow(high / low, u) : low + u * (high - low);
    if (step > 0.0)
        number = kiln_decimal_round(axis->low + step * floor((number - axis->low) / step + 0.5));
    return fmin(fmax(number, axis->low), axis->high);
}

static double weight_of(const KilnAxis *axis, size_t index)
{
    return axis->weights != NULL ? axis->weights[index] : 1.0 / (double)axis->count;
}

KilnAxisValue kiln_axis_value(const KilnAxis *axis, double u)
{
    size_t index = 0;

    if (kiln_axis_is_interval(axis))
        return (KilnAxisValue) { .number = number_at(axis, u) };
    if (axis->weights == NULL) {
        index = (size_t)(u * (double)axis->count);
        return (KilnAxisValue) { .index = index < axis->count ? index : 0 };
    }
    while (index + 1 < axis->count && u >= axis->weights[index])
        u -= axis->weights[index++];
    return (KilnAxisValue) { .index = index };
}

/* The place of a number between the edges of an interval. */
static double place_of(const KilnAxis *axis, double number)
{
    double low, high;

    edges(axis, &low, &high);
    if (!(high > low))
        return 0.5;
    number = fmin(fmax(number, low), high);
    return axis->log ? log(number / low) / log(high / low) : (number - low) / (high - low);
}

double kiln_axis_share(const KilnAxis *axis, KilnAxisValue value)
{
    double low, high;

    if (kiln_axis_is_interval(axis))
        return place_of(axis, value.number);
    kiln_axis_share_ends(axis, value, &low, &high);
    return (low + high) / 2.0;
}

void kiln_axis_share_ends(const KilnAxis *axis, KilnAxisValue value, double *ret_low,
                          double *ret_high)
{
    const double half = step_of(axis) / 2.0;

    *ret_low = 0.0;
    *ret_high = 1.0;
    if (kiln_axis_is_interval(axis)) {
        *ret_low = place_of(axis, value.number - half);
        *ret_high = place_of(axis, value.number + half);
    } else if (axis->count > 0) {
        for (size_t i = 0; i < value.index; i++)
            *ret_low += weight_of(axis, i);
        *ret_high = *ret_low + weight_of(axis, value.index);
    }
}

bool kiln_axis_varies(const KilnSpace *space, size_t axis)
{
    const KilnAxis *at = space->axes[axis];

    return at->leader == axis && (kiln_axis_is_interval(at) ? at->high > at->low : at->count > 1);
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
    const double step = step_of(axis), from_low = value.number - axis->low;
    return value.number >= axis->low && value.number <= axis->high &&
           (step == 0.0 || fabs(from_low - step * floor(from_low / step + 0.5)) < 1e-6 * step);
}

bool kiln_space_complete(const KilnSpace *space, KilnAxisValue *point, size_t *ret_wrong)
{
    for (size_t i = 0; i < space->count; i++) {
        point[i] = point[space->axes[i]->leader];
        if (!kiln_axis_is_active(space, i, point)) {
            point[i] = (KilnAxisValue) { .index = 0 };
        } else if (!kiln_axis_accepts(space->axes[i], point[i])) {
            *ret_wrong = i;
            return false;
        }
    }
    return true;
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

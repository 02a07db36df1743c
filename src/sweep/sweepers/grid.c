/* Every combination of the values, the last axis fastest. An axis with a condition counts only
 * where it is active. */
#include "kiln.h"

/* SIZE_MAX: too many. */
static size_t product(size_t a, size_t b)
{
    return b > 0 && a > SIZE_MAX / b ? SIZE_MAX : a * b;
}

static size_t sum(size_t a, size_t b)
{
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

static bool has_dependents(const KilnSpace *space, size_t axis)
{
    for (size_t i = axis + 1; i < space->count; i++)
        if (space->axes[i]->active_for != NULL && space->axes[i]->parent == axis)
            return true;
    return false;
}

static size_t subtree(const KilnSpace *space, size_t axis);

/* Combinations of the axes that depend on this one and are active for its value. */
static size_t dependents(const KilnSpace *space, size_t axis, size_t value)
{
    size_t n = 1;

    for (size_t i = axis + 1; i < space->count; i++)
        if (space->axes[i]->active_for != NULL && space->axes[i]->parent == axis &&
            space->axes[i]->active_for[value])
            n = product(n, subtree(space, i));
    return n;
}

/* Combinations of an active axis and of all axes that depend on it. */
static size_t subtree(const KilnSpace *space, size_t axis)
{
    size_t n = 0;

    if (space->axes[axis]->leader != axis)
        return 1;
    if (!has_dependents(space, axis))
        return space->axes[axis]->count;
    for (size_t value = 0; value < space->axes[axis]->count; value++)
        n = sum(n, dependents(space, axis, value));
    return n;
}

static size_t count(const KilnInstance *self, const KilnSpace *space)
{
    size_t n = 1;

    (void)self;
    for (size_t i = 0; i < space->count; i++)
        if (space->axes[i]->active_for == NULL)
            n = product(n, subtree(space, i));
    return n;
}

/* The trials with one value of each axis are neighbours, and those with a smaller value come
 * before: `left` is the trial among the `n` that have the values of the earlier axes. */
static KilnStatus ask(KilnInstance *self, const KilnHistory *history, KilnSuggestion *ret,
                      KilnError *err)
{
    const KilnSpace *space = history->space;
    size_t n = count(self, space), left = history->count;

    (void)err;
    ret->advice = left < n ? KILN_ADVICE_TRIAL : KILN_ADVICE_DONE;
    if (ret->advice == KILN_ADVICE_DONE)
        return KILN_OK;
    for (size_t i = 0; i < space->count; i++) {
        if (space->axes[i]->leader != i || !kiln_axis_is_active(space, i, ret->point))
            continue;
        const size_t others = n / subtree(space, i);
        size_t value = has_dependents(space, i) ? 0 : left / others;

        left -= value * others;
        while (left >= (n = others * dependents(space, i, value))) {
            left -= n;
            value++;
        }
        ret->point[i].index = value;
    }
    return KILN_OK;
}

static const KilnSweeperOps ops = {
    .axes = KILN_AXIS_CHOICE | KILN_AXIS_RANGE,
    .count = count,
    .ask = ask,
};

const KilnComponent kiln_sweeper_grid = {
    .kind = KILN_KIND_SWEEPER,
    .name = "grid",
    .summary = "Every combination of the values, the last one given changes fastest",
    .ops.sweeper = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_sweeper_grid, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

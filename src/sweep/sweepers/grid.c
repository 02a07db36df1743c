/* Every combination of the values, the last axis fastest. */
#include "kiln.h"

/* The first axis that varies together with `axis`. */
static size_t leader(const KilnSpace *space, size_t axis)
{
    for (size_t i = 0; space->axes[axis].zipped != 0 && i < axis; i++)
        if (space->axes[i].zipped == space->axes[axis].zipped)
            return i;
    return axis;
}

static size_t count(const KilnInstance *self, const KilnSpace *space)
{
    size_t jobs = 1;

    (void)self;
    for (size_t i = 0; i < space->count; i++) {
        size_t values = leader(space, i) == i ? space->axes[i].count : 1;

        if (values > 0 && jobs > SIZE_MAX / values)
            return SIZE_MAX;
        jobs *= values;
    }
    return jobs;
}

static KilnStatus point(const KilnInstance *self, const KilnSpace *space, size_t job,
                        size_t *choice, KilnError *err)
{
    (void)self;
    (void)err;
    for (size_t i = space->count; i-- > 0;) {
        if (leader(space, i) != i)
            continue;
        choice[i] = job % space->axes[i].count;
        job /= space->axes[i].count;
    }
    for (size_t i = 0; i < space->count; i++)
        choice[i] = choice[leader(space, i)];
    return KILN_OK;
}

static const KilnSweeperOps ops = { .count = count, .point = point };

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

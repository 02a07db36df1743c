/* Every combination of the values, the last axis fastest. */
#include "kiln.h"

static size_t values(const KilnSpace *space, size_t axis)
{
    return space->axes[axis]->leader == axis ? space->axes[axis]->count : 1;
}

static size_t count(const KilnInstance *self, const KilnSpace *space)
{
    size_t trials = 1;

    (void)self;
    for (size_t i = 0; i < space->count; i++) {
        const size_t n = values(space, i);

        if (n > 0 && trials > SIZE_MAX / n)
            return SIZE_MAX;
        trials *= n;
    }
    return trials;
}

static KilnStatus ask(KilnInstance *self, const KilnHistory *history, KilnSuggestion *ret,
                      KilnError *err)
{
    const KilnSpace *space = history->space;
    size_t trial = history->count;

    (void)err;
    if (trial >= count(self, space)) {
        ret->advice = KILN_ADVICE_DONE;
        return KILN_OK;
    }
    ret->advice = KILN_ADVICE_TRIAL;
    for (size_t i = space->count; i-- > 0;) {
        ret->point[i].index = trial % values(space, i);
        trial /= values(space, i);
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

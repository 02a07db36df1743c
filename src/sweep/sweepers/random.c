/* Points drawn at random: each value, or on a logarithmic scale each magnitude, is equally likely.
 */
#include "kiln.h"

typedef struct Opts {
    int64_t n_trials, seed;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, n_trials, "50", 1, 1e7, "jobs"),
    KILN_FIELD_I64(Opts, seed, "1", 0, 1e15, "of the points; the same seed, the same points"),
    KILN_FIELD_END,
};

static size_t count(const KilnInstance *self, const KilnSpace *space)
{
    (void)space;
    return (size_t)((const Opts *)kiln_opts(self))->n_trials;
}

static KilnStatus ask(KilnInstance *self, const KilnHistory *history, KilnSuggestion *ret,
                      KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    KilnRng rng;

    (void)err;
    ret->advice = history->count < (size_t)opts->n_trials ? KILN_ADVICE_TRIAL : KILN_ADVICE_DONE;
    kiln_rng_init(&rng, (uint64_t)opts->seed, KILN_RNG_SEARCH, 0, history->count);
    for (size_t i = 0; i < history->space->count; i++)
        ret->point[i] = kiln_axis_value(history->space->axes[i], (double)kiln_rng_uniform(&rng));
    return KILN_OK;
}

static const KilnSweeperOps ops = {
    .axes = KILN_AXIS_CHOICE | KILN_AXIS_RANGE | KILN_AXIS_FLOAT | KILN_AXIS_INT,
    .count = count,
    .ask = ask,
};

const KilnComponent kiln_sweeper_random = {
    .kind = KILN_KIND_SWEEPER,
    .name = "random",
    .summary = "Points drawn at random",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.sweeper = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_sweeper_random, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

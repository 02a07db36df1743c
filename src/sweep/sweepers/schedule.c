/* Trains a network in phases, each with values of its own, from the checkpoint of the one before:
 * what a population based training has found, again. */
#include "kiln.h"

#include <stdio.h>

typedef struct Opts {
    int64_t *until;
    size_t until_count;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64_LIST(Opts, until, NULL, 1, 1e9,
                        "epochs after which the next phase begins, ascending; the last phase "
                        "trains to the end"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "until";
    for (size_t i = 1; i < opts->until_count; i++)
        if (opts->until[i] <= opts->until[i - 1])
            return kiln_error_set(err, KILN_E_RANGE, "%lld after %lld: expected ascending epochs",
                                  (long long)opts->until[i], (long long)opts->until[i - 1]);
    return KILN_OK;
}

/* The phases are the values of each axis, one after the other, as those of zip(). */
static KilnStatus check_space(const KilnInstance *self, const KilnSpace *space, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    for (size_t i = 0; i < space->count; i++)
        if (space->axes[i]->count != 1 && space->axes[i]->count != opts->until_count + 1)
            return kiln_error_set(err, KILN_E_TYPE,
                                  "%s has %zu values, and there are %zu phases (until); write one "
                                  "value for each phase: %s=zip(...)",
                                  space->axes[i]->key, space->axes[i]->count, opts->until_count + 1,
                                  space->axes[i]->key);
    return KILN_OK;
}

static KilnStatus ask(KilnInstance *self, const KilnHistory *history, KilnSuggestion *ret,
                      KilnError *err)
{
    const size_t phase = history->count;
    const KilnTrial *before = phase > 0 ? history->trials[phase - 1] : NULL;

    (void)self;
    (void)err;
    if (before != NULL && before->status != KILN_JOB_STOPPED) {
        ret->advice = before->status == KILN_JOB_RUNNING ? KILN_ADVICE_WAIT : KILN_ADVICE_DONE;
        return KILN_OK;
    }
    for (size_t i = 0; i < history->space->count; i++)
        ret->point[i].index = history->space->axes[i]->count > 1 ? phase : 0;
    ret->advice = KILN_ADVICE_TRIAL;
    ret->trial = phase > 0 ? phase - 1 : KILN_NO_TRIAL;
    return KILN_OK;
}

static bool tell(KilnInstance *self, const KilnHistory *history, size_t trial,
                 char reason[KILN_SWEEP_REASON])
{
    const Opts *opts = kiln_opts(self);
    const KilnTrial *told = history->trials[trial];

    if (trial >= opts->until_count ||
        told->reports[told->n_reports - 1]->epoch < opts->until[trial])
        return false;
    snprintf(reason, KILN_SWEEP_REASON, "phase %zu of %zu ends", trial + 1, opts->until_count + 1);
    return true;
}

static const KilnSweeperOps ops = {
    .axes = KILN_AXIS_CHOICE | KILN_AXIS_RANGE,
    .ask = ask,
    .tell = tell,
    .check = check_space,
};

const KilnComponent kiln_sweeper_schedule = {
    .kind = KILN_KIND_SWEEPER,
    .name = "schedule",
    .summary = "One network in phases, each with values of its own",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.sweeper = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_sweeper_schedule, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

/* A sweeper that learns, for tests: it stops each trial after its first epoch, resumes the best one
 * to its end, then starts another from the checkpoint of one that is still stopped. */
#include "kiln.h"

#include <stdio.h>
#include <string.h>

typedef struct Opts {
    char *wrong;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_STR(Opts, wrong, "none", "the first answer: wait, value, resume or parent"),
    KILN_FIELD_END,
};

/* The best of the stopped trials; KILN_NO_TRIAL: one has not stopped, or one has ended. */
static size_t best_of(const KilnHistory *history, size_t n)
{
    const double sign = history->objectives[0]->mode == KILN_MODE_MAX ? 1.0 : -1.0;
    size_t best = 0;

    for (size_t i = 0; i < n; i++) {
        const KilnTrial *trial = history->trials[i];

        if (trial->status != KILN_JOB_STOPPED)
            return KILN_NO_TRIAL;
        if (sign * trial->values[0] > sign * history->trials[best]->values[0])
            best = i;
    }
    return best;
}

static size_t running(const KilnHistory *history)
{
    size_t n = 0;

    for (size_t i = 0; i < history->count; i++)
        n += history->trials[i]->status == KILN_JOB_RUNNING;
    return n;
}

static size_t first_stopped(const KilnHistory *history)
{
    for (size_t i = 0; i < history->count; i++)
        if (history->trials[i]->status == KILN_JOB_STOPPED)
            return i;
    return KILN_NO_TRIAL;
}

/* The axis with several values. */
static size_t varied(const KilnSpace *space)
{
    for (size_t i = 0; i < space->count; i++)
        if (space->axes[i]->count > 1)
            return i;
    return 0;
}

/* An answer that is refused; false: the answer is to be right. */
static bool answer_wrong(const Opts *opts, KilnSuggestion *ret)
{
    ret->advice = KILN_ADVICE_TRIAL;
    if (strcmp(opts->wrong, "wait") == 0)
        ret->advice = KILN_ADVICE_WAIT;
    else if (strcmp(opts->wrong, "value") == 0)
        ret->point[0].index = 99;
    else if (strcmp(opts->wrong, "resume") == 0)
        *ret = (KilnSuggestion) { .advice = KILN_ADVICE_RESUME, .point = ret->point, .trial = 7 };
    else if (strcmp(opts->wrong, "parent") == 0)
        ret->trial = 7;
    else
        return false;
    return true;
}

/* One trial for each value of the axis. */
static KilnStatus ask(KilnInstance *self, const KilnHistory *history, KilnSuggestion *ret,
                      KilnError *err)
{
    const size_t axis = varied(history->space), n = history->space->axes[axis]->count;

    (void)err;
    if (answer_wrong(kiln_opts(self), ret))
        return KILN_OK;
    ret->advice = KILN_ADVICE_DONE;
    if (history->count < n) {
        ret->advice = KILN_ADVICE_TRIAL;
        ret->point[axis].index = history->count;
    } else if (running(history) > 0) {
        ret->advice = KILN_ADVICE_WAIT;
    } else if (best_of(history, n) != KILN_NO_TRIAL) {
        ret->advice = KILN_ADVICE_RESUME;
        ret->trial = best_of(history, n);
    } else if (history->count == n) {
        ret->advice = KILN_ADVICE_TRIAL;
        ret->trial = first_stopped(history);
    }
    return KILN_OK;
}

static bool tell(KilnInstance *self, const KilnHistory *history, size_t trial,
                 char reason[KILN_SWEEP_REASON])
{
    const KilnTrial *told = history->trials[trial];
    const KilnTrialReport *last = told->reports[told->n_reports - 1];

    (void)self;
    snprintf(reason, KILN_SWEEP_REASON, "halved at epoch %lld: %.3f", (long long)last->epoch,
             last->values[0]);
    return last->epoch == 1;
}

static const KilnSweeperOps ops = { .axes = KILN_AXIS_CHOICE, .ask = ask, .tell = tell };

static const KilnComponent component = {
    .kind = KILN_KIND_SWEEPER,
    .name = "halving",
    .summary = "Resumes the best of the trials after an epoch",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.sweeper = &ops,
};

static const KilnComponent *const list[] = { &component, NULL };
KILN_PLUGIN_DEFINE(list)

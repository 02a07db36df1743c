/* Successive halving without waiting: of the trials that have reached a rung, a number of epochs,
 * the best 1 / reduction_factor continue to the next; the others are stopped, and resumed once they
 * belong to the best. Li et al., "A system for massively parallel hyperparameter tuning" (MLSys
 * 2020). With several brackets, whose first rungs differ: Hyperband (Li et al., JMLR 2018). */
#include "kiln.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Opts {
    int64_t min_epochs, reduction_factor, brackets;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, min_epochs, "1", 1, 1e9, "epochs of the first rung"),
    KILN_FIELD_I64(Opts, reduction_factor, "3", 2, 1000,
                   "of so many jobs one continues, to so many times the epochs"),
    KILN_FIELD_I64(Opts, brackets, "1", 1, 16,
                   "groups of jobs; each begins one rung later than the one before, so that less "
                   "depends on short runs (Hyperband)"),
    KILN_FIELD_END,
};

/* A trial that has reached a rung. */
typedef struct Racer {
    size_t trial;
    double loss;
} Racer;

typedef struct State {
    Racer *racers;
    size_t capacity;
} State;

/* ---- Brackets and rungs ----------------------------------------------------------------- */

/* The share of trials that a bracket has: the later its first rung, the fewer. */
static double share_of(const Opts *opts, int64_t bracket)
{
    const double left = (double)(opts->brackets - 1 - bracket);

    return ceil((double)opts->brackets * pow((double)opts->reduction_factor, left) / (left + 1.0));
}

/* Trials are spread over the brackets by the van der Corput sequence of their numbers. */
static int64_t bracket_of(const Opts *opts, size_t trial)
{
    double at = 0.0, all = 0.0, half = 0.5;
    int64_t bracket = 0;

    for (size_t digits = trial; digits > 0; digits >>= 1, half *= 0.5)
        at += (double)(digits & 1) * half;
    for (int64_t i = 0; i < opts->brackets; i++)
        all += share_of(opts, i);
    at *= all;
    while (bracket + 1 < opts->brackets && at >= share_of(opts, bracket))
        at -= share_of(opts, bracket++);
    return bracket;
}

/* Epochs of a rung; the first one of a bracket has its number. */
static double epochs_of(const Opts *opts, int64_t rung)
{
    return (double)opts->min_epochs * pow((double)opts->reduction_factor, (double)rung);
}

static int64_t epochs_reached(const KilnTrial *trial)
{
    return trial->n_reports > 0 ? trial->reports[trial->n_reports - 1]->epoch : 0;
}

/* The epoch of the report with which a trial reached a rung: not each epoch needs to have one. */
static int64_t arrival(const KilnTrial *trial, double epochs)
{
    size_t i = 0;

    while (i < trial->n_reports && (double)trial->reports[i]->epoch < epochs)
        i++;
    return i < trial->n_reports ? trial->reports[i]->epoch : -1;
}

static int compare(const void *a, const void *b)
{
    const Racer *x = a, *y = b;

    if (x->loss != y->loss)
        return x->loss < y->loss ? -1 : 1;
    return (x->trial > y->trial) - (x->trial < y->trial);
}

/* The trials of a bracket that have reached a rung, best first; returns how many. */
static size_t collect(const Opts *opts, State *state, const KilnHistory *history, int64_t bracket,
                      int64_t rung)
{
    size_t n = 0;

    for (size_t i = 0; i < history->count; i++) {
        const int64_t epoch = bracket_of(opts, i) == bracket
                                  ? arrival(history->trials[i], epochs_of(opts, rung))
                                  : -1;

        if (epoch >= 0)
            state->racers[n++] = (Racer) { i, kiln_trial_best(history, i, 0, epoch) };
    }
    if (n > 0)
        qsort(state->racers, n, sizeof(*state->racers), compare);
    return n;
}

/* How many of `n` continue: at least one when no other trial follows, so that one gets to the end.
 */
static size_t promoted(const Opts *opts, const KilnHistory *history, size_t n)
{
    const size_t best = n / (size_t)opts->reduction_factor;

    return best == 0 && history->complete && n > 0 ? 1 : best;
}

/* ---- Decisions ----------------------------------------------------------------------------- */

/* The rung that the last report reached; -1: none. */
static int64_t reached_now(const Opts *opts, const KilnTrial *trial, int64_t bracket)
{
    const int64_t now = epochs_reached(trial);
    const int64_t before = trial->n_reports > 1 ? trial->reports[trial->n_reports - 2]->epoch : 0;
    int64_t rung = bracket;

    while (epochs_of(opts, rung + 1) <= (double)now)
        rung++;
    return epochs_of(opts, rung) <= (double)now && epochs_of(opts, rung) > (double)before ? rung
                                                                                          : -1;
}

/* "the best 2 continue" */
static const char *rule_text(const Opts *opts, size_t best, char *ret, size_t size)
{
    if (best == 0)
        snprintf(ret, size, "one of %lld continues", (long long)opts->reduction_factor);
    else if (best == 1)
        snprintf(ret, size, "the best one continues");
    else
        snprintf(ret, size, "the best %zu continue", best);
    return ret;
}

static bool prune(KilnInstance *self, const KilnHistory *history, size_t trial,
                  char reason[KILN_SWEEP_REASON])
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const int64_t bracket = bracket_of(opts, trial);
    const int64_t rung = reached_now(opts, history->trials[trial], bracket);

    if (rung < 0 || !KILN_RESERVE(state->racers, state->capacity, history->count))
        return false;
    const size_t n = collect(opts, state, history, bracket, rung);
    const size_t best = promoted(opts, history, n);
    size_t place = 0;
    while (state->racers[place].trial != trial)
        place++;
    if (place < best && isfinite(state->racers[place].loss))
        return false;
    char rule[64];
    snprintf(reason, KILN_SWEEP_REASON, "after epoch %lld: rank %zu of %zu at this rung, where %s",
             (long long)epochs_reached(history->trials[trial]), place + 1, n,
             rule_text(opts, best, rule, sizeof(rule)));
    return true;
}

/* The best trial that was stopped at the rung, and belongs to the best by now. */
static size_t promotable(const Opts *opts, State *state, const KilnHistory *history,
                         int64_t bracket, int64_t rung)
{
    const size_t n = collect(opts, state, history, bracket, rung);

    for (size_t i = 0; i < promoted(opts, history, n); i++) {
        const KilnTrial *trial = history->trials[state->racers[i].trial];

        if (trial->status == KILN_JOB_STOPPED && isfinite(state->racers[i].loss) &&
            (double)epochs_reached(trial) < epochs_of(opts, rung + 1))
            return state->racers[i].trial;
    }
    return KILN_NO_TRIAL;
}

/* From the highest rung down. */
static size_t resume(KilnInstance *self, const KilnHistory *history)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    int64_t most = 0, top = 0;
    size_t found = KILN_NO_TRIAL;

    if (!KILN_RESERVE(state->racers, state->capacity, history->count + 1))
        return KILN_NO_TRIAL;
    for (size_t i = 0; i < history->count; i++)
        if (epochs_reached(history->trials[i]) > most)
            most = epochs_reached(history->trials[i]);
    while (epochs_of(opts, top + 1) <= (double)most)
        top++;
    for (int64_t rung = top; rung >= 0 && found == KILN_NO_TRIAL; rung--)
        for (int64_t bracket = 0; bracket < opts->brackets && found == KILN_NO_TRIAL; bracket++)
            if (bracket <= rung)
                found = promotable(opts, state, history, bracket, rung);
    return found;
}

static void release(KilnInstance *self)
{
    free(((State *)kiln_state(self))->racers);
}

static const KilnPrunerOps ops = { .prune = prune, .resume = resume };

const KilnComponent kiln_pruner_asha = {
    .kind = KILN_KIND_PRUNER,
    .name = "asha",
    .summary = "Successive halving: many short jobs, of which the best continue (ASHA, Hyperband)",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.pruner = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_pruner_asha, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

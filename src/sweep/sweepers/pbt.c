/* Population based training: all members of a population train some epochs; then the worst are
 * replaced by copies of the best, which continue from their checkpoints with other values.
 * Jaderberg et al., "Population based training of neural networks" (2017). The members of a
 * generation wait for each other, so that the result does not depend on how many run at a time. */
#include "kiln.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Opts {
    int64_t population, interval_epochs, seed;
    double quantile, resample, factor;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, population, "8", 2, 1e6, "jobs that train side by side"),
    KILN_FIELD_I64(Opts, interval_epochs, "1", 1, 1e9,
                   "epochs that they train before the worst are replaced"),
    KILN_FIELD_F64(Opts, quantile, "0.25", 0.0, 0.5,
                   "the share of the population that is replaced, by copies of as many best"),
    KILN_FIELD_F64(Opts, resample, "0.25", 0.0, 1.0,
                   "how often a value of a copy is drawn again, instead of changed a little"),
    KILN_FIELD_F64(Opts, factor, "1.2", 1.0001, 1000.0,
                   "a number is multiplied by it, or divided by it"),
    KILN_FIELD_I64(Opts, seed, "1", 0, 1e15, "of the points; the same seed, the same points"),
    KILN_FIELD_END,
};

/* A member at the end of a generation. */
typedef struct Member {
    size_t slot;  /* in the population */
    size_t trial; /* that it is */
    double loss;  /* its last one; INFINITY: it failed */
} Member;

typedef struct State {
    size_t *trials; /* of the population, by slot */
    Member *ranked;
    size_t capacity, ranked_capacity;
} State;

/* ---- The history ------------------------------------------------------------------------- */

/* The report of an epoch; NULL: there is none. */
static const KilnTrialReport *report_at(const KilnTrial *trial, int64_t epoch)
{
    for (size_t i = trial->n_reports; i > 0 && trial->reports[i - 1]->epoch >= epoch; i--)
        if (trial->reports[i - 1]->epoch == epoch)
            return trial->reports[i - 1];
    return NULL;
}

static bool has_failed(const KilnTrial *trial)
{
    return trial->status == KILN_JOB_FAILED || trial->status == KILN_JOB_TIMEOUT ||
           trial->status == KILN_JOB_KILLED || trial->status == KILN_JOB_FORBIDDEN;
}

static bool is_running(const KilnTrial *trial)
{
    return trial->status == KILN_JOB_RUNNING || trial->status == KILN_JOB_WAITING ||
           trial->status == KILN_JOB_INTERRUPTED;
}

/* Has the trial trained to the end of the generation, or will it never? Before the generation is
 * `decided`, one that runs has yet to stop there; after that it has been resumed. */
static bool has_arrived(const KilnTrial *trial, int64_t epoch, bool decided)
{
    const int64_t last = trial->n_reports > 0 ? trial->reports[trial->n_reports - 1]->epoch : 0;

    return !is_running(trial) || last > epoch || (decided && last == epoch);
}

static int compare(const void *a, const void *b)
{
    const Member *x = a, *y = b;

    if (x->loss != y->loss)
        return x->loss < y->loss ? -1 : 1;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

/* Rank the members by their values at the epoch, best first. */
static void rank(const Opts *opts, State *state, const KilnHistory *history, int64_t epoch)
{
    const size_t n = (size_t)opts->population;

    for (size_t slot = 0; slot < n; slot++) {
        const KilnTrial *trial = history->trials[state->trials[slot]];
        const KilnTrialReport *report = has_failed(trial) ? NULL : report_at(trial, epoch);
        const double value = report != NULL ? report->values[0] : (double)NAN;

        state->ranked[slot] = (Member) {
            .slot = slot,
            .trial = state->trials[slot],
            .loss = kiln_objective_loss(history->objectives[0], value),
        };
    }
    qsort(state->ranked, n, sizeof(*state->ranked), compare);
}

/* ---- New values ------------------------------------------------------------------------------ */

static KilnAxisValue change(const Opts *opts, const KilnAxis *axis, KilnAxisValue value,
                            KilnRng *rng)
{
    const bool resample = (double)kiln_rng_uniform(rng) < opts->resample;
    const double u = (double)kiln_rng_uniform(rng);
    const bool up = (kiln_rng_u32(rng) & 1) != 0;

    if (resample)
        return kiln_axis_value(axis, u);
    if (axis->kind == KILN_AXIS_RANGE) {
        if (up && value.index + 1 < axis->count)
            value.index++;
        else if (!up && value.index > 0)
            value.index--;
    } else if (axis->kind != KILN_AXIS_CHOICE) {
        value.number *= up ? opts->factor : 1.0 / opts->factor;
        value.number = fmin(fmax(value.number, axis->low), axis->high);
        const double share = kiln_axis_share(axis, value); /* the nearest value of the axis */
        value = kiln_axis_value(axis, fmin(fmax(share, 0.0), 1.0 - 1e-9));
    }
    return value;
}

static void draw(const Opts *opts, const KilnHistory *history, size_t parent, KilnAxisValue *ret)
{
    const KilnSpace *space = history->space;
    KilnRng rng;

    kiln_rng_init(&rng, (uint64_t)opts->seed, KILN_RNG_SEARCH, 1, history->count);
    for (size_t i = 0; i < space->count; i++)
        ret[i] = parent == KILN_NO_TRIAL
                     ? kiln_axis_value(space->axes[i], (double)kiln_rng_uniform(&rng))
                     : change(opts, space->axes[i], history->trials[parent]->point[i], &rng);
}

/* The member that a copy is made of: one of the best `n`. */
static size_t choose_parent(const Opts *opts, const State *state, size_t copy, size_t n)
{
    KilnRng rng;

    kiln_rng_init(&rng, (uint64_t)opts->seed, KILN_RNG_SEARCH, 2, copy);
    return state->ranked[kiln_rng_below(&rng, (uint32_t)n)].trial;
}

/* ---- Answers --------------------------------------------------------------------------------- */

static bool reserve(const Opts *opts, State *state)
{
    const size_t n = (size_t)opts->population;

    return KILN_RESERVE(state->trials, state->capacity, n) &&
           KILN_RESERVE(state->ranked, state->ranked_capacity, n);
}

static bool all_arrived(const Opts *opts, const State *state, const KilnHistory *history,
                        int64_t epoch, bool decided)
{
    for (size_t slot = 0; slot < (size_t)opts->population; slot++)
        if (!has_arrived(history->trials[state->trials[slot]], epoch, decided))
            return false;
    return true;
}

/* Members that are replaced at the end of a generation: the worst, and those that failed. Every
 * parent has a value. */
static size_t count_replaced(const Opts *opts, const State *state)
{
    const size_t n = (size_t)opts->population;
    size_t good = n, worst = (size_t)((double)n * opts->quantile);

    while (good > 0 && !isfinite(state->ranked[good - 1].loss))
        good--;
    if (good == 0)
        return 0;
    if (worst == 0 && opts->quantile > 0.0)
        worst = 1;
    return worst > n - good ? worst : n - good;
}

/* Replace members by the copies that the history has, from *next on. True: a copy is missing, which
 * is suggested. */
static bool replace(const Opts *opts, State *state, const KilnHistory *history, size_t *next,
                    KilnSuggestion *ret)
{
    const size_t n = (size_t)opts->population, replaced = count_replaced(opts, state);
    const size_t good = n - replaced, best = good < replaced ? good : replaced;

    for (size_t i = good; i < n; i++) {
        if (*next == history->count) {
            ret->advice = KILN_ADVICE_TRIAL;
            ret->trial = choose_parent(opts, state, *next, best > 0 ? best : 1);
            draw(opts, history, ret->trial, ret->point);
            return true;
        }
        state->trials[state->ranked[i].slot] = (*next)++;
    }
    return false;
}

/* True: a member that stopped at the epoch is to continue. */
static bool resume_one(const Opts *opts, const State *state, const KilnHistory *history,
                       int64_t epoch, KilnSuggestion *ret)
{
    for (size_t slot = 0; slot < (size_t)opts->population; slot++) {
        const KilnTrial *trial = history->trials[state->trials[slot]];

        if (trial->status != KILN_JOB_STOPPED ||
            trial->reports[trial->n_reports - 1]->epoch != epoch)
            continue;
        ret->advice = KILN_ADVICE_RESUME;
        ret->trial = state->trials[slot];
        return true;
    }
    return false;
}

/* Does a member train on after the epoch? */
static bool goes_on(const Opts *opts, const State *state, const KilnHistory *history, int64_t epoch)
{
    for (size_t slot = 0; slot < (size_t)opts->population; slot++) {
        const KilnTrial *trial = history->trials[state->trials[slot]];
        const int64_t last = trial->n_reports > 0 ? trial->reports[trial->n_reports - 1]->epoch : 0;

        if (last > epoch || (last == epoch && trial->status == KILN_JOB_STOPPED))
            return true;
    }
    return false;
}

/* Goes through the generations as they were. */
static KilnStatus ask(KilnInstance *self, const KilnHistory *history, KilnSuggestion *ret,
                      KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    size_t next = (size_t)opts->population;

    if (!reserve(opts, state))
        return kiln_error_nomem(err, next);
    if (history->count < next) {
        ret->advice = KILN_ADVICE_TRIAL;
        draw(opts, history, KILN_NO_TRIAL, ret->point);
        return KILN_OK;
    }
    for (size_t slot = 0; slot < next; slot++)
        state->trials[slot] = slot;
    for (int64_t epoch = opts->interval_epochs;; epoch += opts->interval_epochs) {
        /* The copies of a generation come before anything else. */
        const bool decided = next < history->count || opts->quantile == 0.0;

        if (!all_arrived(opts, state, history, epoch, decided)) {
            ret->advice = KILN_ADVICE_WAIT;
            return KILN_OK;
        }
        rank(opts, state, history, epoch);
        if (!goes_on(opts, state, history, epoch)) {
            ret->advice = KILN_ADVICE_DONE;
            return KILN_OK;
        }
        /* Copies come first: what they are made of trains on later. */
        if (replace(opts, state, history, &next, ret) ||
            resume_one(opts, state, history, epoch, ret))
            return KILN_OK;
    }
}

static bool tell(KilnInstance *self, const KilnHistory *history, size_t trial,
                 char reason[KILN_SWEEP_REASON])
{
    const Opts *opts = kiln_opts(self);
    const KilnTrial *told = history->trials[trial];
    const int64_t epoch = told->reports[told->n_reports - 1]->epoch;

    if (epoch % opts->interval_epochs != 0)
        return false;
    snprintf(reason, KILN_SWEEP_REASON, "generation %lld ends",
             (long long)(epoch / opts->interval_epochs));
    return true;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->trials);
    free(state->ranked);
}

static const KilnSweeperOps ops = {
    .axes = KILN_AXIS_CHOICE | KILN_AXIS_RANGE | KILN_AXIS_FLOAT | KILN_AXIS_INT,
    .ask = ask,
    .tell = tell,
};

const KilnComponent kiln_sweeper_pbt = {
    .kind = KILN_KIND_SWEEPER,
    .name = "pbt",
    .summary = "Population based training: the worst continue as changed copies of the best",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.sweeper = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_sweeper_pbt, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

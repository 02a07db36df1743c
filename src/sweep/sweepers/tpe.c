/* Points where good trials are dense and bad ones are not: the tree-structured Parzen estimator.
 * Bergstra et al., "Algorithms for hyper-parameter optimization" (2011); Watanabe, "Tree-structured
 * Parzen estimator: understanding its algorithm components" (2023).
 *
 * Two densities of kernels, one kernel for each trial: of the good trials and of all others, which
 * include failed and running ones. Points are drawn from the good one; the one with the largest
 * ratio of both is suggested. Axes that are active under the same condition have a joint density:
 * a group. Densities are on the axes' shares of [0, 1). bench/search/search.c measures the choices
 * made here. */
#include "kiln.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    int64_t n_trials, startup_trials, seed, candidates;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, n_trials, "50", 1, 1e7, "jobs"),
    KILN_FIELD_I64(Opts, startup_trials, "10", 1, 1e7,
                   "points are random until so many trials have a result"),
    KILN_FIELD_I64(Opts, seed, "1", 0, 1e15, "of the random numbers"),
    KILN_FIELD_I64(Opts, candidates, "24", 1, 1e5, "points of which the best one is suggested"),
    KILN_FIELD_END,
};

/* Good trials: a tenth of those with a result, at most so many. */
enum { MOST_GOOD = 25 };
/* Where all candidates are points of trials, so many random points follow until one is not. */
enum { MOST_DRAWS = 20 };

typedef struct Density {
    size_t n; /* kernels: one for each trial, and last the prior, which covers the whole range */
    double *weights;     /* with the sum 1 */
    double *log_weights; /* over the integral of the kernel */
    /* By axis of the group, then by kernel. */
    double *centers; /* shares; of a choice the index */
    double *inverse; /* 1 / standard deviation; not of a choice */
} Density;

/* A trial's value of an axis of numbers in [0, 1). */
typedef struct Place {
    double number;        /* the value, or its index */
    double center, width; /* of its share; the width of a point is 0 */
} Place;

/* Axes that are active under the same condition. */
typedef struct Group {
    const KilnSpace *space;
    const Place *places; /* of all trials, and in each of all axes of the space */
    const size_t *axes;
    size_t d;
} Group;

typedef struct State {
    KilnRankedTrial *ranks;
    bool *is_good; /* by trial */
    size_t *good, *bad;
    size_t *axes;
    bool *done; /* by axis */
    double *block;
    Place *places; /* kept, since they take most of the time */
    size_t n_placed;
    size_t places_size, ranks_size, is_good_size, good_size, bad_size, axes_size, done_size,
        block_size;
    Density density[2];       /* of the good ones, and of the others; in `block` */
    double *room;             /* by kernel */
    double *candidate, *best; /* by axis of the group: shares, of a choice the index */
} State;

static double *take(double **block, size_t n)
{
    *block += n;
    return *block - n;
}

static bool reserve(State *state, size_t trials, size_t axes)
{
    const size_t kernels = trials + 2; /* of both densities */

    return KILN_RESERVE(state->ranks, state->ranks_size, trials + 1) &&
           KILN_RESERVE(state->is_good, state->is_good_size, trials + 1) &&
           KILN_RESERVE(state->good, state->good_size, trials + 1) &&
           KILN_RESERVE(state->bad, state->bad_size, trials + 1) &&
           KILN_RESERVE(state->places, state->places_size, trials * axes + 1) &&
           KILN_RESERVE(state->axes, state->axes_size, axes + 1) &&
           KILN_RESERVE(state->done, state->done_size, axes + 1) &&
           KILN_RESERVE(state->block, state->block_size, kernels * (2 * axes + 3) + 2 * axes);
}

static bool is_choice(const Group *group, size_t j)
{
    return group->space->axes[group->axes[j]]->kind == KILN_AXIS_CHOICE;
}

/* ---- Places ------------------------------------------------------------------------------- */

static Place place_of(const KilnAxis *axis, KilnAxisValue value, double number)
{
    double low, high;

    kiln_axis_share_ends(axis, value, &low, &high);
    return (Place) { .number = number,
                     .center = fmin(fmax(kiln_axis_share(axis, value), 0.0), 1.0),
                     .width = high - low };
}

/* Compute the places of all trials, except those that are known from the last call. */
static void place_trials(State *state, const KilnHistory *history)
{
    const KilnSpace *space = history->space;

    for (size_t i = 0; i < history->count; i++) {
        const KilnAxisValue *point = history->trials[i]->point;

        for (size_t j = 0; j < space->count; j++) {
            const KilnAxis *axis = space->axes[j];
            Place *place = &state->places[i * space->count + j];

            if (axis->kind == KILN_AXIS_CHOICE)
                continue;
            const double number = axis->kind == KILN_AXIS_RANGE ? (double)point[j].index
                                                                : point[j].number;
            if (i >= state->n_placed || place->number != number)
                *place = place_of(axis, point[j], number);
        }
    }
    state->n_placed = history->count;
}

/* ---- Kernels ------------------------------------------------------------------------------ */

static void lay_out(Density *density, double **block, size_t n, size_t d)
{
    density->n = n + 1;
    density->weights = take(block, n + 1);
    density->log_weights = take(block, n + 1);
    density->centers = take(block, (n + 1) * d);
    density->inverse = take(block, (n + 1) * d);
}

/* Good trials count by their rank; the first one most. The prior counts as one trial. */
static void weigh(Density *density, bool good)
{
    const size_t n = density->n - 1;
    double sum = 1.0;

    density->weights[n] = 1.0;
    for (size_t k = 0; k < n; k++) {
        density->weights[k] = good ? log((double)n + 1.0) - log((double)k + 1.0) : 1.0;
        sum += density->weights[k];
    }
    for (size_t k = 0; k <= n; k++) {
        density->weights[k] /= sum;
        density->log_weights[k] = log(density->weights[k]);
    }
}

/* The distance to the farther one of the two neighbours; at an end, to the only one. A lone center
 * has the ends of the range as neighbours. */
static double spacing(const double *centers, size_t n, size_t k)
{
    double below = -1.0, above = 2.0;

    for (size_t i = 0; i < n; i++) {
        const double x = centers[i];

        if (x < centers[k] || (x == centers[k] && i < k))
            below = fmax(below, x);
        else if (i != k)
            above = fmin(above, x);
    }
    if (n == 1)
        return fmax(centers[k], 1.0 - centers[k]);
    if (below < 0.0)
        return above - centers[k];
    return above > 1.0 ? centers[k] - below : fmax(centers[k] - below, above - centers[k]);
}

/* The standard deviation of a kernel. Those of good trials are as narrow as the trials are close,
 * and become narrower with each; those of the others are equal and wide. Compared with the same
 * rule for both, the search finds better points: near good trials, and not beside many bad ones. */
static double deviation(const double *centers, size_t n, size_t k, bool good)
{
    if (good)
        return fmin(fmax(spacing(centers, n, k), 0.5 / ((double)n + 2.0)), 1.0);
    return fmin(3.0 / fmin((double)n + 2.0, 100.0), 1.0);
}

/* What a normal distribution has above `z`, in standard deviations. */
static double tail(double z)
{
    return z > 6.0 ? 0.0 : 0.5 * erfc(z * sqrt(0.5));
}

/* The kernels on an axis of numbers: normal distributions cut off at 0 and 1. A value with a share
 * wider than a point widens its kernel, as if it were uniform there. */
static void place_numbers(Density *density, const Group *group, size_t j, const size_t *trials,
                          bool good)
{
    const size_t n = density->n - 1;
    const Place *places = group->places + group->axes[j];
    double *centers = density->centers + j * density->n;
    double *inverse = density->inverse + j * density->n;

    for (size_t k = 0; k < n; k++)
        centers[k] = places[trials[k] * group->space->count].center;
    centers[n] = 0.5;
    for (size_t k = 0; k <= n; k++) {
        double s = k < n ? deviation(centers, n, k, good) : 1.0;
        const double width = k < n ? places[trials[k] * group->space->count].width : 0.0;

        if (width > 0.0)
            s = sqrt(s * s + width * width / 12.0);
        inverse[k] = 1.0 / s;
        density->log_weights[k] -=
            log(s * (1.0 - tail(centers[k] / s) - tail((1.0 - centers[k]) / s)));
    }
}

/* The kernels of `n` trials; the best one first if they are good. */
static void estimate(Density *density, const Group *group, const KilnHistory *history,
                     const size_t *trials, bool good)
{
    weigh(density, good);
    for (size_t j = 0; j < group->d; j++) {
        if (!is_choice(group, j)) {
            place_numbers(density, group, j, trials, good);
            continue;
        }
        for (size_t k = 0; k + 1 < density->n; k++)
            density->centers[j * density->n + k] =
                (double)history->trials[trials[k]]->point[group->axes[j]].index;
    }
}

/* A kernel of a choice has the trial's value, or with a probability that falls with the number of
 * kernels any. Returns that probability. */
static double any_choice(const Density *density, double choices)
{
    return choices / (choices + (double)density->n);
}

static void add_choice(const Density *density, size_t j, double choices, double at, double *logs)
{
    const double *centers = density->centers + j * density->n;
    const double any = any_choice(density, choices);
    const double miss = log(any / choices), hit = log(any / choices + 1.0 - any);

    for (size_t k = 0; k + 1 < density->n; k++)
        logs[k] += centers[k] == at ? hit : miss;
    logs[density->n - 1] -= log(choices);
}

static void add_number(const Density *density, size_t j, double at, double *logs)
{
    const double *centers = density->centers + j * density->n;
    const double *inverse = density->inverse + j * density->n;

    for (size_t k = 0; k < density->n; k++) {
        const double z = (at - centers[k]) * inverse[k];

        logs[k] -= 0.5 * z * z;
    }
}

/* log(sum(exp(logs))); terms that would not change it are left out. */
static double log_sum(const double *logs, size_t n)
{
    double most = logs[0], sum = 0.0;

    for (size_t k = 1; k < n; k++)
        most = logs[k] > most ? logs[k] : most;
    for (size_t k = 0; k < n; k++)
        if (logs[k] > most - 30.0)
            sum += exp(logs[k] - most);
    return most + log(fmax(sum, 1.0)); /* the largest term alone is 1 */
}

/* The logarithm of the density at the point, up to a constant. `room`: by kernel. */
static double log_density(const Density *density, const Group *group, const double *at,
                          double *room)
{
    memcpy(room, density->log_weights, density->n * sizeof(*room));
    for (size_t j = 0; j < group->d; j++) {
        if (is_choice(group, j))
            add_choice(density, j, (double)group->space->axes[group->axes[j]]->count, at[j], room);
        else
            add_number(density, j, at[j], room);
    }
    return log_sum(room, density->n);
}

/* ---- Points ------------------------------------------------------------------------------- */

static double draw_number(const KilnAxis *axis, double center, double inverse, KilnRng *rng)
{
    double u;

    do
        u = center + (double)kiln_rng_normal(rng) / inverse;
    while (u < 0.0 || u >= 1.0);
    return axis->kind == KILN_AXIS_FLOAT && axis->step == 0.0
               ? u
               : kiln_axis_share(axis, kiln_axis_value(axis, u));
}

/* Draw a point from the density. */
static void draw(const Density *density, const Group *group, KilnRng *rng, double *ret)
{
    double u = (double)kiln_rng_uniform(rng);
    size_t k = 0;

    for (; k + 1 < density->n && u >= density->weights[k]; k++)
        u -= density->weights[k];
    for (size_t j = 0; j < group->d; j++) {
        const KilnAxis *axis = group->space->axes[group->axes[j]];
        const size_t at = j * density->n + k;

        if (!is_choice(group, j))
            ret[j] = draw_number(axis, density->centers[at], density->inverse[at], rng);
        else if (k + 1 == density->n ||
                 (double)kiln_rng_uniform(rng) < any_choice(density, (double)axis->count))
            ret[j] = (double)kiln_rng_below(rng, (uint32_t)axis->count);
        else
            ret[j] = density->centers[at];
    }
}

static bool is_same(const KilnSpace *space, const KilnAxisValue *a, const KilnAxisValue *b)
{
    for (size_t i = 0; i < space->count; i++) {
        const KilnAxisKind kind = space->axes[i]->kind;

        if (!kiln_axis_varies(space, i) || !kiln_axis_is_active(space, i, a))
            continue;
        if (kind == KILN_AXIS_CHOICE || kind == KILN_AXIS_RANGE ? a[i].index != b[i].index
                                                                : a[i].number != b[i].number)
            return false;
    }
    return true;
}

static bool is_known(const KilnHistory *history, const KilnAxisValue *point)
{
    for (size_t i = 0; i < history->count; i++)
        if (is_same(history->space, point, history->trials[i]->point))
            return true;
    return false;
}

/* Fill in the values of the group's axes. */
static void put(const Group *group, const double *at, KilnAxisValue *point)
{
    for (size_t j = 0; j < group->d; j++) {
        const KilnAxis *axis = group->space->axes[group->axes[j]];

        if (is_choice(group, j))
            point[group->axes[j]].index = (size_t)at[j];
        else
            point[group->axes[j]] = kiln_axis_value(axis, at[j]);
    }
}

/* Fill in the best candidate that is not the point of a trial; if there is none, any. Values of
 * later groups are still missing: only the last group sees whole points. */
static void suggest(State *state, const Group *group, const KilnHistory *history,
                    int64_t candidates, KilnRng *rng, KilnAxisValue *point)
{
    double most = -(double)INFINITY;
    bool found = false;

    for (int64_t i = 0; i < candidates; i++) {
        draw(&state->density[0], group, rng, state->candidate);
        const double ratio = log_density(&state->density[0], group, state->candidate, state->room) -
                             log_density(&state->density[1], group, state->candidate, state->room);

        if (found && !(ratio > most))
            continue;
        put(group, state->candidate, point);
        if (is_known(history, point))
            continue;
        most = ratio;
        found = true;
        memcpy(state->best, state->candidate, group->d * sizeof(*state->best));
    }
    if (found)
        put(group, state->best, point);
}

/* ---- Groups ------------------------------------------------------------------------------- */

static bool have_same_condition(const KilnSpace *space, const KilnAxis *a, const KilnAxis *b)
{
    if (a->active_for == NULL || b->active_for == NULL)
        return a->active_for == b->active_for;
    return a->parent == b->parent &&
           memcmp(a->active_for, b->active_for, space->axes[a->parent]->count * sizeof(bool)) == 0;
}

/* Collect the axes with the condition of axis `first`, and mark them as done. */
static Group group_of(State *state, const KilnSpace *space, size_t first)
{
    Group group = { .space = space, .places = state->places, .axes = state->axes };

    for (size_t i = first; i < space->count; i++) {
        if (!kiln_axis_varies(space, i) ||
            !have_same_condition(space, space->axes[first], space->axes[i]))
            continue;
        state->axes[group.d++] = i;
        state->done[i] = true;
    }
    return group;
}

/* Estimate both densities from the trials where the group is active. `n_good`: of state->ranks. */
static void estimate_both(State *state, const Group *group, const KilnHistory *history,
                          size_t n_good)
{
    size_t n[2] = { 0, 0 };
    double *rest = state->block;

    for (size_t i = 0; i < n_good; i++)
        if (kiln_axis_is_active(group->space, group->axes[0],
                                history->trials[state->ranks[i].trial]->point))
            state->good[n[0]++] = state->ranks[i].trial;
    for (size_t i = 0; i < history->count; i++)
        if (!state->is_good[i] &&
            kiln_axis_is_active(group->space, group->axes[0], history->trials[i]->point))
            state->bad[n[1]++] = i;
    for (int i = 0; i < 2; i++) {
        lay_out(&state->density[i], &rest, n[i], group->d);
        estimate(&state->density[i], group, history, i == 0 ? state->good : state->bad, i == 0);
    }
    state->room = take(&rest, n[0] + n[1] + 2);
    state->candidate = take(&rest, group->d);
    state->best = take(&rest, group->d);
}

static void suggest_point(State *state, const Opts *opts, const KilnHistory *history, size_t n_good,
                          KilnRng *rng, KilnAxisValue *point)
{
    const KilnSpace *space = history->space;

    place_trials(state, history);
    memset(state->done, 0, space->count * sizeof(*state->done));
    for (size_t i = 0; i < space->count; i++) {
        if (state->done[i] || !kiln_axis_varies(space, i) || !kiln_axis_is_active(space, i, point))
            continue;
        const Group group = group_of(state, space, i);

        estimate_both(state, &group, history, n_good);
        suggest(state, &group, history, opts->candidates, rng, point);
    }
}

/* ---- Asking ------------------------------------------------------------------------------- */

/* Rank the trials, and mark the good ones. Returns how many are good; 0: too few have a result. */
static size_t split(State *state, const Opts *opts, const KilnHistory *history)
{
    size_t n = kiln_history_rank(history, 0, state->ranks);

    while (n > 0 && state->ranks[n - 1].status == KILN_JOB_FAILED)
        n--;
    if (n < (size_t)opts->startup_trials)
        return 0;
    n = (n + 9) / 10;
    n = n < MOST_GOOD ? n : MOST_GOOD;
    memset(state->is_good, 0, history->count * sizeof(*state->is_good));
    for (size_t i = 0; i < n; i++)
        state->is_good[state->ranks[i].trial] = true;
    return n;
}

static void draw_random(const KilnSpace *space, KilnRng *rng, KilnAxisValue *point)
{
    for (size_t i = 0; i < space->count; i++)
        point[i] = kiln_axis_value(space->axes[i], (double)kiln_rng_uniform(rng));
}

static KilnStatus ask(KilnInstance *self, const KilnHistory *history, KilnSuggestion *ret,
                      KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnSpace *space = history->space;
    int draws = 0;
    KilnRng rng;

    ret->advice = history->count < (size_t)opts->n_trials ? KILN_ADVICE_TRIAL : KILN_ADVICE_DONE;
    if (ret->advice == KILN_ADVICE_DONE)
        return KILN_OK;
    if (!reserve(state, history->count, space->count))
        return kiln_error_nomem(err, history->count);
    kiln_rng_init(&rng, (uint64_t)opts->seed, KILN_RNG_SEARCH, 0, history->count);
    const size_t n_good = split(state, opts, history);
    if (n_good > 0)
        suggest_point(state, opts, history, n_good, &rng, ret->point);
    else
        draw_random(space, &rng, ret->point);
    while (is_known(history, ret->point) && ++draws < MOST_DRAWS)
        draw_random(space, &rng, ret->point);
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->ranks);
    free(state->is_good);
    free(state->good);
    free(state->bad);
    free(state->axes);
    free(state->done);
    free(state->block);
    free(state->places);
}

static const KilnSweeperOps ops = {
    .axes = KILN_AXIS_CHOICE | KILN_AXIS_RANGE | KILN_AXIS_FLOAT | KILN_AXIS_INT,
    .ask = ask,
};

const KilnComponent kiln_sweeper_tpe = {
    .kind = KILN_KIND_SWEEPER,
    .name = "tpe",
    .summary = "Points that resemble good trials and not bad ones (TPE)",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.sweeper = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_sweeper_tpe, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

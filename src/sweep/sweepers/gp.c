/* Bayesian optimization for few trials: a Gaussian process predicts the loss, and each new trial is
 * where it promises the most improvement. Jones, Schonlau and Welch, "Efficient global optimization
 * of expensive black-box functions" (1998); the expected improvement as a logarithm, as in Ament et
 * al., "Unexpected improvements to expected improvement for Bayesian optimization" (NeurIPS 2023).
 */
#include "kiln.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/search/gaussian_process.h"
#include "kiln/search/minimize.h"
#include "kiln/search/normalize.h"

typedef struct Opts {
    int64_t n_trials, startup_trials, seed;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, n_trials, "50", 1, 1e7, "jobs"),
    KILN_FIELD_I64(Opts, startup_trials, "10", 1, 1e6,
                   "the first jobs, whose points cover the space without regard to results"),
    KILN_FIELD_I64(Opts, seed, "1", 0, 1e15, "the same seed and results, the same points"),
    KILN_FIELD_END,
};

/* Trials that the process knows at most: the best ones and the latest ones. Of these, so many fit
 * the hyperparameters, which takes most of the time. */
enum { MOST_BEST = 150, MOST_LATEST = 150, MOST_FITTED = 120 };
/* Points that are tried: random ones, and steps from the best trials. So many of each kind are
 * improved, in rounds, with so many calls of the gradient each. */
enum { CANDIDATES = 1000, STEPS = 200, STEPPED_FROM = 5, IMPROVED = 3, ROUNDS = 4, CALLS = 40 };
/* Of an axis with more values, some are tried. */
enum { MOST_VALUES = 32 };

typedef struct Search {
    const KilnHistory *history;
    KilnRng *rng;
    size_t dims;
    size_t *axes;            /* by coordinate: those that vary on their own */
    KilnAxisValue *point;    /* by axis */
    double *place;           /* by coordinate: what the process gets */
    double *mean, *variance; /* gradients of a prediction */
    double *points, *values; /* of the samples, best first; points also of running trials */
    size_t count, running;
    KilnGaussianProcess *gp;
    double best; /* predicted loss of the best sample */
} Search;

/* ---- The first points ----------------------------------------------------------------------- */

/* The stratum of a trial on an axis: a permutation of all trials of the design. */
static size_t stratum(uint64_t seed, size_t axis, size_t trial, size_t *order, size_t n)
{
    KilnRng rng;

    kiln_rng_init(&rng, seed, KILN_RNG_SEARCH, 1, axis);
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n - 1; i > 0; i--) {
        const size_t other = kiln_rng_below(&rng, (uint32_t)i + 1), at = order[i];

        order[i] = order[other];
        order[other] = at;
    }
    return order[trial];
}

/* A Latin hypercube: each of n equal parts of an axis has one of the first n trials. */
static KilnStatus design(const Opts *opts, const KilnHistory *history, KilnRng *rng,
                         KilnAxisValue *point, KilnError *err)
{
    const size_t n = (size_t)opts->startup_trials;
    size_t *order = calloc(n, sizeof(*order));

    if (order == NULL)
        return kiln_error_nomem(err, n);
    for (size_t i = 0; i < history->space->count; i++) {
        const size_t part = stratum((uint64_t)opts->seed, i, history->count, order, n);

        point[i] = kiln_axis_value(history->space->axes[i],
                                   ((double)part + (double)kiln_rng_uniform(rng)) / (double)n);
    }
    free(order);
    return KILN_OK;
}

/* ---- Coordinates ----------------------------------------------------------------------------- */

static const KilnAxis *axis_of(const Search *search, size_t coordinate)
{
    return search->history->space->axes[search->axes[coordinate]];
}

/* The coordinates of a point. An inactive axis is in the middle of its share: all points for which
 * it is inactive are equal in it. */
static void locate(const Search *search, const KilnAxisValue *point, double *ret)
{
    for (size_t i = 0; i < search->dims; i++)
        ret[i] = kiln_axis_is_active(search->history->space, search->axes[i], point)
                     ? kiln_axis_share(axis_of(search, i), point[search->axes[i]])
                     : 0.5;
}

/* The point at a share of each coordinate's axis. */
static void put_point(const Search *search, const double *shares, KilnAxisValue *ret)
{
    for (size_t i = 0; i < search->dims; i++)
        ret[search->axes[i]] = kiln_axis_value(axis_of(search, i), shares[i]);
}

/* ---- What is known --------------------------------------------------------------------------- */

/* A failed trial has the worst value. */
static void replace_failed(double *values, size_t n)
{
    double worst = -(double)INFINITY;

    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            worst = fmax(worst, values[i]);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            values[i] = isfinite(worst) ? worst : 0.0;
}

static bool has_ended(const KilnTrial *trial)
{
    return trial->status == KILN_JOB_OK || trial->status == KILN_JOB_STOPPED ||
           trial->status == KILN_JOB_FAILED || trial->status == KILN_JOB_TIMEOUT;
}

/* Mark the trials that the process knows: of too many the best ones, and the latest others. */
static void select_trials(const KilnRankedTrial *ranked, size_t n, const KilnHistory *history,
                          bool *ret_known)
{
    size_t latest = 0;

    for (size_t i = 0; i < n && i < MOST_BEST; i++)
        ret_known[ranked[i].trial] = true;
    for (size_t i = history->count; i-- > 0 && latest < MOST_LATEST;) {
        if (ret_known[i] || !has_ended(history->trials[i]))
            continue;
        ret_known[i] = true;
        latest++;
    }
}

static void add_point(Search *search, size_t trial)
{
    const size_t row = search->count + search->running;

    locate(search, search->history->trials[trial]->point, search->points + row * search->dims);
}

/* Samples of the trials that have ended, then the points of those that have not. */
static KilnStatus collect(Search *search, KilnError *err)
{
    const KilnHistory *history = search->history;
    KilnRankedTrial *ranked = calloc(history->count + 1, sizeof(*ranked));
    bool *known = calloc(history->count + 1, sizeof(*known));

    if (ranked != NULL && known != NULL) {
        const size_t n = kiln_history_rank(history, 0, ranked);

        select_trials(ranked, n, history, known);
        for (size_t i = 0; i < n; i++) {
            if (!known[ranked[i].trial])
                continue;
            add_point(search, ranked[i].trial);
            search->values[search->count++] = ranked[i].loss;
        }
        for (size_t i = 0; i < history->count; i++) {
            if (has_ended(history->trials[i]))
                continue;
            add_point(search, i);
            search->running++;
        }
    }
    const bool done = ranked != NULL && known != NULL;
    free(ranked);
    free(known);
    return done ? KILN_OK : kiln_error_nomem(err, history->count);
}

/* Fit the hyperparameters, to samples of all ranks if there are many. */
static KilnStatus fit(Search *search, double *ret_logs, KilnError *err)
{
    const size_t n = search->count < MOST_FITTED ? search->count : MOST_FITTED;
    double *points = calloc(n * (search->dims + 1), sizeof(*points));
    double *values = points + n * search->dims;

    if (points == NULL)
        return kiln_error_nomem(err, n * search->dims);
    for (size_t i = 0; i < n; i++) {
        const size_t rank = i * search->count / n;

        memcpy(points + i * search->dims, search->points + rank * search->dims,
               search->dims * sizeof(*points));
        values[i] = search->values[rank];
    }
    const KilnGpSamples samples = { .count = n, .points = points, .values = values };
    KilnStatus status = kiln_gp_fit(search->gp, &samples, search->rng, ret_logs, err);
    free(points);
    return status;
}

/* The process predicts from all samples. Its best prediction for one of them counts as the best
 * loss so far, since with noise the best value may be luck; also for one that runs, so that the
 * next trial is not there, too. */
static KilnStatus learn(Search *search, KilnError *err)
{
    const KilnGpSamples samples = { .count = search->count,
                                    .assumed = search->running,
                                    .points = search->points,
                                    .values = search->values };
    double *logs = calloc(KILN_GP_LOGS(search->dims), sizeof(*logs));
    KilnStatus status = logs != NULL ? KILN_OK : kiln_error_nomem(err, search->dims);

    replace_failed(search->values, search->count);
    if (status >= 0)
        status = kiln_normalize(search->values, search->count, err);
    if (status >= 0)
        status = fit(search, logs, err);
    if (status >= 0)
        status = kiln_gp_condition(search->gp, &samples, logs, err);
    search->best = (double)INFINITY;
    for (size_t i = 0; i < search->count + search->running && status >= 0; i++) {
        const double *point = search->points + i * search->dims;

        search->best = fmin(search->best, kiln_gp_predict(search->gp, point, NULL, NULL).mean);
    }
    free(logs);
    return status;
}

/* ---- The expected improvement ---------------------------------------------------------------- */

/* How little improvement is expected at these shares: the negative logarithm. The gradient is by
 * coordinate, of numbers that are active. */
static double reluctance(void *ctx, const double *shares, double *ret_gradient)
{
    Search *search = ctx;
    double slope;

    put_point(search, shares, search->point);
    locate(search, search->point, search->place);
    const KilnGpPrediction at = kiln_gp_predict(
        search->gp, search->place, ret_gradient != NULL ? search->mean : NULL, search->variance);
    const double deviation = sqrt(at.variance), z = (search->best - at.mean) / deviation;
    const double value = kiln_log_improvement(z, &slope) + log(deviation);
    for (size_t i = 0; ret_gradient != NULL && i < search->dims; i++) {
        const double widening = 0.5 * search->variance[i] / deviation; /* of the deviation */
        const bool moves = axis_of(search, i)->kind == KILN_AXIS_FLOAT &&
                           kiln_axis_is_active(search->history->space, search->axes[i],
                                               search->point);

        ret_gradient[i] = moves ? (slope * (search->mean[i] + z * widening) - widening) / deviation
                                : 0.0;
    }
    return -value;
}

/* ---- Its maximum ----------------------------------------------------------------------------- */

/* Shares of a candidate. */
typedef struct Candidate {
    double value; /* reluctance */
    double *shares;
} Candidate;

/* The values of an axis without FLOAT. */
static double values_of(const KilnAxis *axis)
{
    return axis->kind == KILN_AXIS_INT ? axis->high - axis->low + 1.0 : (double)axis->count;
}

/* The share of a value, by its number. */
static double share_of(const KilnAxis *axis, double number)
{
    const KilnAxisValue value = axis->kind == KILN_AXIS_INT
                                    ? (KilnAxisValue) { .number = axis->low + number }
                                    : (KilnAxisValue) { .index = (size_t)number };

    return kiln_axis_share(axis, value);
}

/* Number `try` of the values to try instead of `now`: all, of many choices some at random, of many
 * numbers those at distances 1, 2, 4, ...; out of range: none. */
static double alternative(const Search *search, const KilnAxis *axis, double now, size_t try)
{
    const double n = values_of(axis);

    if (n <= MOST_VALUES)
        return (double)try;
    if (axis->kind == KILN_AXIS_CHOICE)
        return (double)kiln_rng_below(search->rng, (uint32_t)n);
    return now + (try % 2 == 0 ? 1.0 : -1.0) * exp2((double)(try / 2));
}

/* Try other values of one coordinate without a gradient; true: one is better. */
static bool improve_coordinate(Search *search, size_t i, Candidate *at)
{
    const KilnAxis *axis = axis_of(search, i);
    const KilnAxisValue value = kiln_axis_value(axis, at->shares[i]);
    const double now = axis->kind == KILN_AXIS_INT ? value.number - axis->low : (double)value.index;
    double best = at->shares[i];
    bool better = false;

    for (size_t try = 0; try < MOST_VALUES; try++) {
        const double number = alternative(search, axis, now, try);

        if (number < 0.0 || number >= values_of(axis) || number == now)
            continue;
        at->shares[i] = share_of(axis, number);
        const double loss = reluctance(search, at->shares, NULL);
        if (!(loss < at->value))
            continue;
        at->value = loss;
        best = at->shares[i];
        better = true;
    }
    at->shares[i] = best;
    return better;
}

static bool improve_discrete(Search *search, Candidate *at)
{
    bool better = false;

    for (size_t i = 0; i < search->dims; i++)
        if (axis_of(search, i)->kind != KILN_AXIS_FLOAT)
            better |= improve_coordinate(search, i, at);
    return better;
}

/* Follow the gradient of numbers, then try other values of the rest, while that helps. `bounds` has
 * room for two per coordinate. */
static KilnStatus improve(Search *search, Candidate *at, double *bounds, KilnError *err)
{
    const KilnSmoothFunction function = {
        .n = search->dims,
        .low = bounds,
        .high = bounds + search->dims,
        .value = reluctance,
        .ctx = search,
    };
    bool better = true;
    KilnStatus status = KILN_OK;

    for (int round = 0; round < ROUNDS && better && status >= 0; round++) {
        for (size_t i = 0; i < search->dims; i++) {
            const bool moves = axis_of(search, i)->kind == KILN_AXIS_FLOAT;

            bounds[i] = moves ? 0.0 : at->shares[i];
            bounds[search->dims + i] = moves ? 1.0 : at->shares[i];
        }
        status = kiln_minimize(&function, CALLS, at->shares, &at->value, err);
        if (status >= 0)
            better = improve_discrete(search, at);
    }
    return status;
}

/* Put the candidate into the list of the `n` best, if it is one of them. */
static void keep(Candidate *best, size_t n, const Candidate *candidate, size_t dims)
{
    size_t at = n;

    while (at > 0 && candidate->value < best[at - 1].value)
        at--;
    if (at == n)
        return;
    double *shares = best[n - 1].shares;
    memmove(&best[at + 1], &best[at], (n - 1 - at) * sizeof(*best));
    memcpy(shares, candidate->shares, dims * sizeof(*shares));
    best[at] = (Candidate) { .value = candidate->value, .shares = shares };
}

/* A step from a good trial: a few coordinates change, numbers by a small or large step. */
static void step_from(const Search *search, size_t sample, double *shares)
{
    const double *from = search->points + sample * search->dims;
    const double size = exp2(-1.0 - 9.0 * (double)kiln_rng_uniform(search->rng));
    const size_t always = kiln_rng_below(search->rng, (uint32_t)search->dims);

    for (size_t i = 0; i < search->dims; i++) {
        const bool changes = i == always || kiln_rng_uniform(search->rng) < 0.5f;
        const double step = size * (double)kiln_rng_normal(search->rng);

        shares[i] = from[i];
        if (changes && axis_of(search, i)->kind == KILN_AXIS_CHOICE)
            shares[i] = (double)kiln_rng_uniform(search->rng);
        else if (changes)
            shares[i] = fmin(fmax(from[i] + step, 0.0), 1.0 - 1e-12);
    }
}

/* The best of many candidates: first IMPROVED random ones, then as many steps. */
static void try_candidates(Search *search, Candidate *best, Candidate *candidate)
{
    const size_t good = search->count < STEPPED_FROM ? search->count : STEPPED_FROM;

    for (size_t n = 0; n < CANDIDATES + STEPS; n++) {
        const bool steps = n >= CANDIDATES;

        if (steps)
            step_from(search, n % good, candidate->shares);
        for (size_t i = 0; i < search->dims && !steps; i++)
            candidate->shares[i] = (double)kiln_rng_uniform(search->rng);
        candidate->value = reluctance(search, candidate->shares, NULL);
        keep(best + (steps ? IMPROVED : 0), IMPROVED, candidate, search->dims);
    }
}

static KilnStatus maximize(Search *search, KilnAxisValue *ret, KilnError *err)
{
    enum { KEPT = 2 * IMPROVED };
    double *room = calloc((KEPT + 3) * search->dims, sizeof(*room));
    Candidate best[KEPT], candidate = { .shares = room + KEPT * search->dims };
    KilnStatus status = KILN_OK;
    size_t first = 0;

    if (room == NULL)
        return kiln_error_nomem(err, search->dims);
    for (size_t i = 0; i < KEPT; i++)
        best[i] = (Candidate) { .value = (double)INFINITY, .shares = room + i * search->dims };
    try_candidates(search, best, &candidate);
    for (size_t i = 0; i < KEPT && status >= 0; i++) {
        status = improve(search, &best[i], room + (KEPT + 1) * search->dims, err);
        if (best[i].value < best[first].value)
            first = i;
    }
    put_point(search, best[first].shares, ret);
    free(room);
    return status;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static size_t find_axes(const KilnSpace *space, size_t *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < space->count; i++)
        if (space->axes[i]->leader == i && space->axes[i]->count != 1)
            ret[n++] = i;
    return n;
}

static void release_search(Search *search)
{
    free(search->axes);
    free(search->point);
    free(search->place);
    free(search->points);
    free(search->values);
    kiln_gp_free(search->gp);
}

/* Half-made when memory is out. */
static KilnStatus init_search(Search *search, KilnError *err)
{
    const size_t n = search->history->space->count + 1, rows = search->history->count + 1;
    bool *unordered = calloc(n, sizeof(*unordered));

    search->axes = calloc(n, sizeof(*search->axes));
    search->point = calloc(n, sizeof(*search->point));
    search->place = calloc(3 * n, sizeof(*search->place));
    search->points = calloc(rows * n, sizeof(*search->points));
    search->values = calloc(rows, sizeof(*search->values));
    if (unordered != NULL && search->axes != NULL) {
        search->dims = find_axes(search->history->space, search->axes);
        for (size_t i = 0; i < search->dims; i++)
            unordered[i] = axis_of(search, i)->kind == KILN_AXIS_CHOICE;
        search->gp = kiln_gp_new(search->dims, unordered);
    }
    free(unordered);
    if (search->point == NULL || search->place == NULL || search->points == NULL ||
        search->values == NULL || search->gp == NULL)
        return kiln_error_nomem(err, rows * n);
    search->mean = search->place + n;
    search->variance = search->place + 2 * n;
    return KILN_OK;
}

static KilnStatus suggest(const KilnHistory *history, KilnRng *rng, KilnAxisValue *point,
                          KilnError *err)
{
    Search search = { .history = history, .rng = rng };
    KilnStatus status = init_search(&search, err);

    if (status >= 0)
        status = collect(&search, err);
    /* As long as no job has ended, and if there is nothing to choose. */
    const bool random = search.count == 0 || search.dims == 0;
    for (size_t i = 0; i < search.dims && random; i++)
        point[search.axes[i]] = kiln_axis_value(axis_of(&search, i), (double)kiln_rng_uniform(rng));
    if (status >= 0 && !random)
        status = learn(&search, err);
    if (status >= 0 && !random)
        status = maximize(&search, point, err);
    release_search(&search);
    return status;
}

static KilnStatus ask(KilnInstance *self, const KilnHistory *history, KilnSuggestion *ret,
                      KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    KilnRng rng;

    ret->advice = history->count < (size_t)opts->n_trials ? KILN_ADVICE_TRIAL : KILN_ADVICE_DONE;
    if (ret->advice == KILN_ADVICE_DONE)
        return KILN_OK;
    kiln_rng_init(&rng, (uint64_t)opts->seed, KILN_RNG_SEARCH, 0, history->count);
    if (history->count < (size_t)opts->startup_trials)
        return design(opts, history, &rng, ret->point, err);
    return suggest(history, &rng, ret->point, err);
}

static const KilnSweeperOps ops = {
    .axes = KILN_AXIS_CHOICE | KILN_AXIS_RANGE | KILN_AXIS_FLOAT | KILN_AXIS_INT,
    .ask = ask,
};

const KilnComponent kiln_sweeper_gp = {
    .kind = KILN_KIND_SWEEPER,
    .name = "gp",
    .summary = "Bayesian optimization with a Gaussian process, for few jobs",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.sweeper = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_sweeper_gp, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

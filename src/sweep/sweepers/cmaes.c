/* Evolves a normal distribution towards better points: CMA-ES. Hansen, "The CMA evolution strategy:
 * a tutorial" (2016), of which the names of the constants are. It searches the unit cube of the
 * axes' shares.
 *
 * The trials of a generation run in parallel; the next generation begins when all have ended. The
 * distribution follows from the options and the history alone: what the state holds is rebuilt when
 * the history differs from what it was computed from. */
#include "kiln.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    int64_t n_trials, seed, *population;
    double sigma;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, n_trials, "50", 1, 1e7, "jobs"),
    KILN_FIELD_I64(Opts, seed, "1", 0, 1e15, "of the random numbers"),
    KILN_FIELD_F64(Opts, sigma, "0.15", 1e-3, 1.0,
                   "standard deviation of the first points around the middle; 1: the whole range"),
    KILN_FIELD_I64_OPT(Opts, population, "null", 2, 1e5,
                       "trials of a generation; null: 4 + 3 ln(searched axes)"),
    KILN_FIELD_END,
};

/* Once no axis has a larger standard deviation, the search restarts with twice the population
 * (Auger and Hansen, "A restart CMA evolution strategy with increasing population size", 2005). */
#define CONVERGED 1e-4
/* Draws of a point before one outside the bounds is moved to them. */
enum { MOST_DRAWS = 100 };

typedef struct State {
    size_t *axes; /* those that are searched */
    size_t d;     /* how many */
    double *block;
    double *mean, *cov, *factor;     /* the distribution; `factor` is Cholesky's of `cov` */
    double *path_sigma, *path_c;     /* evolution paths */
    double *stretch;                 /* of each axis, for one with steps; 1: none */
    double *step, *white;            /* room for a vector */
    double *steps, *weights, *norms; /* room by trial of a generation */
    size_t *order;
    size_t steps_size, weights_size, norms_size, order_size;
    KilnRankedTrial *ranks;
    size_t ranks_size;
    double sigma;
    size_t lambda; /* trials of the generation */
    size_t first;  /* its first trial: those before are part of the distribution */
    size_t age;    /* generations since the (re)start */
    uint64_t seen; /* digest of those trials */
} State;

/* ---- The distribution --------------------------------------------------------------------- */

static double *take(double **block, size_t n)
{
    *block += n;
    return *block - n;
}

static bool allocate(State *state, const KilnSpace *space)
{
    size_t d = 0;

    state->axes = calloc(space->count + 1, sizeof(*state->axes));
    if (state->axes == NULL)
        return false;
    for (size_t i = 0; i < space->count; i++)
        if (kiln_axis_varies(space, i))
            state->axes[d++] = i;
    state->d = d;
    state->block = calloc(2 * d * d + 6 * d + 1, sizeof(double));
    if (state->block == NULL)
        return false;
    double *rest = state->block;
    state->mean = take(&rest, d);
    state->cov = take(&rest, d * d);
    state->factor = take(&rest, d * d);
    state->path_sigma = take(&rest, d);
    state->path_c = take(&rest, d);
    state->stretch = take(&rest, d);
    state->step = take(&rest, d);
    state->white = take(&rest, d);
    return true;
}

/* cov = factor factor', lower triangle (Cholesky). Rounding may leave a pivot that is not above 0:
 * it becomes tiny. */
static void factorize(State *state)
{
    const size_t d = state->d;
    double *f = state->factor;

    for (size_t i = 0; i < d; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = state->cov[i * d + j];

            for (size_t k = 0; k < j; k++)
                sum -= f[i * d + k] * f[j * d + k];
            f[i * d + j] = i == j ? sqrt(fmax(sum, 1e-24)) : sum / f[j * d + j];
        }
    }
}

/* The vector in coordinates where the distribution is the standard normal one. */
static void whiten(const State *state, const double *step, double *ret)
{
    const size_t d = state->d;

    for (size_t i = 0; i < d; i++) {
        ret[i] = step[i];
        for (size_t k = 0; k < i; k++)
            ret[i] -= state->factor[i * d + k] * ret[k];
        ret[i] /= state->factor[i * d + i];
    }
}

static double norm(const double *v, size_t d)
{
    double sum = 0.0;

    for (size_t i = 0; i < d; i++)
        sum += v[i] * v[i];
    return sqrt(sum);
}

/* The distance from the mean to the nearest value that is not the mean's; INFINITY: none. */
static double to_next_value(const KilnAxis *axis, double mean)
{
    double low, high;

    kiln_axis_share_ends(axis, kiln_axis_value(axis, fmin(mean, 1.0 - 0x1p-53)), &low, &high);
    return fmin(low > 1e-9 ? mean - low : (double)INFINITY,
                high < 1.0 - 1e-9 ? high - mean : (double)INFINITY);
}

/* On an axis with steps, a trial leaves the mean's value with a probability of at least 2 %:
 * otherwise the value would be fixed before the other axes have converged. A simple form of the
 * margin of Hamano et al., "CMA-ES with margin" (2022). */
static void stretch_steps(State *state, const KilnSpace *space)
{
    for (size_t i = 0; i < state->d; i++) {
        const KilnAxis *axis = space->axes[state->axes[i]];
        const double deviation = fmax(state->sigma * sqrt(state->cov[i * state->d + i]), 1e-12);
        const double next = to_next_value(axis, state->mean[i]);

        const bool steps = axis->kind != KILN_AXIS_FLOAT || axis->step > 0.0;

        state->stretch[i] = steps && isfinite(next) ? fmax(1.0, 0.5 * next / deviation) : 1.0;
    }
}

/* The first generation is in the middle of the space; that of a restart anywhere. */
static void start(State *state, const Opts *opts, const KilnSpace *space, size_t lambda)
{
    const size_t d = state->d;
    KilnRng rng;

    kiln_rng_init(&rng, (uint64_t)opts->seed, KILN_RNG_SEARCH, 1, state->first);
    memset(state->block, 0, (2 * d * d + 6 * d) * sizeof(double));
    for (size_t i = 0; i < d; i++) {
        state->mean[i] = state->first == 0 ? 0.5 : (double)kiln_rng_uniform(&rng);
        state->cov[i * d + i] = 1.0;
    }
    state->sigma = opts->sigma;
    state->lambda = lambda;
    state->age = 0;
    factorize(state);
    stretch_steps(state, space);
}

/* ---- Learning from a generation ------------------------------------------------------------- */

/* The constants of the tutorial's table 1 for a population. */
typedef struct Rates {
    double mu_eff, c_sigma, d_sigma, c_c, c_1, c_mu, chi; /* chi: the expected norm */
} Rates;

static Rates rates_of(double d, double mu_eff)
{
    const double c_1 = 2.0 / ((d + 1.3) * (d + 1.3) + mu_eff);
    const double c_sigma = (mu_eff + 2.0) / (d + mu_eff + 5.0);

    return (Rates) {
        .mu_eff = mu_eff,
        .c_sigma = c_sigma,
        .d_sigma = 1.0 + 2.0 * fmax(0.0, sqrt((mu_eff - 1.0) / (d + 1.0)) - 1.0) + c_sigma,
        .c_c = (4.0 + mu_eff / d) / (d + 4.0 + 2.0 * mu_eff / d),
        .c_1 = c_1,
        .c_mu = fmin(1.0 - c_1,
                     2.0 * (0.25 + mu_eff + 1.0 / mu_eff - 2.0) / ((d + 2.0) * (d + 2.0) + mu_eff)),
        .chi = sqrt(d) * (1.0 - 1.0 / (4.0 * d) + 1.0 / (21.0 * d * d)),
    };
}

/* Fill in the weights by rank: the better half has positive ones, with the sum 1. */
static Rates weigh(double *weights, size_t lambda, size_t dimensions)
{
    const double d = (double)dimensions;
    double sum[2] = { 0.0, 0.0 }, squares[2] = { 0.0, 0.0 };

    for (size_t i = 0; i < lambda; i++) {
        weights[i] = log(0.5 * ((double)lambda + 1.0)) - log((double)i + 1.0);
        sum[weights[i] < 0.0] += fabs(weights[i]);
        squares[weights[i] < 0.0] += weights[i] * weights[i];
    }
    const Rates rates = rates_of(d, sum[0] * sum[0] / squares[0]);
    const double mu_eff_minus = sum[1] * sum[1] / squares[1];
    const double negative = fmin(1.0 + rates.c_1 / rates.c_mu,
                                 fmin(1.0 + 2.0 * mu_eff_minus / (rates.mu_eff + 2.0),
                                      (1.0 - rates.c_1 - rates.c_mu) / (d * rates.c_mu)));
    for (size_t i = 0; i < lambda; i++)
        weights[i] *= weights[i] < 0.0 ? negative / sum[1] : 1.0 / sum[0];
    return rates;
}

/* Collect the trials of the generation, best first, those without a result last. Returns how many
 * have a loss. `n`: of the ranks. */
static size_t collect(State *state, size_t n)
{
    size_t found = 0, good = 0;

    memset(state->norms, 0, state->lambda * sizeof(*state->norms));
    for (size_t i = 0; i < n; i++) {
        const size_t at = state->ranks[i].trial - state->first;

        if (state->ranks[i].trial < state->first || at >= state->lambda)
            continue;
        state->order[found++] = state->ranks[i].trial;
        state->norms[at] = 1.0;
        good += state->ranks[i].status != KILN_JOB_FAILED;
    }
    for (size_t at = 0; at < state->lambda; at++)
        if (state->norms[at] == 0.0)
            state->order[found++] = state->first + at;
    return good;
}

/* The steps from the mean to the points, in units of sigma, best first, and their norms. An axis
 * that is inactive in a trial says nothing: no step. */
static void measure(State *state, const KilnHistory *history)
{
    const size_t d = state->d;

    for (size_t k = 0; k < state->lambda; k++) {
        const KilnAxisValue *point = history->trials[state->order[k]]->point;

        for (size_t i = 0; i < d; i++) {
            const size_t axis = state->axes[i];

            state->steps[k * d + i] =
                kiln_axis_is_active(history->space, axis, point)
                    ? (kiln_axis_share(history->space->axes[axis], point[axis]) - state->mean[i]) /
                          (state->sigma * state->stretch[i])
                    : 0.0;
        }
        whiten(state, state->steps + k * d, state->white);
        state->norms[k] = norm(state->white, d);
    }
}

/* Move the mean by the better half, and adapt sigma by the length of the path that it takes. */
static void move(State *state, const Rates *rates)
{
    const size_t d = state->d;

    memset(state->step, 0, d * sizeof(*state->step));
    for (size_t k = 0; k < state->lambda; k++)
        for (size_t i = 0; i < d && state->weights[k] > 0.0; i++)
            state->step[i] += state->weights[k] * state->steps[k * d + i];
    whiten(state, state->step, state->white);
    for (size_t i = 0; i < d; i++) {
        state->mean[i] += state->sigma * state->stretch[i] * state->step[i];
        state->path_sigma[i] = (1.0 - rates->c_sigma) * state->path_sigma[i] +
                               sqrt(rates->c_sigma * (2.0 - rates->c_sigma) * rates->mu_eff) *
                                   state->white[i];
    }
}

/* Update the covariance by the path and by all trials; those of the worse half have negative
 * weights. */
static void adapt(State *state, const Rates *rates)
{
    const size_t d = state->d;
    const double length = norm(state->path_sigma, d);
    const double grown = sqrt(1.0 - pow(1.0 - rates->c_sigma, 2.0 * ((double)state->age + 1.0)));
    const double h = length / grown < (1.4 + 2.0 / ((double)d + 1.0)) * rates->chi ? 1.0 : 0.0;
    double kept = 1.0 - rates->c_1 + rates->c_1 * (1.0 - h) * rates->c_c * (2.0 - rates->c_c);

    for (size_t i = 0; i < d; i++)
        state->path_c[i] = (1.0 - rates->c_c) * state->path_c[i] +
                           h * sqrt(rates->c_c * (2.0 - rates->c_c) * rates->mu_eff) *
                               state->step[i];
    for (size_t k = 0; k < state->lambda; k++) {
        kept -= rates->c_mu * state->weights[k];
        if (state->weights[k] < 0.0)
            state->weights[k] *= (double)d / (state->norms[k] * state->norms[k] + 1e-8);
    }
    for (size_t i = 0; i < d; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = 0.0;

            for (size_t k = 0; k < state->lambda; k++)
                sum += state->weights[k] * state->steps[k * d + i] * state->steps[k * d + j];
            state->cov[i * d + j] = kept * state->cov[i * d + j] +
                                    rates->c_1 * state->path_c[i] * state->path_c[j] +
                                    rates->c_mu * sum;
        }
    }
    state->sigma = fmin(
        1.0, state->sigma * exp(rates->c_sigma / rates->d_sigma * (length / rates->chi - 1.0)));
}

static bool has_converged(const State *state)
{
    for (size_t i = 0; i < state->d; i++)
        if (state->sigma * sqrt(state->cov[i * state->d + i]) > CONVERGED)
            return false;
    return state->d > 0;
}

/* Learn from the generation, which has ended; begin the next one. */
static void learn(State *state, const Opts *opts, const KilnHistory *history, size_t n)
{
    const size_t good = collect(state, n);

    state->first += state->lambda;
    state->age++;
    if (good == 0 || state->d == 0) /* nothing to learn */
        return;
    const Rates rates = weigh(state->weights, state->lambda, state->d);
    measure(state, history);
    move(state, &rates);
    adapt(state, &rates);
    factorize(state);
    stretch_steps(state, history->space);
    if (has_converged(state))
        start(state, opts, history->space, 2 * state->lambda);
}

/* ---- Following the history ------------------------------------------------------------------ */

/* A digest of the results of the first trials, and of the direction by which they are compared. */
static uint64_t digest(const KilnHistory *history, size_t n)
{
    uint64_t hash = 14695981039346656037u ^ history->objectives[0]->mode; /* FNV-1a, by words */

    for (size_t i = 0; i < n; i++) {
        const KilnTrial *trial = history->trials[i];
        const int64_t step = trial->n_reports > 0 ? trial->reports[trial->n_reports - 1]->step : 0;
        uint64_t words[3] = { trial->status, (uint64_t)step, 0 };

        if (trial->values != NULL)
            memcpy(&words[2], &trial->values[0], sizeof(words[2]));
        for (size_t j = 0; j < KILN_COUNT(words); j++)
            hash = (hash ^ words[j]) * 1099511628211u;
    }
    return hash;
}

/* One that was killed or interrupted may not continue: it counts as the worst. */
static bool has_running(const KilnHistory *history, size_t first, size_t n)
{
    for (size_t i = first; i < first + n; i++)
        if (history->trials[i]->status == KILN_JOB_RUNNING ||
            history->trials[i]->status == KILN_JOB_WAITING)
            return true;
    return false;
}

static bool reserve(State *state)
{
    return KILN_RESERVE(state->steps, state->steps_size, state->lambda * state->d + 1) &&
           KILN_RESERVE(state->weights, state->weights_size, state->lambda) &&
           KILN_RESERVE(state->norms, state->norms_size, state->lambda) &&
           KILN_RESERVE(state->order, state->order_size, state->lambda);
}

/* Learn from all generations that have ended. *ret_wait: the last one has not. */
static bool follow(State *state, const Opts *opts, const KilnHistory *history, bool *ret_wait)
{
    size_t n = 0;

    if (state->block == NULL && !allocate(state, history->space))
        return false;
    if (state->lambda == 0 || state->first > history->count ||
        state->seen != digest(history, state->first)) {
        state->first = 0;
        start(state, opts, history->space,
              opts->population != NULL ? (size_t)*opts->population
                                       : 4 + (size_t)(3.0 * log(fmax(1.0, (double)state->d))));
    }
    *ret_wait = false;
    if (history->count - state->first >= state->lambda) {
        if (!KILN_RESERVE(state->ranks, state->ranks_size, history->count))
            return false;
        n = kiln_history_rank(history, 0, state->ranks);
    }
    while (history->count - state->first >= state->lambda) {
        *ret_wait = has_running(history, state->first, state->lambda);
        if (*ret_wait || !reserve(state))
            break;
        learn(state, opts, history, n);
    }
    state->seen = digest(history, state->first);
    return *ret_wait || reserve(state);
}

/* ---- Points ------------------------------------------------------------------------------- */

/* Draw a point into state->step; false: it is outside the bounds. */
static bool draw(State *state, KilnRng *rng)
{
    const size_t d = state->d;
    bool inside = true;

    for (size_t i = 0; i < d; i++)
        state->white[i] = (double)kiln_rng_normal(rng);
    for (size_t i = 0; i < d; i++) {
        double sum = 0.0;

        for (size_t k = 0; k <= i; k++)
            sum += state->factor[i * d + k] * state->white[k];
        state->step[i] = state->mean[i] + state->sigma * state->stretch[i] * sum;
        inside = inside && state->step[i] >= 0.0 && state->step[i] < 1.0;
    }
    return inside;
}

static KilnStatus ask(KilnInstance *self, const KilnHistory *history, KilnSuggestion *ret,
                      KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    bool wait;
    KilnRng rng;

    if (history->count >= (size_t)opts->n_trials) {
        ret->advice = KILN_ADVICE_DONE;
        return KILN_OK;
    }
    if (!follow(state, opts, history, &wait))
        return kiln_error_nomem(err, history->count);
    ret->advice = wait ? KILN_ADVICE_WAIT : KILN_ADVICE_TRIAL;
    if (wait)
        return KILN_OK;
    kiln_rng_init(&rng, (uint64_t)opts->seed, KILN_RNG_SEARCH, 0, history->count);
    for (int draws = 0; draws < MOST_DRAWS && !draw(state, &rng); draws++)
        continue;
    for (size_t i = 0; i < state->d; i++)
        ret->point[state->axes[i]] = kiln_axis_value(
            history->space->axes[state->axes[i]], fmin(fmax(state->step[i], 0.0), 1.0 - 0x1p-53));
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->axes);
    free(state->block);
    free(state->steps);
    free(state->weights);
    free(state->norms);
    free(state->order);
    free(state->ranks);
}

static const KilnSweeperOps ops = {
    .axes = KILN_AXIS_RANGE | KILN_AXIS_FLOAT | KILN_AXIS_INT,
    .ask = ask,
};

const KilnComponent kiln_sweeper_cmaes = {
    .kind = KILN_KIND_SWEEPER,
    .name = "cmaes",
    .summary = "Points of a normal distribution that moves towards better ones (CMA-ES)",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.sweeper = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_sweeper_cmaes, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

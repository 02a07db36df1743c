/* Gaussian processes: the likelihood of hyperparameters, their fit, and predictions. */
#include "kiln/search/gaussian_process.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"
#include "kiln/search/minimize.h"

struct KilnGaussianProcess {
    size_t dims;
    bool *unordered;
    double *weights; /* 1 / length scale^2 of each coordinate, variances of function and noise */
    size_t count;    /* points, also assumed ones */
    size_t known;    /* the first ones, which have values */
    double *points;  /* count x dims */
    double *factor;  /* the Cholesky factor of the covariance: rows of `stride`, lower triangle */
    double *inverse; /* of the covariance, for gradients */
    double *alpha;   /* covariance^-1 * values, of the known ones */
    double *room;    /* 3 x count, of a prediction */
    size_t stride, points_capacity, factor_capacity, inverse_capacity, alpha_capacity,
        room_capacity;
};

KilnGaussianProcess *kiln_gp_new(size_t coordinates, const bool *unordered)
{
    KilnGaussianProcess *gp = calloc(1, sizeof(*gp));
    const size_t n = KILN_GP_LOGS(coordinates);

    if (gp == NULL)
        return NULL;
    *gp = (KilnGaussianProcess) {
        .dims = coordinates,
        .unordered = calloc(n, sizeof(*gp->unordered)),
        .weights = calloc(n, sizeof(*gp->weights)),
    };
    if (gp->unordered == NULL || gp->weights == NULL) {
        kiln_gp_free(gp);
        return NULL;
    }
    if (coordinates > 0)
        memcpy(gp->unordered, unordered, coordinates * sizeof(*unordered));
    return gp;
}

void kiln_gp_free(KilnGaussianProcess *gp)
{
    if (gp == NULL)
        return;
    free(gp->unordered);
    free(gp->weights);
    free(gp->points);
    free(gp->factor);
    free(gp->inverse);
    free(gp->alpha);
    free(gp->room);
    free(gp);
}

/* ---- The kernel ---------------------------------------------------------------------------- */

/* Correlation at a squared distance, and its derivative with respect to that. */
static double matern(double squared, double *ret_slope)
{
    const double r = sqrt(5.0 * squared), decay = exp(-r);

    *ret_slope = -5.0 / 6.0 * (1.0 + r) * decay;
    return (1.0 + r + 5.0 / 3.0 * squared) * decay;
}

static double difference(const KilnGaussianProcess *gp, size_t i, double a, double b)
{
    return gp->unordered[i] ? (double)(a != b) : a - b;
}

static double squared_distance(const KilnGaussianProcess *gp, const double *a, const double *b)
{
    double sum = 0.0;

    for (size_t i = 0; i < gp->dims; i++) {
        const double apart = difference(gp, i, a[i], b[i]);

        sum += gp->weights[i] * apart * apart;
    }
    return sum;
}

static double function_variance(const KilnGaussianProcess *gp)
{
    return gp->weights[gp->dims];
}

static double noise_variance(const KilnGaussianProcess *gp)
{
    return gp->weights[gp->dims + 1];
}

static const double *point_at(const KilnGaussianProcess *gp, size_t sample)
{
    return gp->points + sample * gp->dims;
}

/* ---- Linear algebra ---------------------------------------------------------------------- */

/* Four sums at a time, which do not wait for one another. */
static double dot(const double *a, const double *b, size_t n)
{
    double sums[4] = { 0.0 };
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++)
            sums[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static double *row(const KilnGaussianProcess *gp, double *matrix, size_t i)
{
    return matrix + i * gp->stride;
}

/* Turn row `i`, which has covariances, into a row of the factor; false: the matrix is singular. */
static bool factorize_row(KilnGaussianProcess *gp, size_t i)
{
    double *at = row(gp, gp->factor, i);

    for (size_t k = 0; k < i; k++) {
        const double *other = row(gp, gp->factor, k);

        at[k] = (at[k] - dot(at, other, k)) / other[k];
    }
    const double left = at[i] - dot(at, at, i);
    at[i] = sqrt(left);
    return left > 0.0 && isfinite(left);
}

/* x := factor^-1 x, of the first `n` */
static void solve_lower(const KilnGaussianProcess *gp, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double *at = row(gp, gp->factor, i);

        x[i] = (x[i] - dot(at, x, i)) / at[i];
    }
}

/* x := factor^-T x */
static void solve_upper(const KilnGaussianProcess *gp, double *x, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        const double *at = row(gp, gp->factor, i);

        x[i] /= at[i];
        for (size_t k = 0; k < i; k++)
            x[k] -= x[i] * at[k];
    }
}

/* The inverse of the covariance, its lower triangle: of factor^T the inverse is M, an upper
 * triangle, row by row in `inverse`; then covariance^-1 = M M^T. */
static void invert(KilnGaussianProcess *gp)
{
    const size_t n = gp->count;

    for (size_t i = n; i-- > 0;) {
        double *at = row(gp, gp->inverse, i);

        memset(at, 0, n * sizeof(*at));
        at[i] = 1.0 / row(gp, gp->factor, i)[i];
    }
    for (size_t k = 0; k < n; k++) { /* column k of factor^-1 by rows of the transposed */
        double *at = row(gp, gp->inverse, k);

        for (size_t i = k + 1; i < n; i++) {
            const double *lower = row(gp, gp->factor, i);

            at[i] = -dot(lower + k, at + k, i - k) / lower[i];
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= i; k++) /* row k is not read again once i > k */
            row(gp, gp->inverse, i)[k] = dot(row(gp, gp->inverse, i) + i,
                                             row(gp, gp->inverse, k) + i, n - i);
}

/* ---- Conditioning ---------------------------------------------------------------------------- */

static bool reserve(KilnGaussianProcess *gp, size_t count)
{
    gp->stride = count;
    return KILN_RESERVE(gp->points, gp->points_capacity, count * gp->dims + 1) &&
           KILN_RESERVE(gp->factor, gp->factor_capacity, count * count + 1) &&
           KILN_RESERVE(gp->alpha, gp->alpha_capacity, count + 1) &&
           KILN_RESERVE(gp->room, gp->room_capacity, 3 * count + 1);
}

/* The covariances of sample `i` with the ones before, and its variance, into the factor's row. */
static void put_covariances(KilnGaussianProcess *gp, size_t i, double jitter)
{
    double *at = row(gp, gp->factor, i), slope;

    for (size_t k = 0; k < i; k++)
        at[k] = function_variance(gp) *
                matern(squared_distance(gp, point_at(gp, i), point_at(gp, k)), &slope);
    at[i] = function_variance(gp) + (i < gp->known ? noise_variance(gp) : 0.0) + jitter;
}

static bool factorize(KilnGaussianProcess *gp, double jitter)
{
    for (size_t i = 0; i < gp->count; i++) {
        put_covariances(gp, i, jitter);
        if (!factorize_row(gp, i))
            return false;
    }
    return true;
}

/* Factorize the covariance of `count` points, and solve for the values of the known ones; false
 * when memory is out, or if anything is not a finite number. */
static bool set_up(KilnGaussianProcess *gp, const KilnGpSamples *samples, size_t count,
                   const double *logs)
{
    double jitter = 0.0;

    gp->count = count;
    gp->known = samples->count;
    for (size_t i = 0; i < KILN_GP_LOGS(gp->dims); i++)
        gp->weights[i] = exp(logs[i]);
    if (!reserve(gp, count))
        return false;
    if (count * gp->dims > 0)
        memcpy(gp->points, samples->points, count * gp->dims * sizeof(double));
    /* Equal points make the matrix singular if there is next to no noise. */
    while (!factorize(gp, jitter)) {
        jitter = fmax(10.0 * jitter, 1e-10 * function_variance(gp));
        if (!(jitter < function_variance(gp)))
            return false;
    }
    if (gp->known > 0)
        memcpy(gp->alpha, samples->values, gp->known * sizeof(double));
    solve_lower(gp, gp->alpha, gp->known);
    solve_upper(gp, gp->alpha, gp->known);
    return true;
}

KilnStatus kiln_gp_condition(KilnGaussianProcess *gp, const KilnGpSamples *samples,
                             const double *logs, KilnError *err)
{
    if (!set_up(gp, samples, samples->count + samples->assumed, logs))
        return kiln_error_nomem(err, samples->count + samples->assumed);
    return KILN_OK;
}

/* ---- Prediction ------------------------------------------------------------------------------ */

/* Gradients from the slopes of the correlations, and covariance^-1 * covariances. */
static void put_gradients(const KilnGaussianProcess *gp, const double *point, const double *slopes,
                          const double *solved, double *ret_mean, double *ret_variance)
{
    for (size_t i = 0; i < gp->dims; i++) {
        double mean = 0.0, variance = 0.0;

        for (size_t k = 0; k < gp->count && !gp->unordered[i]; k++) {
            const double slope = slopes[k] * (point[i] - point_at(gp, k)[i]);

            mean += k < gp->known ? slope * gp->alpha[k] : 0.0;
            variance -= 2.0 * slope * solved[k];
        }
        const double factor = 2.0 * gp->weights[i] * function_variance(gp);
        ret_mean[i] = factor * mean;
        ret_variance[i] = factor * variance;
    }
}

KilnGpPrediction kiln_gp_predict(KilnGaussianProcess *gp, const double *point,
                                 double *ret_mean_gradient, double *ret_variance_gradient)
{
    double *covariances = gp->room, *slopes = gp->room + gp->count;
    double *solved = gp->room + 2 * gp->count;
    const double all = function_variance(gp);

    for (size_t k = 0; k < gp->count; k++)
        covariances[k] = all * matern(squared_distance(gp, point, point_at(gp, k)), &slopes[k]);
    if (gp->count > 0)
        memcpy(solved, covariances, gp->count * sizeof(double));
    solve_lower(gp, solved, gp->count);
    const KilnGpPrediction prediction = {
        .mean = dot(covariances, gp->alpha, gp->known),
        .variance = fmax(all - dot(solved, solved, gp->count), 1e-12 * all),
    };
    if (ret_mean_gradient != NULL) {
        solve_upper(gp, solved, gp->count);
        put_gradients(gp, point, slopes, solved, ret_mean_gradient, ret_variance_gradient);
    }
    return prediction;
}

/* ---- Likelihood ------------------------------------------------------------------------------ */

/* Add what one pair of samples (i > k), or a sample alone, has to do with the gradient. `weight`:
 * how much the likelihood grows with their covariance. */
static void add_pair(const KilnGaussianProcess *gp, size_t i, size_t k, double weight,
                     double *gradient)
{
    const double *a = point_at(gp, i), *b = point_at(gp, k);
    double slope;
    const double correlation = matern(squared_distance(gp, a, b), &slope);

    gradient[gp->dims] += weight * function_variance(gp) * correlation;
    for (size_t d = 0; d < gp->dims; d++) {
        const double apart = difference(gp, d, a[d], b[d]);

        gradient[d] += weight * function_variance(gp) * slope * gp->weights[d] * apart * apart;
    }
}

/* Equation 5.9: the trace of (alpha alpha^T - covariance^-1) * derivative / 2. */
static void put_likelihood_gradient(KilnGaussianProcess *gp, double *gradient)
{
    memset(gradient, 0, KILN_GP_LOGS(gp->dims) * sizeof(*gradient));
    invert(gp);
    for (size_t i = 0; i < gp->count; i++) {
        const double *inverse = row(gp, gp->inverse, i);

        for (size_t k = 0; k < i; k++)
            add_pair(gp, i, k, gp->alpha[i] * gp->alpha[k] - inverse[k], gradient);
        const double alone = 0.5 * (gp->alpha[i] * gp->alpha[i] - inverse[i]);
        gradient[gp->dims] += alone * function_variance(gp);
        gradient[gp->dims + 1] += alone * noise_variance(gp);
    }
}

double kiln_gp_likelihood(KilnGaussianProcess *gp, const KilnGpSamples *samples, const double *logs,
                          double *ret_gradient)
{
    const size_t n = samples->count;
    double likelihood = 0.0;

    if (!set_up(gp, samples, n, logs) ||
        !KILN_RESERVE(gp->inverse, gp->inverse_capacity, n * n + 1))
        return -(double)INFINITY;
    likelihood = -0.5 * (double)n * log(2.0 * 3.14159265358979323846);
    for (size_t i = 0; i < n; i++)
        likelihood -= 0.5 * samples->values[i] * gp->alpha[i] + log(row(gp, gp->factor, i)[i]);
    if (ret_gradient != NULL)
        put_likelihood_gradient(gp, ret_gradient);
    return likelihood;
}

/* ---- The fit --------------------------------------------------------------------------------- */

/* Bounds of the hyperparameters' logarithms, where the fit begins, and how many tries it has. */
static const double least_weight = -9.0, most_weight = 7.0, least_variance = -5.0,
                    most_variance = 5.0, least_noise = -14.0, most_noise = 1.0;
static const double first_noise = -5.0;
enum { TRIES = 6, STARTS = 2, FIT_CALLS = 40 };

/* The prior of Optuna's GPSampler: the weight w has the density exp(-0.1 w - 0.1 / w), so that no
 * coordinate is ruled out or rules alone; the variance a Gamma(2, 1), and the noise, which is small
 * in general, a Gamma(1.1, 30). */
static double prior(const KilnGaussianProcess *gp, const double *logs, double *gradient)
{
    const double variance = exp(logs[gp->dims]), noise = exp(logs[gp->dims + 1]);
    double sum = logs[gp->dims] - variance + 0.1 * logs[gp->dims + 1] - 30.0 * noise;

    for (size_t i = 0; i < gp->dims; i++) {
        const double weight = exp(logs[i]);

        sum -= 0.1 * (weight + 1.0 / weight);
        if (gradient != NULL)
            gradient[i] -= 0.1 * (weight - 1.0 / weight);
    }
    if (gradient != NULL) {
        gradient[gp->dims] += 1.0 - variance;
        gradient[gp->dims + 1] += 0.1 - 30.0 * noise;
    }
    return sum;
}

double kiln_gp_posterior(KilnGaussianProcess *gp, const KilnGpSamples *samples, const double *logs,
                         double *ret_gradient)
{
    const double likelihood = kiln_gp_likelihood(gp, samples, logs, ret_gradient);

    return likelihood + prior(gp, logs, isfinite(likelihood) ? ret_gradient : NULL);
}

typedef struct Fit {
    KilnGaussianProcess *gp;
    const KilnGpSamples *samples;
} Fit;

static double loss_of(void *ctx, const double *logs, double *ret_gradient)
{
    Fit *fit = ctx;
    const double posterior = kiln_gp_posterior(fit->gp, fit->samples, logs, ret_gradient);

    for (size_t i = 0; i < KILN_GP_LOGS(fit->gp->dims); i++)
        ret_gradient[i] = -ret_gradient[i];
    return -posterior;
}

/* Where a search begins: the first time all weights and the variance are 1. */
static void put_start(const KilnGaussianProcess *gp, size_t try, KilnRng *rng, double *logs)
{
    for (size_t i = 0; i < gp->dims; i++)
        logs[i] = try == 0 ? 0.0 : (double)kiln_rng_range(rng, -3.0f, 4.0f);
    logs[gp->dims] = 0.0;
    logs[gp->dims + 1] = try == 0 ? first_noise : (double)kiln_rng_range(rng, -12.0f, -2.0f);
}

/* The best of some random starts. */
static void put_best_start(Fit *fit, KilnRng *rng, double *logs, double *room)
{
    const size_t n = KILN_GP_LOGS(fit->gp->dims);
    double best = -(double)INFINITY;

    for (size_t try = 1; try < TRIES; try++) {
        put_start(fit->gp, try, rng, room);
        const double posterior = kiln_gp_posterior(fit->gp, fit->samples, room, NULL);
        if (posterior <= best && try > 1)
            continue;
        best = posterior;
        memcpy(logs, room, n * sizeof(*logs));
    }
}

static void put_bounds(const KilnGaussianProcess *gp, double *low, double *high)
{
    for (size_t i = 0; i < gp->dims; i++) {
        low[i] = least_weight;
        high[i] = most_weight;
    }
    low[gp->dims] = least_variance;
    high[gp->dims] = most_variance;
    low[gp->dims + 1] = least_noise;
    high[gp->dims + 1] = most_noise;
}

KilnStatus kiln_gp_fit(KilnGaussianProcess *gp, const KilnGpSamples *samples, KilnRng *rng,
                       double *ret_logs, KilnError *err)
{
    const size_t n = KILN_GP_LOGS(gp->dims);
    double *room = calloc(4 * n, sizeof(*room)), best = (double)INFINITY, loss;
    Fit fit = { .gp = gp, .samples = samples };
    KilnStatus status = room != NULL ? KILN_OK : kiln_error_nomem(err, 4 * n);

    for (size_t start = 0; start < STARTS && status >= 0; start++) {
        const KilnSmoothFunction function = {
            .n = n, .low = room, .high = room + n, .value = loss_of, .ctx = &fit
        };
        double *logs = room + 2 * n;

        put_bounds(gp, room, room + n);
        if (start == 0)
            put_start(gp, 0, rng, logs);
        else
            put_best_start(&fit, rng, logs, room + 3 * n);
        status = kiln_minimize(&function, FIT_CALLS, logs, &loss, err);
        if (status < 0 || (start > 0 && !(loss < best)))
            continue;
        best = loss;
        memcpy(ret_logs, logs, n * sizeof(*logs));
    }
    free(room);
    return status;
}

/* ---- Improvement ----------------------------------------------------------------------------- */

double kiln_log_improvement(double z, double *ret_slope)
{
    const double log_density = -0.5 * z * z - 0.91893853320467274178;
    const double below = 0.5 * erfc(-z * 0.70710678118654752440);

    if (z > -1.0) {
        const double improvement = exp(log_density) + z * below;

        *ret_slope = below / improvement;
        return log(improvement);
    }
    const double t = -z, s = 1.0 / (t * t);
    if (t > 30.0) { /* Mills' ratio as a series */
        const double rest = s * (1.0 - s * (3.0 - s * (15.0 - s * 105.0)));

        *ret_slope = (1.0 - rest) / t / rest;
        return log_density + log(rest);
    }
    const double ratio = below / exp(log_density); /* Mills' ratio */
    *ret_slope = ratio / (1.0 - t * ratio);
    return log_density + log(1.0 - t * ratio);
}

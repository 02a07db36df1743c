/* Gaussian process regression: a function of a few coordinates, predicted with its uncertainty from
 * some of its values. Rasmussen and Williams, "Gaussian processes for machine learning" (2006).
 *
 * The covariance is a Matérn 5/2 kernel with a length scale for each coordinate, plus noise. The
 * mean is 0, so values should be standardized. */
#ifndef KILN_GAUSSIAN_PROCESS_H
#define KILN_GAUSSIAN_PROCESS_H

#include "kiln/base.h"
#include "kiln/rng.h"

typedef struct KilnGaussianProcess KilnGaussianProcess;

/* Known values of the function. Borrowed for a call. */
typedef struct KilnGpSamples {
    size_t count;
    size_t assumed;       /* more points, after those: the function, without noise, is assumed to be
                           * there what is predicted; only variances shrink */
    const double *points; /* (count + assumed) x coordinates, each about 0 to 1 */
    const double *values; /* of `count` points */
} KilnGpSamples;

/* The hyperparameters as natural logarithms, an array of coordinates + 2: of each coordinate
 * 1 / length scale^2, then the variance of the function, then the variance of the noise. */
#define KILN_GP_LOGS(coordinates) ((coordinates) + 2)

/* `unordered`, copied: any two different values of the coordinate have the distance 1. NULL when
 * memory is out. */
KILN_API KilnGaussianProcess *kiln_gp_new(size_t coordinates, const bool *unordered);
/* Accepts NULL. */
KILN_API void kiln_gp_free(KilnGaussianProcess *gp);

/* The logarithm of the likelihood of the values under these hyperparameters, and its gradient
 * (NULL: not needed); -INFINITY when memory is out. Predictions are not valid after it. */
KILN_API double kiln_gp_likelihood(KilnGaussianProcess *gp, const KilnGpSamples *samples,
                                   const double *logs, double *ret_gradient);
/* The same, plus the logarithm of a weak prior. */
KILN_API double kiln_gp_posterior(KilnGaussianProcess *gp, const KilnGpSamples *samples,
                                  const double *logs, double *ret_gradient);
/* The hyperparameters with the largest posterior that a few starts find, some of them from `rng`.
 * Predictions are not valid after it. */
KILN_API KILN_NODISCARD KilnStatus kiln_gp_fit(KilnGaussianProcess *gp,
                                               const KilnGpSamples *samples, KilnRng *rng,
                                               double *ret_logs, KilnError *err);

/* Predict from these samples, with these hyperparameters. */
KILN_API KILN_NODISCARD KilnStatus kiln_gp_condition(KilnGaussianProcess *gp,
                                                     const KilnGpSamples *samples,
                                                     const double *logs, KilnError *err);
/* A prediction of the function, without the noise. */
typedef struct KilnGpPrediction {
    double mean, variance; /* the variance is above 0 */
} KilnGpPrediction;
/* Predict the value at `point`, with gradients of mean and variance by coordinate (both NULL: not
 * needed; 0 for an unordered one). */
KILN_API KilnGpPrediction kiln_gp_predict(KilnGaussianProcess *gp, const double *point,
                                          double *ret_mean_gradient, double *ret_variance_gradient);

/* The logarithm of the expected improvement below z of a standard normal variable: of
 * density(z) + z * distribution(z), which itself would round to 0 far below 0; and its derivative.
 * With a mean and a deviation: z = (best - mean) / deviation, plus the logarithm of the deviation.
 */
KILN_API double kiln_log_improvement(double z, double *ret_slope);

#endif

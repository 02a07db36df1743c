/* Transforms values to be distributed about normally. */
#include "kiln/search/normalize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double farthest = 10.0; /* from the median */
/* Powers below 0.5 stretch small differences between good values so much that a search stays at the
 * first good place. */
static const double least = 0.5, most = 3.0;

/* A power below 1 pulls in large values, one above 1 small ones. */
static double transformed(double value, double power)
{
    if (value >= 0.0)
        return fabs(power) < 1e-9 ? log1p(value) : (pow(value + 1.0, power) - 1.0) / power;
    return fabs(power - 2.0) < 1e-9 ? -log1p(-value)
                                    : -(pow(1.0 - value, 2.0 - power) - 1.0) / (2.0 - power);
}

static void measure(const double *values, size_t n, double power, double *ret_mean,
                    double *ret_variance)
{
    double sum = 0.0, squares = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += transformed(values[i], power);
    *ret_mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        const double apart = transformed(values[i], power) - *ret_mean;

        squares += apart * apart;
    }
    *ret_variance = squares / (double)n;
}

/* The logarithm of the likelihood of a power, if the transformed values are normal. */
static double likelihood(const double *values, size_t n, double power)
{
    double mean, variance, stretch = 0.0;

    measure(values, n, power, &mean, &variance);
    for (size_t i = 0; i < n; i++)
        stretch += copysign(log1p(fabs(values[i])), values[i]);
    return (power - 1.0) * stretch - 0.5 * (double)n * log(variance);
}

static void standardize(double *values, size_t n, double power)
{
    double mean, variance;

    measure(values, n, power, &mean, &variance);
    const double deviation = variance > 0.0 ? sqrt(variance) : 1.0;
    for (size_t i = 0; i < n; i++)
        values[i] = (transformed(values[i], power) - mean) / deviation;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Median 0, and the middle half of the values as wide as that of a standard normal variable,
 * wherever the others are: with mean and variance one huge value would leave no difference between
 * the others. */
static void center(double *values, const double *sorted, size_t n)
{
    const double median = sorted[n / 2];
    double spread = (sorted[3 * n / 4] - sorted[n / 4]) / 1.349;

    if (!(spread > 0.0))
        spread = fmax(sorted[n - 1] - median, median - sorted[0]);
    if (!(spread > 0.0))
        spread = 1.0;
    for (size_t i = 0; i < n; i++)
        values[i] = fmin(fmax((values[i] - median) / spread, -farthest), farthest);
}

KilnStatus kiln_normalize(double *values, size_t n, KilnError *err)
{
    double *sorted = calloc(n + 1, sizeof(*sorted)), best = 1.0;

    if (sorted == NULL)
        return kiln_error_nomem(err, n);
    if (n > 0) {
        memcpy(sorted, values, n * sizeof(*values));
        qsort(sorted, n, sizeof(*sorted), compare);
        center(values, sorted, n);
    }
    free(sorted);
    for (double power = least; power <= most; power += 0.125)
        if (likelihood(values, n, power) > likelihood(values, n, best))
            best = power;
    standardize(values, n, best);
    return KILN_OK;
}

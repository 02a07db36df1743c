/* Scaling of numbers: to mean 0 and deviation 1, or to a normal distribution by quantiles. */
#include <math.h>
#include <stdlib.h>

#include "data/table/table_internal.h"
#include "kiln/rng.h"

/* ---- The normal distribution ----------------------------------------------------------------- */

/* A quotient of two polynomials of degree 7; coefficients from the constant on. */
static double rational(const double *a, const double *b, double x)
{
    double numerator = a[7], denominator = b[7];

    for (int i = 6; i >= 0; i--) {
        numerator = numerator * x + a[i];
        denominator = denominator * x + b[i];
    }
    return numerator / denominator;
}

double kiln_normal_quantile(double p)
{
    static const double a[] = { 3.3871328727963666080e0, 1.3314166789178437745e2,
                                1.9715909503065514427e3, 1.3731693765509461125e4,
                                4.5921953931549871457e4, 6.7265770927008700853e4,
                                3.3430575583588128105e4, 2.5090809287301226727e3 };
    static const double b[] = { 1.0,
                                4.2313330701600911252e1,
                                6.8718700749205790830e2,
                                5.3941960214247511077e3,
                                2.1213794301586595867e4,
                                3.9307895800092710610e4,
                                2.8729085735721942674e4,
                                5.2264952788528545610e3 };
    static const double c[] = { 1.42343711074968357734e0,  4.63033784615654529590e0,
                                5.76949722146069140550e0,  3.64784832476320460504e0,
                                1.27045825245236838258e0,  2.41780725177450611770e-1,
                                2.27238449892691845833e-2, 7.74545014278341407640e-4 };
    static const double d[] = { 1.0,
                                2.05319162663775882187e0,
                                1.67638483018380384940e0,
                                6.89767334985100004550e-1,
                                1.48103976427480074590e-1,
                                1.51986665636164571966e-2,
                                5.47593808499534494600e-4,
                                1.05075007164441684324e-9 };
    static const double e[] = { 6.65790464350110377720e0,  5.46378491116411436990e0,
                                1.78482653991729133580e0,  2.96560571828504891230e-1,
                                2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                2.71155556874348757815e-5, 2.01033439929228813265e-7 };
    static const double f[] = { 1.0,
                                5.99832206555887937690e-1,
                                1.36929880922735805310e-1,
                                1.48753612908506148525e-2,
                                7.86869131145613259100e-4,
                                1.84631831751005468180e-5,
                                1.42151175831644588870e-7,
                                2.04426310338993978564e-15 };
    const double q = p - 0.5;

    if (fabs(q) <= 0.425)
        return q * rational(a, b, 0.180625 - q * q);
    const double r = sqrt(-log(q < 0.0 ? p : 1.0 - p));
    const double value = r <= 5.0 ? rational(c, d, r - 1.6) : rational(e, f, r - 5.0);
    return q < 0.0 ? -value : value;
}

/* ---- Fitting --------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Noise that tells equal values apart: its deviation is 0.001 over that of the values, as in the
 * code of Gorishniy et al. (2021). */
static void add_noise(double *values, int64_t n, double deviation, uint64_t seed, uint64_t index)
{
    const double noise = 1e-3 / fmax(deviation, 1e-3);
    KilnRng rng;

    kiln_rng_init(&rng, seed, KILN_RNG_DATA, 0, index);
    for (int64_t i = 0; i < n; i++)
        values[i] += noise * (double)kiln_rng_normal(&rng);
}

/* numpy.percentile of sorted values. */
static double percentile(const double *sorted, int64_t n, double share)
{
    const double at = share * (double)(n - 1);
    const int64_t below = (int64_t)at;

    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (sorted[below + 1] - sorted[below]) * (at - (double)below);
}

static KilnStatus fit_quantiles(KilnTableNumber *number, double *values, int64_t n, KilnError *err)
{
    int64_t count = n / 30 < 1000 ? n / 30 : 1000;

    count = count > 10 ? count : 10;
    count = count < n ? count : n;
    qsort(values, (size_t)n, sizeof(*values), by_value);
    number->quantiles = malloc((size_t)count * sizeof(*number->quantiles));
    if (number->quantiles == NULL)
        return kiln_error_nomem(err, (size_t)count * sizeof(*number->quantiles));
    number->n_quantiles = (size_t)count;
    for (int64_t i = 0; i < count; i++) {
        const double share = count > 1 ? (double)i / (double)(count - 1) : 0.0;

        number->quantiles[i] = percentile(values, n, share);
    }
    return KILN_OK;
}

/* The sum of values - mean, or of their squares: in eight parts, which do not wait for each other.
 */
static double sum_of_powers(const double *values, int64_t n, double mean, int power)
{
    double parts[8] = { 0 };
    int64_t i = 0;

    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) {
            const double x = values[i + k] - mean;

            parts[k] += power == 2 ? x * x : x;
        }
    for (; i < n; i++)
        parts[i % 8] += power == 2 ? (values[i] - mean) * (values[i] - mean) : values[i] - mean;
    return ((parts[0] + parts[1]) + (parts[2] + parts[3])) +
           ((parts[4] + parts[5]) + (parts[6] + parts[7]));
}

KilnStatus kiln_scaling_fit(KilnTableNumber *number, KilnTableScaling scaling, double *values,
                            int64_t n, uint64_t seed, uint64_t index, KilnError *err)
{
    number->mean = n > 0 ? sum_of_powers(values, n, 0.0, 1) / (double)n : 0.0;
    const double squares = sum_of_powers(values, n, number->mean, 2);
    const double deviation = n > 0 ? sqrt(squares / (double)n) : 0.0;
    number->deviation = deviation > 0.0 ? deviation : 1.0;
    number->fill = number->mean;
    if (scaling != KILN_SCALING_QUANTILE || n == 0)
        return KILN_OK;
    add_noise(values, n, deviation, seed, index);
    return fit_quantiles(number, values, n, err);
}

/* ---- Applying -------------------------------------------------------------------------------- */

/* scikit-learn's BOUNDS_THRESHOLD: values this near the ends are at the ends, which get the
 * quantile of this share. */
#define EDGE 1e-7

/* The number of quantiles below `value`, or with `or_equal` not above it. */
static size_t count_below(const double *quantiles, size_t n, double value, bool or_equal)
{
    size_t low = 0, high = n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (quantiles[middle] < value || (or_equal && quantiles[middle] == value))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The share of the training values below it: linear between quantiles, and the middle of those that
 * are equal to it. */
static double share_of(const KilnTableNumber *number, double value)
{
    const double *q = number->quantiles;
    const size_t n = number->n_quantiles;

    if (value - EDGE < q[0])
        return 0.0;
    if (value + EDGE > q[n - 1])
        return 1.0;
    const size_t below = count_below(q, n, value, false),
                 not_above = count_below(q, n, value, true);
    double at = (double)not_above - 1.0; /* between quantiles number not_above - 1 and not_above */
    if (not_above > below)
        at = ((double)below + (double)not_above - 1.0) / 2.0;
    else
        at += (value - q[not_above - 1]) / (q[not_above] - q[not_above - 1]);
    return at / (double)(n - 1);
}

static double quantile_of(const KilnTableNumber *number, double value)
{
    const double share = share_of(number, value);
    const double edge = -kiln_normal_quantile(EDGE);

    return share <= EDGE ? -edge : share >= 1.0 - EDGE ? edge : kiln_normal_quantile(share);
}

void kiln_scaling_apply(const KilnTableNumber *number, KilnTableScaling scaling, double *values,
                        int64_t n)
{
    const double mean = number->mean, deviation = number->deviation;

    if (scaling == KILN_SCALING_STANDARD)
        for (int64_t i = 0; i < n; i++)
            values[i] = (values[i] - mean) / deviation;
    if (scaling != KILN_SCALING_QUANTILE || number->n_quantiles == 0)
        return;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(values[i]))
            values[i] = quantile_of(number, values[i]);
}

/* Philox4x32-10 streams. */
#include "kiln/rng.h"

#include <math.h>

static void multiply(uint32_t a, uint32_t b, uint32_t *high, uint32_t *low)
{
    uint64_t product = (uint64_t)a * b;

    *high = (uint32_t)(product >> 32);
    *low = (uint32_t)product;
}

void kiln_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t ret[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];

    for (int round = 0; round < 10; round++) {
        uint32_t high0, low0, high1, low1;

        multiply(0xD2511F53u, c0, &high0, &low0);
        multiply(0xCD9E8D57u, c2, &high1, &low1);
        c0 = high1 ^ c1 ^ k0;
        c2 = high0 ^ c3 ^ k1;
        c1 = low1;
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    ret[0] = c0;
    ret[1] = c1;
    ret[2] = c2;
    ret[3] = c3;
}

/* The counter is [block, epoch, index low, index high]; the purpose is folded
 * into the key, so that no two purposes share a stream. */
void kiln_rng_init(KilnRng *rng, uint64_t seed, uint32_t purpose, uint32_t epoch, uint64_t index)
{
    uint32_t mixed[4];
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    const uint32_t counter[4] = { purpose, 0, 0, 0 };

    kiln_philox(key, counter, mixed);
    *rng = (KilnRng) {
        .key = { mixed[0], mixed[1] },
        .counter = { 0, epoch, (uint32_t)index, (uint32_t)(index >> 32) },
    };
}

uint32_t kiln_rng_u32(KilnRng *rng)
{
    if (rng->left == 0) {
        kiln_philox(rng->key, rng->counter, rng->out);
        rng->counter[0]++;
        rng->left = 4;
    }
    return rng->out[4 - rng->left--];
}

/* Lemire, "Fast random integer generation in an interval", 2019. */
uint32_t kiln_rng_below(KilnRng *rng, uint32_t n)
{
    uint64_t product = (uint64_t)kiln_rng_u32(rng) * n;

    if ((uint32_t)product < n) {
        uint32_t threshold = (0u - n) % n;

        while ((uint32_t)product < threshold)
            product = (uint64_t)kiln_rng_u32(rng) * n;
    }
    return (uint32_t)(product >> 32);
}

float kiln_rng_uniform(KilnRng *rng)
{
    return (float)(kiln_rng_u32(rng) >> 8) * 0x1p-24f;
}

float kiln_rng_range(KilnRng *rng, float low, float high)
{
    return low + (high - low) * kiln_rng_uniform(rng);
}

float kiln_rng_normal(KilnRng *rng)
{
    const double two_pi = 6.283185307179586;
    double radius = 1.0 - (double)kiln_rng_uniform(rng); /* (0, 1] */
    double angle = two_pi * (double)kiln_rng_uniform(rng);

    return (float)(sqrt(-2.0 * log(radius)) * cos(angle));
}

static double uniform_above_0(KilnRng *rng)
{
    return 1.0 - (double)kiln_rng_uniform(rng);
}

/* The logarithm of a Gamma(shape, 1) variate: small shapes give numbers below the smallest
 * double. */
static double log_gamma_variate(KilnRng *rng, double shape)
{
    if (shape < 1.0)
        return log_gamma_variate(rng, shape + 1.0) + log(uniform_above_0(rng)) / shape;
    const double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        const double x = (double)kiln_rng_normal(rng), t = 1.0 + c * x, v = t * t * t;

        if (v > 0.0 && log(uniform_above_0(rng)) < 0.5 * x * x + d - d * v + d * log(v))
            return log(d) + log(v);
    }
}

double kiln_rng_beta(KilnRng *rng, double a, double b)
{
    const double x = log_gamma_variate(rng, a), y = log_gamma_variate(rng, b);

    return 1.0 / (1.0 + exp(y - x));
}

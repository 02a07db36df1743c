/* The values of leaves: the same for a leaf on every backend. */
#include <math.h>

#include "tests/fuzz/graphs/spec.h"

bool leaf_is_float(const Leaf *leaf)
{
    return leaf->kind <= LEAF_VARIABLE;
}

static double tiny_value(KilnRng *rng)
{
    switch (kiln_rng_below(rng, 8)) {
    case 0:
        return 0.0;
    case 1:
        return -0.0;
    case 2:
        return 1e-40 * (double)kiln_rng_normal(rng);
    default:
        return (double)kiln_rng_normal(rng);
    }
}

static double infinite_value(KilnRng *rng)
{
    switch (kiln_rng_below(rng, 40)) {
    case 0:
        return INFINITY;
    case 1:
        return -INFINITY;
    case 2:
        return NAN;
    default:
        return (double)kiln_rng_normal(rng);
    }
}

static double float_value(Values values, KilnRng *rng)
{
    switch (values) {
    case VALUES_POSITIVE:
        return (double)kiln_rng_range(rng, 0.1f, 1.1f);
    case VALUES_INTEGERS:
        return (double)kiln_rng_below(rng, 7) - 3.0;
    case VALUES_OFFSET:
        return 100.0 + (double)kiln_rng_normal(rng);
    case VALUES_FAR:
        return pow(10.0, (double)kiln_rng_range(rng, -5.0f, 5.0f)) *
               (kiln_rng_below(rng, 2) == 0 ? 1.0 : -1.0);
    case VALUES_TINY:
        return tiny_value(rng);
    case VALUES_LARGE:
        return 1e12 * (double)kiln_rng_normal(rng);
    case VALUES_INFINITE:
        return infinite_value(rng);
    case VALUES_NORMAL:
    case VALUES_COUNT:
        break;
    }
    return (double)kiln_rng_normal(rng);
}

static double leaf_value(const Leaf *leaf, KilnRng *rng, int64_t i, int64_t n)
{
    switch (leaf->kind) {
    case LEAF_INDEX:
        return (double)(leaf->low +
                        (int64_t)kiln_rng_below(rng, (uint32_t)(leaf->limit - leaf->low)));
    case LEAF_MASK:
        return (double)kiln_rng_below(rng, 2);
    case LEAF_COUNTER:
        return 41.0;
    case LEAF_ENDS:
        return (double)(leaf->limit * (i + 1) / n);
    case LEAF_INPUT:
    case LEAF_PARAM:
    case LEAF_VARIABLE:
        break;
    }
    return float_value(leaf->values, rng);
}

void leaf_values(const Leaf *leaf, double *ret)
{
    const int64_t n = kiln_shape_count(&leaf->shape);
    KilnRng rng;

    kiln_rng_init(&rng, leaf->seed, KILN_RNG_USER, 1, 0);
    for (int64_t i = 0; i < n; i++)
        ret[i] = leaf_value(leaf, &rng, i, n);
}

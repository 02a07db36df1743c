/* Samples of reductions, and of what is done with indices. */
#include "tests/support/ops/case.h"

/* Axes are arg[1] ... of which there are arg[0]; arg[4]: kept. The gradient depends on
 * the element. */
#define BUILD_REDUCE(name, ...)                                                                    \
    BUILD(build_##name)                                                                            \
    {                                                                                              \
        const int axes[] = { (int)arg[1], (int)arg[2], (int)arg[3] }, n = (int)arg[0];             \
        const bool keep = arg[4] != 0;                                                             \
        KilnTensor *x = leaf[0];                                                                   \
        return __VA_ARGS__;                                                                        \
    }
/* Everything, rows, columns, the middle, both ends; many and few columns, folded ones. */
#define CASES_REDUCE(name)                                                                         \
    static const Case cases_##name[] = {                                                           \
        { #name ", one element", build_##name, "g", .shape = { SHAPE(1) } },                       \
        { #name ", scalar", build_##name, "g", .shape = { SCALAR } },                              \
        { #name ", all", build_##name, "g", .shape = { SHAPE(3, 5) } },                            \
        { #name ", all kept", build_##name, "g", .shape = { SHAPE(3, 5) }, .arg = { [4] = 1 } },   \
        { #name ", last", build_##name, "g", .shape = { SHAPE(5, 7) }, .arg = { 1, -1 } },         \
        { #name ", first", build_##name, "g", .shape = { SHAPE(5, 7) }, .arg = { 1, 0 } },         \
        { #name ", middle", build_##name, "g", .shape = { SHAPE(3, 4, 5) },                        \
          .arg = { 1, 1, 0, 0, 1 } },                                                              \
        { #name ", ends", build_##name, "g", .shape = { SHAPE(3, 4, 5) }, .arg = { 2, 0, 2 } },    \
        { #name ", alternating", build_##name, "g", .shape = { SHAPE(3, 4, 2, 5) },                \
          .arg = { 2, 2, 0 } },                                                                    \
        { #name ", all, large", build_##name, "g", .shape = { SHAPE(311, 313) } },                 \
        { #name ", columns, large", build_##name, "g", .shape = { SHAPE(1031, 67) },               \
          .arg = { 1, 0 } },                                                                       \
        { #name ", few columns", build_##name, "g", .shape = { SHAPE(4096, 3) },                   \
          .arg = { 1, 0 } },                                                                       \
        { #name ", rows, large", build_##name, "g", .shape = { SHAPE(1031, 67) },                  \
          .arg = { 1, 1 } },                                                                       \
        { #name ", ends, large", build_##name, "g", .shape = { SHAPE(17, 19, 311) },               \
          .arg = { 2, 0, 2 } },                                                                    \
        { #name ", channels", build_##name, "g", .shape = { SHAPE(3, 5, 7, 19) },                  \
          .arg = { 3, 0, 1, 2 } },                                                                 \
    };                                                                                             \
    SAMPLES(name)

BUILD_REDUCE(sum, kiln_sum_axes(kiln_mul(x, x), axes, n, keep))
CASES_REDUCE(sum)

BUILD_REDUCE(mean, kiln_mean_axes(kiln_mul(x, x), axes, n, keep))
CASES_REDUCE(mean)

BUILD_REDUCE(max, kiln_max_axes(x, axes, n, keep))
CASES_REDUCE(max)

BUILD_REDUCE(min, kiln_min_axes(x, axes, n, keep))
CASES_REDUCE(min)

BUILD_REDUCE(logsumexp, kiln_logsumexp(x, axes, n, keep))
CASES_REDUCE(logsumexp)

BUILD_REDUCE(prod, kiln_prod_axes(x, axes, n, keep))
BUILD_REDUCE(prod_zeros, kiln_prod_axes(kiln_relu(x), axes, n, keep))
static const Case cases_prod[] = {
    { "prod, scalar", build_prod, "g", .shape = { SCALAR } },
    { "prod, all", build_prod, "g", .shape = { SHAPE(3, 5) } },
    { "prod, last", build_prod, "g", .shape = { SHAPE(5, 7) }, .arg = { 1, -1 } },
    { "prod, ends kept", build_prod, "g", .shape = { SHAPE(3, 4, 5) }, .arg = { 2, 0, 2, 0, 1 } },
    { "prod, middle, large", build_prod, "P", .shape = { SHAPE(67, 13, 31) }, .arg = { 1, 1 } },
    { "prod, zeros", build_prod_zeros, "g", .shape = { SHAPE(61, 2) }, .arg = { 1, 1 },
      .no_differences = true },
};
SAMPLES(prod)
SAMPLES_OF(prod_grad, prod)

BUILD(build_argmax)
{
    return kiln_argmax_axis(leaf[0], (int)arg[0], arg[1] != 0);
}

static const Case cases_argmax[] = {
    { "argmax", build_argmax, "f", .shape = { SHAPE(67, 3) }, .arg = { 1 } },
    { "argmax, one axis", build_argmax, "f", .shape = { SHAPE(67) } },
    { "argmax, first", build_argmax, "f", .shape = { SHAPE(67, 3) } },
    { "argmax, middle", build_argmax, "f", .shape = { SHAPE(5, 67, 3) }, .arg = { 1, 1 } },
    { "argmax, large", build_argmax, "f", .shape = { SHAPE(2053, 31) }, .arg = { -1 } },
};
SAMPLES(argmax)

BUILD(build_accuracy)
{
    UNUSED_ARG;
    return kiln_equal(kiln_argmax(leaf[0]), leaf[1]);
}

static const Case cases_equal[] = {
    { "equal", build_accuracy, "fl", .shape = { SHAPE(67, 3), SHAPE(67) } },
    { "equal, large", build_accuracy, "fl", .shape = { SHAPE(2053, 31), SHAPE(2053) } },
};
SAMPLES(equal)

/* Samples of reductions, and of what is done with indices. */
#ifndef KILN_TEST_OPS_REDUCE_H
#define KILN_TEST_OPS_REDUCE_H

#include "tests/unit/ops/case.h"

BUILD(build_sum)
{
    UNUSED_ARG;
    return kiln_sum(leaf[0]);
}

/* The gradient depends on the element. */
BUILD(build_sum_of_squares)
{
    UNUSED_ARG;
    return kiln_sum(kiln_mul(leaf[0], leaf[0]));
}

static const Case cases_sum[] = {
    { "sum, one element", build_sum, "g", .shape = { SHAPE(1) } },
    { "sum, of squares", build_sum_of_squares, "g", .shape = { SHAPE(2, 3) } },
    { "sum, large", build_sum, "g", .shape = { SHAPE(311, 313) } },
};

BUILD(build_mean)
{
    UNUSED_ARG;
    return kiln_mean(leaf[0]);
}

BUILD(build_mean_of_squares)
{
    UNUSED_ARG;
    return kiln_mean(kiln_mul(leaf[0], leaf[0]));
}

static const Case cases_mean[] = {
    { "mean", build_mean, "g", .shape = { SHAPE(3, 5, 7) } },
    { "mean, of squares", build_mean_of_squares, "g", .shape = { SHAPE(2, 3) } },
    { "mean, large", build_mean, "g", .shape = { SHAPE(311, 313) } },
};

BUILD(build_sum_rows)
{
    UNUSED_ARG;
    return kiln_sum_rows(leaf[0]);
}

static const Case cases_sum_rows[] = {
    { "sum_rows, one row", build_sum_rows, "g", .shape = { SHAPE(1, 33) } },
    { "sum_rows, one column", build_sum_rows, "g", .shape = { SHAPE(131, 1) } },
    { "sum_rows, one axis", build_sum_rows, "g", .shape = { SHAPE(4) } },
    { "sum_rows, 3 axes", build_sum_rows, "g", .shape = { SHAPE(2, 2, 3) } },
    { "sum_rows, 4 axes", build_sum_rows, "g", .shape = { SHAPE(3, 5, 7, 19) } },
    { "sum_rows, large", build_sum_rows, "g", .shape = { SHAPE(1031, 67) } },
};

BUILD(build_argmax)
{
    UNUSED_ARG;
    return kiln_argmax(leaf[0]);
}

static const Case cases_argmax[] = {
    { "argmax", build_argmax, "f", .shape = { SHAPE(67, 3) } },
    { "argmax, large", build_argmax, "f", .shape = { SHAPE(2053, 31) } },
};

BUILD(build_accuracy)
{
    UNUSED_ARG;
    return kiln_equal(kiln_argmax(leaf[0]), leaf[1]);
}

static const Case cases_equal[] = {
    { "equal", build_accuracy, "fl", .shape = { SHAPE(67, 3), SHAPE(67) } },
    { "equal, large", build_accuracy, "fl", .shape = { SHAPE(2053, 31), SHAPE(2053) } },
};

#endif

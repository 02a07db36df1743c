/* Samples of operations that pick and place elements by index. */
#include "tests/support/ops/case.h"

/* arg[0]: indices are below it; arg[1]: the axis. */
BUILD(build_gather)
{
    return kiln_gather(leaf[0], (int)arg[1], leaf[1]);
}

static const Case cases_gather[] = {
    { "gather", build_gather, "gL", .shape = { SHAPE(3, 4), SHAPE(3, 6) }, .arg = { 4, 1 } },
    { "gather, first axis", build_gather, "gL", .shape = { SHAPE(5, 4, 2), SHAPE(3, 4, 2) },
      .arg = { 5, 0 } },
    { "gather, smaller index", build_gather, "gL", .shape = { SHAPE(3, 5, 4), SHAPE(2, 7, 3) },
      .arg = { 5, -2 } },
    { "gather, out of range", build_gather, "fL", .shape = { SHAPE(3, 4), SHAPE(3, 9) },
      .arg = { 6, 1 } },
    { "gather, i32", build_gather, "lL", .shape = { SHAPE(3, 4), SHAPE(3, 9) }, .arg = { 6, 1 } },
    { "gather, large", build_gather, "gL", .shape = { SHAPE(131, 7, 67), SHAPE(64, 7, 67) },
      .arg = { 131, 0 } },
};
SAMPLES(gather)

BUILD(build_scatter_add)
{
    return kiln_scatter_add(leaf[0], (int)arg[1], leaf[1], leaf[2]);
}

static const Case cases_scatter_add[] = {
    { "scatter_add", build_scatter_add, "gLg", .shape = { SHAPE(3, 4), SHAPE(3, 6), SHAPE(3, 6) },
      .arg = { 4, 1 } },
    { "scatter_add, smaller index", build_scatter_add, "gLg",
      .shape = { SHAPE(3, 5, 4), SHAPE(2, 7, 3), SHAPE(2, 7, 3) }, .arg = { 5, 1 } },
    { "scatter_add, out of range", build_scatter_add, "fLf",
      .shape = { SHAPE(3, 4), SHAPE(3, 5), SHAPE(3, 5) }, .arg = { 6, 1 } },
    { "scatter_add, large", build_scatter_add, "gLg",
      .shape = { SHAPE(257, 129), SHAPE(401, 129), SHAPE(401, 129) }, .arg = { 257, 0 } },
};
SAMPLES(scatter_add)

BUILD(build_one_hot)
{
    return kiln_one_hot(leaf[0], arg[1]);
}

static const Case cases_one_hot[] = {
    { "one_hot", build_one_hot, "L", .shape = { SHAPE(3, 5) }, .arg = { 4, 4 } },
    { "one_hot, out of range", build_one_hot, "L", .shape = { SHAPE(1031) }, .arg = { 67, 64 } },
};
SAMPLES(one_hot)

BUILD(build_arange)
{
    KilnTensor *count = kiln_arange(leaf[0]->graph, KILN_I32, 3.0, -2.0, arg[0]);
    KilnTensor *ramp = kiln_arange(leaf[0]->graph, leaf[0]->graph->float_type, -1.0, 0.25, arg[0]);

    return kiln_add(kiln_mul(leaf[0], ramp), kiln_to_float(count));
}

static const Case cases_arange[] = {
    { "arange", build_arange, "g", .shape = { SHAPE(2, 7) }, .arg = { 7 } },
};
SAMPLES(arange)

BUILD(build_cumsum)
{
    return kiln_cumsum(leaf[0], (int)arg[0]);
}

static const Case cases_cumsum[] = {
    { "cumsum", build_cumsum, "g", .shape = { SHAPE(3, 5) }, .arg = { -1 } },
    { "cumsum, middle axis", build_cumsum, "g", .shape = { SHAPE(2, 5, 3) }, .arg = { 1 } },
    { "cumsum, large", build_cumsum, "g", .shape = { SHAPE(131, 67, 5) }, .arg = { 1 } },
};
SAMPLES(cumsum)

/* Samples of operations that order and group elements, and of random numbers. */
#include "tests/support/ops/case.h"

/* arg[1]: the axis; arg[2]: descending; arg[3]: how many, 0 for all. */
BUILD(build_sort)
{
    const int axis = (int)arg[1];

    return arg[3] > 0 ? kiln_topk(leaf[0], arg[3], axis, arg[2] != 0).values
                      : kiln_sort(leaf[0], axis, arg[2] != 0).values;
}

BUILD(build_argsort)
{
    const int axis = (int)arg[1];

    return arg[3] > 0 ? kiln_topk(leaf[0], arg[3], axis, arg[2] != 0).indices
                      : kiln_argsort(leaf[0], axis, arg[2] != 0);
}

static const Case cases_sort[] = {
    { "sort", build_sort, "g", .shape = { SHAPE(3, 7) }, .arg = { 0, 1 } },
    { "sort, descending", build_sort, "g", .shape = { SHAPE(3, 7) }, .arg = { 0, -1, 1 } },
    { "sort, middle", build_sort, "g", .shape = { SHAPE(2, 9, 3) }, .arg = { 0, 1 } },
    { "sort, radix", build_sort, "f", .shape = { SHAPE(3, 1031) }, .arg = { 0, 1 } },
    { "sort, radix, first axis", build_sort, "g", .shape = { SHAPE(300, 11) }, .arg = { 0, 0, 1 } },
    { "argsort", build_argsort, "f", .shape = { SHAPE(67, 31) }, .arg = { 0, -1, 1 } },
    { "argsort, equal elements", build_argsort, "L", .shape = { SHAPE(5, 211) }, .arg = { 4, 1 } },
    { "argsort, equal, descending", build_argsort, "L", .shape = { SHAPE(211, 5) },
      .arg = { 4, 0, 1 } },
    { "topk", build_sort, "g", .shape = { SHAPE(5, 17) }, .arg = { 0, 1, 1, 3 } },
    { "topk, smallest", build_sort, "g", .shape = { SHAPE(17, 5) }, .arg = { 0, 0, 0, 4 } },
    { "topk, selected", build_sort, "g", .shape = { SHAPE(3, 1031) }, .arg = { 0, 1, 1, 7 } },
    { "topk, indices", build_argsort, "L", .shape = { SHAPE(3, 1031) }, .arg = { 50, 1, 1, 29 } },
    { "topk, one", build_argsort, "f", .shape = { SHAPE(257, 129) }, .arg = { 0, 1, 1, 1 } },
};
SAMPLES(sort)

/* arg[0]: ids are below it; arg[1]: groups; arg[2]: sum, mean, max. */
BUILD(build_segment)
{
    return arg[2] == 0   ? kiln_segment_sum(leaf[0], leaf[1], arg[1])
           : arg[2] == 1 ? kiln_segment_mean(leaf[0], leaf[1], arg[1])
                         : kiln_segment_max(leaf[0], leaf[1], arg[1]);
}

/* Ids from -2. */
BUILD(build_segment_out)
{
    KilnTensor *ids = kiln_cast(kiln_shift(kiln_to_float(leaf[1]), -2.0), KILN_I32);

    return build_segment((KilnTensor *[]) { leaf[0], ids }, arg);
}

/* Equal elements. */
BUILD(build_segment_relu)
{
    return build_segment((KilnTensor *[]) { kiln_relu(leaf[0]), leaf[1] }, arg);
}

#define CASES_SEGMENT(name, mode)                                                                  \
    { name, build_segment, "gL", .shape = { SHAPE(9, 5), SHAPE(9) }, .arg = { 4, 4, mode } },      \
        { name ", one column", build_segment, "gL", .shape = { SHAPE(17), SHAPE(17) },             \
          .arg = { 4, 6, mode } },                                                                 \
        { name ", left out", build_segment_out, "gL", .shape = { SHAPE(9, 3), SHAPE(9) },          \
          .arg = { 6, 5, mode } },                                                                 \
        { name ", invalid", build_segment, "fL", .shape = { SHAPE(19, 3), SHAPE(19) },             \
          .arg = { 6, 5, mode } },                                                                 \
        { name ", large", build_segment, "gL", .shape = { SHAPE(1031, 3, 7), SHAPE(1031) },        \
          .arg = { 67, 67, mode } },
static const Case cases_segment[] = {
    CASES_SEGMENT("segment sum", 0) CASES_SEGMENT("segment mean", 1)
        CASES_SEGMENT("segment max", 2) { "segment max, equals", build_segment_relu, "gL",
                                          .shape = { SHAPE(41, 5), SHAPE(41) }, .arg = { 4, 4, 2 },
                                          .no_differences = true },
};
SAMPLES(segment)
SAMPLES_OF(segment_grad, segment)

/* arg[0]: uniform, normal, bernoulli. */
BUILD(build_random)
{
    const KilnShape shape = *kiln_tensor_shape(leaf[1]);

    return arg[0] == 0   ? kiln_mul(leaf[1], kiln_uniform(shape, -0.5, 1.5, leaf[0], 3))
           : arg[0] == 1 ? kiln_mul(leaf[1], kiln_normal(shape, 0.25, 2.0, leaf[0], 3))
                         : kiln_bernoulli(leaf[1], leaf[0], 3);
}

static const Case cases_random[] = {
    { "uniform", build_random, "lg", .shape = { SHAPE(2), SHAPE(3, 37) } },
    { "normal", build_random, "lg", .shape = { SHAPE(2), SHAPE(3, 37) }, .arg = { 1 } },
    { "bernoulli", build_random, "lp", .shape = { SHAPE(2), SHAPE(3, 37) }, .arg = { 2 } },
    { "uniform, large", build_random, "lf", .shape = { SHAPE(2), SHAPE(257, 263) } },
    { "normal, large", build_random, "lf", .shape = { SHAPE(2), SHAPE(257, 263) }, .arg = { 1 } },
};
SAMPLES(random)

/* arg[1]: limit; arg[2]: 0 the places, 1 the count, 2 the elements. */
BUILD(build_nonzero)
{
    const KilnPlaces places = kiln_nonzero(leaf[0], arg[1]);

    return arg[2] == 0 ? places.index : places.count;
}

BUILD(build_masked_select)
{
    return kiln_masked_select(leaf[0], leaf[1], arg[1]).values;
}

static const Case cases_nonzero[] = {
    { "nonzero, u8", build_nonzero, "m", .shape = { SHAPE(3, 7) }, .arg = { 0, 15 } },
    { "nonzero, i32", build_nonzero, "L", .shape = { SHAPE(41) }, .arg = { 3, 50 } },
    { "nonzero, too many", build_nonzero, "f", .shape = { SHAPE(5, 7) }, .arg = { 0, 9 } },
    { "nonzero, count", build_nonzero, "m", .shape = { SHAPE(101, 67) }, .arg = { 0, 9, 1 } },
    { "nonzero, chunks", build_nonzero, "m", .shape = { SHAPE(211, 200) }, .arg = { 0, 30000 } },
    { "nonzero, chunks, too many", build_nonzero, "m", .shape = { SHAPE(211, 200) },
      .arg = { 0, 17000 } },
    { "masked_select", build_masked_select, "gm", .shape = { SHAPE(4, 6), SHAPE(4, 6) },
      .arg = { 0, 20 } },
    { "masked_select, too many", build_masked_select, "gm",
      .shape = { SHAPE(67, 31), SHAPE(67, 31) }, .arg = { 0, 100 } },
};
SAMPLES(nonzero)

/* arg[1]: which result. */
BUILD(build_unique)
{
    const KilnUnique unique = kiln_unique(leaf[0]);
    KilnTensor *results[] = { unique.values, unique.inverse, unique.counts, unique.count };

    return results[arg[1]];
}

static const Case cases_unique[] = {
    { "unique", build_unique, "L", .shape = { SHAPE(5, 7) }, .arg = { 9 } },
    { "unique, inverse", build_unique, "L", .shape = { SHAPE(5, 7) }, .arg = { 9, 1 } },
    { "unique, counts", build_unique, "L", .shape = { SHAPE(5, 67) }, .arg = { 9, 2 } },
    { "unique, count", build_unique, "L", .shape = { SHAPE(67, 31) }, .arg = { 70, 3 } },
    { "unique, floats", build_unique, "f", .shape = { SHAPE(67, 3) } },
    { "unique, chunks", build_unique, "f", .shape = { SHAPE(211, 200) } },
    { "unique, chunks, counts", build_unique, "L", .shape = { SHAPE(211, 200) }, .arg = { 9, 2 } },
    { "unique, chunks, inverse", build_unique, "L", .shape = { SHAPE(211, 200) },
      .arg = { 20000, 1 } },
};
SAMPLES(unique)

/* Samples of operations that move elements or repeat them. */
#ifndef KILN_TEST_OPS_SHAPE_H
#define KILN_TEST_OPS_SHAPE_H

#include "tests/unit/ops/case.h"

BUILD(build_reshape)
{
    return kiln_reshape(leaf[0], KILN_SHAPE(arg[0], arg[1]));
}

BUILD(build_flatten)
{
    UNUSED_ARG;
    return kiln_flatten(leaf[0]);
}

static const Case cases_reshape[] = {
    { "reshape", build_reshape, "g", .shape = { SHAPE(2, 3, 5) }, .arg = { 5, 6 } },
    { "reshape, one size inferred", build_reshape, "g", .shape = { SHAPE(2, 6) },
      .arg = { 4, -1 } },
    { "flatten, one row high", build_flatten, "g", .shape = { SHAPE(2, 3, 1, 2) } },
    { "flatten", build_flatten, "g", .shape = { SHAPE(2, 3, 2, 1) } },
};

BUILD(build_permute)
{
    const int order[] = { (int)arg[0], (int)arg[1], (int)arg[2], (int)arg[3] };

    return kiln_permute(leaf[0], order);
}

static const Case cases_permute[] = {
    { "permute, transpose", build_permute, "g", .shape = { SHAPE(5, 7) }, .arg = { 1, 0 } },
    { "permute, small to NCHW", build_permute, "g", .shape = { SHAPE(2, 3, 4, 2) },
      .arg = { 0, 3, 1, 2 } },
    { "permute, no axis stays", build_permute, "g", .shape = { SHAPE(2, 3, 4, 2) },
      .arg = { 2, 0, 3, 1 } },
    { "permute, to NCHW", build_permute, "g", .shape = { SHAPE(3, 5, 7, 11) },
      .arg = { 0, 3, 1, 2 } },
    { "permute, large", build_permute, "g", .shape = { SHAPE(31, 37, 41, 2) },
      .arg = { 3, 1, 0, 2 } },
};

#endif

/* Samples of pooling. */
#ifndef KILN_TEST_OPS_POOL_H
#define KILN_TEST_OPS_POOL_H

#include "tests/unit/ops/case.h"

BUILD(build_max_pool)
{
    const KilnPool pool = { .kernel = arg[0], .stride = arg[1], .padding = arg[2] };

    return kiln_max_pool2d(leaf[0], pool);
}

static const Case cases_max_pool2d[] = {
    { "max_pool2d, 2x2", build_max_pool, "g", .shape = { SHAPE(2, 8, 10, 5) }, .arg = { 2, 2, 0 } },
    { "max_pool2d, 3x3", build_max_pool, "g", .shape = { SHAPE(2, 11, 9, 17) },
      .arg = { 3, 2, 1 } },
    { "max_pool2d, overlapping", build_max_pool, "g", .shape = { SHAPE(1, 7, 7, 1) },
      .arg = { 3, 1, 1 } },
    { "max_pool2d, with gaps", build_max_pool, "g", .shape = { SHAPE(3, 13, 13, 16) },
      .arg = { 2, 3, 0 } },
    { "max_pool2d, large window", build_max_pool, "g", .shape = { SHAPE(1, 19, 19, 3) },
      .arg = { 17, 2, 0 } },
    { "max_pool2d, stride of the kernel", build_max_pool, "g", .shape = { SHAPE(2, 4, 6, 2) },
      .arg = { 2, 0, 0 } },
    { "max_pool2d, small 3x3", build_max_pool, "g", .shape = { SHAPE(1, 7, 5, 2) },
      .arg = { 3, 2, 1 } },
};
#define cases_max_pool2d_grad cases_max_pool2d

BUILD(build_global_pool)
{
    UNUSED_ARG;
    return kiln_global_avg_pool2d(leaf[0]);
}

static const Case cases_global_avg_pool2d[] = {
    { "global_avg_pool2d", build_global_pool, "g", .shape = { SHAPE(3, 5, 7, 11) } },
    { "global_avg_pool2d, small", build_global_pool, "g", .shape = { SHAPE(2, 3, 4, 2) } },
    { "global_avg_pool2d, one place", build_global_pool, "g", .shape = { SHAPE(5, 1, 1, 32) } },
    { "global_avg_pool2d, blocks", build_global_pool, "g", .shape = { SHAPE(67, 4, 4, 64) } },
};
#define cases_global_avg_pool2d_grad cases_global_avg_pool2d

#endif

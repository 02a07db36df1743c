/* Samples of images in another size. */
#include "tests/support/ops/case.h"

/* arg: mode (0 nearest, 1 bilinear, 2 bilinear with corners), height, width. */
BUILD(build_upsample)
{
    const KilnSize size = { arg[1], arg[2] };

    return arg[0] == 0 ? kiln_upsample_nearest(leaf[0], size)
                       : kiln_upsample_bilinear(leaf[0], size, arg[0] == 2);
}

static const Case cases_upsample[] = {
    { "upsample, nearest", build_upsample, "g", .shape = { SHAPE(2, 3, 4, 2) },
      .arg = { 0, 6, 8 } },
    { "upsample, nearest, odd", build_upsample, "g", .shape = { SHAPE(1, 5, 3, 3) },
      .arg = { 0, 7, 2 } },
    { "upsample, bilinear", build_upsample, "g", .shape = { SHAPE(2, 3, 4, 2) },
      .arg = { 1, 6, 9 } },
    { "upsample, bilinear, smaller", build_upsample, "g", .shape = { SHAPE(1, 7, 5, 2) },
      .arg = { 1, 3, 4 } },
    { "upsample, bilinear, corners", build_upsample, "g", .shape = { SHAPE(1, 3, 4, 2) },
      .arg = { 2, 5, 7 } },
    { "upsample, bilinear, one row", build_upsample, "g", .shape = { SHAPE(2, 1, 4, 1) },
      .arg = { 2, 3, 1 } },
    { "upsample, large", build_upsample, "g", .shape = { SHAPE(3, 17, 19, 16) },
      .arg = { 1, 34, 41 } },
};
SAMPLES(upsample)
SAMPLES_OF(upsample_grad, upsample)

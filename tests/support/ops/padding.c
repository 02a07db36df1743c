/* Samples of padding with a tensor's edges. */
#include "tests/support/ops/case.h"

BUILD(build_pad_reflect)
{
    return kiln_pad_reflect(leaf[0], (int64_t[]) { arg[0], arg[1], arg[2] },
                            (int64_t[]) { arg[3], arg[4], arg[5] });
}

BUILD(build_pad_replicate)
{
    return kiln_pad_replicate(leaf[0], (int64_t[]) { arg[0], arg[1], arg[2] },
                              (int64_t[]) { arg[3], arg[4], arg[5] });
}

static const Case cases_pad_axis[] = {
    { "pad, reflect", build_pad_reflect, "g", .shape = { SHAPE(2, 3, 4) },
      .arg = { 0, 1, 3, 1, 2, 1 } },
    { "pad, reflect, one axis", build_pad_reflect, "g", .shape = { SHAPE(2, 5, 3) },
      .arg = { 0, 4, 0, 0, 4, 0 } },
    { "pad, reflect, large", build_pad_reflect, "g", .shape = { SHAPE(17, 67, 33) },
      .arg = { 3, 1, 0, 1, 1, 7 } },
    { "pad, replicate", build_pad_replicate, "g", .shape = { SHAPE(2, 1, 4) },
      .arg = { 0, 2, 3, 1, 1, 0 } },
    { "pad, replicate, large", build_pad_replicate, "g", .shape = { SHAPE(17, 67, 33) },
      .arg = { 0, 1, 2, 0, 70, 35 } },
    { "pad, replicate, i32", build_pad_replicate, "l", .shape = { SHAPE(2, 3, 5) },
      .arg = { 0, 1, 2, 2, 0, 1 } },
    { "pad, reflect, u8", build_pad_reflect, "m", .shape = { SHAPE(2, 3, 5) },
      .arg = { 0, 1, 2, 1, 0, 1 } },
};
SAMPLES(pad_axis)
SAMPLES_OF(pad_axis_grad, pad_axis)

/* Samples of conversions between types. */
#include "tests/support/ops/case.h"

BUILD(build_cast_same)
{
    UNUSED_ARG;
    return kiln_cast(leaf[0], kiln_tensor_dtype(leaf[0]));
}

/* There and back: what bf16 keeps. */
BUILD(build_cast_rounds)
{
    UNUSED_ARG;
    return kiln_cast(kiln_cast(leaf[0], KILN_BF16), kiln_tensor_dtype(leaf[0]));
}

BUILD(build_cast_mask)
{
    UNUSED_ARG;
    return kiln_cast(leaf[0], KILN_F32);
}

static const Case cases_cast[] = {
    { "cast, same type", build_cast_same, "g", .shape = { SHAPE(5, 7) } },
    { "cast, to bf16 and back", build_cast_rounds, "f", .shape = { SHAPE(3, 37) } },
    { "cast, to bf16 and back, large", build_cast_rounds, "f", .shape = { SHAPE(257, 263) } },
    { "cast, from u8", build_cast_mask, "m", .shape = { SHAPE(4, 33) } },
    { "cast, from i32", build_cast_mask, "l", .shape = { SHAPE(17) } },
};
SAMPLES(cast)

BUILD(build_store)
{
    UNUSED_ARG;
    kiln_store(leaf[0], leaf[1]);
    return NULL;
}

static const Case cases_store[] = {
    { "store", build_store, "vf", .shape = { SHAPE(3, 5), SHAPE(3, 5) } },
    { "store, of integers", build_store, "vl", .shape = { SHAPE(2, 9), SHAPE(2, 9) } },
};
SAMPLES(store)

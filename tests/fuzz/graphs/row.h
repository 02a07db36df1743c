/* How the tables of operations are written. */
#ifndef KILN_TESTS_FUZZ_GRAPHS_ROW_H
#define KILN_TESTS_FUZZ_GRAPHS_ROW_H

#include "tests/fuzz/graphs/draw.h"

/* Begin the two functions of a row. */
#define DRAW(name) static bool row_##name(Draw *draw, Item *item)
#define UNUSED __attribute__((unused))
#define BUILD(name)                                                                                \
    static void build_##name(UNUSED KilnTensor *const *in, UNUSED const Item *item,                \
                             UNUSED KilnTensor **out)

/* The builder of an operation on x, on a and b. */
#define BUILD_ONE(name, ...)                                                                       \
    BUILD(name)                                                                                    \
    {                                                                                              \
        KilnTensor *x = in[0];                                                                     \
        out[0] = __VA_ARGS__;                                                                      \
    }
#define BUILD_TWO(name, ...)                                                                       \
    BUILD(name)                                                                                    \
    {                                                                                              \
        KilnTensor *a = in[0], *b = in[1];                                                         \
        out[0] = __VA_ARGS__;                                                                      \
    }

#define ROWS(name) const Rows rows_##name = { table, KILN_COUNT(table) };

#endif

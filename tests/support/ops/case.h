/* What a sample of an operation is. One set of samples serves the comparison of
 * the backends and the finite differences (test_ops.c). */
#ifndef KILN_TESTS_SUPPORT_OPS_CASE_H
#define KILN_TESTS_SUPPORT_OPS_CASE_H

#include "graph/op.h"

enum { MAX_LEAVES = 8 };

/* What a leaf is filled with and used for, one letter each. */
enum {
    LEAF_GRAD = 'g',          /* float, wants a gradient */
    LEAF_FLOAT = 'f',         /* float without one */
    LEAF_POSITIVE = 'p',      /* variances, learning rates */
    LEAF_POSITIVE_GRAD = 'P', /* positive, wants a gradient */
    LEAF_LABEL = 'l',         /* i32 below 3 */
    LEAF_INDEX = 'L',         /* i32 below arg[0] */
    LEAF_MASK = 'm',          /* u8, 0 or 1 */
    LEAF_VARIABLE = 'v',      /* float that the operation updates, positive */
    LEAF_COUNTER = 'c'        /* i64 that the operation updates */
};

typedef struct Case {
    const char *name;
    /* Records the operation; NULL when it only updates leaves. */
    KilnTensor *(*build)(KilnTensor *const *leaf, const int64_t *arg);
    const char *leaves;
    KilnShape shape[MAX_LEAVES];
    int64_t arg[8];
    double tolerance; /* between backends; 0: the usual 1e-5 */
    /* No finite differences: there are kinks, or rounding of long sums hides them. */
    bool no_differences;
    bool skips; /* does not multiply with zeros it knows of: NaN there may not show */
} Case;

static inline bool leaf_wants_grad(char kind)
{
    return kind == LEAF_GRAD || kind == LEAF_POSITIVE_GRAD;
}

/* KILN_SHAPE and KILN_SCALAR as initializers of static data. */
#define SHAPE(...)                                                                                 \
    {                                                                                              \
        .rank = (int)(sizeof((int64_t[]) { __VA_ARGS__ }) / sizeof(int64_t)), .dim = {             \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define SCALAR                                                                                     \
    {                                                                                              \
        .rank = 0                                                                                  \
    }

#define BUILD(name) static KilnTensor *name(KilnTensor *const *leaf, const int64_t *arg)
#define UNUSED_ARG (void)arg

/* The samples of one operation. */
typedef struct Samples {
    const Case *cases;
    size_t count;
} Samples;

/* Export cases_NAME as the samples of kiln_op_NAME; OF: cases_OTHER. */
#define SAMPLES(name) SAMPLES_OF(name, name)
#define SAMPLES_OF(name, other)                                                                    \
    const Samples samples_##name = { cases_##other, KILN_COUNT(cases_##other) };

/* Builders of operations on one tensor, and on two that broadcast. */
#define BUILD_ONE(name, ...)                                                                       \
    BUILD(build_##name)                                                                            \
    {                                                                                              \
        KilnTensor *x = leaf[0];                                                                   \
        UNUSED_ARG;                                                                                \
        return __VA_ARGS__;                                                                        \
    }
#define BUILD_TWO(name, ...)                                                                       \
    BUILD(build_##name)                                                                            \
    {                                                                                              \
        KilnTensor *a = leaf[0], *b = leaf[1];                                                     \
        UNUSED_ARG;                                                                                \
        return __VA_ARGS__;                                                                        \
    }
/* Cases of an operation on one tensor. */
#define CASES_ONE(name, leaves)                                                                    \
    static const Case cases_##name[] = {                                                           \
        { #name, build_##name, leaves, .shape = { SHAPE(3, 7, 5) } },                              \
        { #name ", large", build_##name, leaves, .shape = { SHAPE(101, 211) } },                   \
    };                                                                                             \
    SAMPLES(name)

#endif

/* Compares results and gradients of both backends with those that PyTorch computed. */
#ifndef KILN_TESTS_SUPPORT_TORCH_GROUPS_H
#define KILN_TESTS_SUPPORT_TORCH_GROUPS_H

#include "graph/backend.h"
#include "tests/support/cmocka.h"

/* A tensor of a file in tests/data/ops, which has an array `records` of them. */
typedef struct Recorded {
    const char *name;
    size_t n;
    const float *values;
} Recorded;

enum { GROUP_LEAVES = 6 };

typedef struct Leaf {
    const char *name;
    KilnDType dtype;
    KilnShape shape;
} Leaf;

typedef struct Group {
    const char *name;
    KilnTensor *(*build)(KilnTensor *const *x);
    Leaf leaves[GROUP_LEAVES];
} Group;

#define BUILD(name) static KilnTensor *name(KilnTensor *const *x)

#define RETURNS(name, ...)                                                                         \
    BUILD(build_##name)                                                                            \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }

#define F(name, ...)                                                                               \
    {                                                                                              \
        name, KILN_F32,                                                                            \
        {                                                                                          \
            SIZES(__VA_ARGS__)                                                                     \
        }                                                                                          \
    }

#define I(name, ...)                                                                               \
    {                                                                                              \
        name, KILN_I32,                                                                            \
        {                                                                                          \
            SIZES(__VA_ARGS__)                                                                     \
        }                                                                                          \
    }

#define SIZES(...)                                                                                 \
    .rank = (int)(sizeof((int64_t[]) { __VA_ARGS__ }) / sizeof(int64_t)), .dim = { __VA_ARGS__ }

#define U(name, ...)                                                                               \
    {                                                                                              \
        name, KILN_U8,                                                                             \
        {                                                                                          \
            SIZES(__VA_ARGS__)                                                                     \
        }                                                                                          \
    }

#define GROUP(name, ...)                                                                           \
    {                                                                                              \
#name, build_##name,                                                                       \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/* The groups of a test, and what its script recorded. */
typedef struct Recording {
    const Group *groups;
    size_t n_groups;
    const Recorded *records;
    size_t n_records;
} Recording;

/* Runs every group on both backends, and checks that each recorded group is tested. Returns what
 * main returns. */
int test_recording(Recording all);

#endif

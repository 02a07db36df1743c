/* The passes by name. */
#ifndef KILN_GRAPH_PASSES_PASS_LIST_H
#define KILN_GRAPH_PASSES_PASS_LIST_H

/* Every pass, in the order in which they run: X(name, joins, summary) for kiln_pass_<name>,
 * declared in passes/<name>.h. Precision comes before elementwise operations are joined, which then
 * have their final types. The last three are of planning (passes/planning.h). */
#define KILN_PASS_TABLE(X)                                                                         \
    X(dead_code, false, "leave out what nobody reads")                                             \
    X(common_subexpressions, false, "compute once what is recorded twice")                         \
    X(fuse_norm, true, "join batch normalization with the sum and the relu after it")              \
    X(precision, false, "keep activations in bf16 where trainer.precision says so")                \
    X(fuse_epilogue, true, "run elementwise operations in the product or convolution before them") \
    X(fuse_elementwise, true, "join elementwise operations that follow each other")                \
    X(layouts, false, "let kernels hand activations on in orders of their own")                    \
    X(in_place, true, "write a result over the input that nobody else reads")                      \
    X(share_memory, false, "let values that are needed at different times lie in one place")

/* Its place in kiln_passes, and its bit in passes_off. */
typedef enum KilnPassNumber {
#define KILN_PASS_ENUM(name, joins, summary) KILN_PASS_##name,
    KILN_PASS_TABLE(KILN_PASS_ENUM)
#undef KILN_PASS_ENUM
} KilnPassNumber;

#endif

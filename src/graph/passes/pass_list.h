/* The list of passes, in their order. */
#ifndef KILN_GRAPH_PASSES_PASS_LIST_H
#define KILN_GRAPH_PASSES_PASS_LIST_H

/* Every pass, in order of execution: X(name, merges, summary) for kiln_pass_<name>, defined in
 * passes/<name>.c. Precision runs before elementwise fusion, which needs final types. The last
 * four belong to planning (passes/planning.c). */
#define KILN_PASS_TABLE(X)                                                                         \
    X(dead_code, false, "remove operations whose results are never read")                          \
    X(trim_kernels, false, "leave out parts of kernels that meet only padding")                    \
    X(common_subexpressions, false, "compute repeated operations once")                            \
    X(fuse_norm, true, "fuse batch normalization with the residual sum and the relu")              \
    X(fold_norm, true, "fold batch normalization, residual sum and activation into convolutions")  \
    X(precision, false, "store activations as bf16 if trainer.precision allows")                   \
    X(fuse_epilogue, true, "run elementwise operations in the product before them")                \
    X(fuse_elementwise, true, "fuse consecutive elementwise operations")                           \
    X(layouts, false, "let kernels exchange activations in their own layouts")                     \
    X(constants, true, "keep what depends on parameters alone until they change")                  \
    X(in_place, true, "overwrite inputs that are no longer read")                                  \
    X(share_memory, false, "reuse memory between values with disjoint lifetimes")

/* Its index in kiln_passes, and its bit in passes_off. */
typedef enum KilnPassNumber {
#define KILN_PASS_ENUM(name, merges, summary) KILN_PASS_##name,
    KILN_PASS_TABLE(KILN_PASS_ENUM)
#undef KILN_PASS_ENUM
} KilnPassNumber;

#endif

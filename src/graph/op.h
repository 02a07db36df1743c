/* What an operation is: a const descriptor. Kernels are the backend's. */
#ifndef KILN_GRAPH_OP_H
#define KILN_GRAPH_OP_H

#include "graph/graph.h"
#include "graph/map.h"
#include "graph/ops/activation.h"
#include "graph/ops/cast.h"
#include "graph/ops/attention.h"
#include "graph/ops/conv.h"
#include "graph/ops/ctc.h"
#include "graph/ops/dropout.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/embedding.h"
#include "graph/ops/index.h"
#include "graph/ops/loss.h"
#include "graph/ops/norm.h"
#include "graph/ops/optimizers.h"
#include "graph/ops/padding.h"
#include "graph/ops/pool.h"
#include "graph/ops/product.h"
#include "graph/ops/recurrent.h"
#include "graph/ops/reduce.h"
#include "graph/ops/rotary.h"
#include "graph/ops/resample.h"
#include "graph/ops/reshape.h"
#include "graph/ops/updates.h"

/* What mixed precision does with an operation's floats. */
typedef enum KilnAutocast {
    KILN_AUTOCAST_F32,   /* computed in f32: losses, statistics, sums over many */
    KILN_AUTOCAST_BF16,  /* worth bf16: products, convolutions */
    KILN_AUTOCAST_FOLLOW /* bf16 when its largest inputs, of those that may be, all are */
} KilnAutocast;

struct KilnOp {
    const char *name;
    int n_inputs;  /* as recorded; optional ones are NULL pointers */
    int n_outputs; /* 0 only with `updates`; infer may lower the node's own number */
    size_t attrs_size;
    unsigned updates; /* bit i: input i is a variable that the node writes */
    /* Check the inputs and set dtype and shape of every output. On a misfit set
     * err (what the operation needs and what came; the layer is added). */
    KilnStatus (*infer)(KilnNode *node, KilnError *err);
    /* Record the gradients of the inputs from those of the outputs (dy[i] NULL:
     * output i got none); leave dx[i] NULL for an input without one. NULL: the
     * operation has no gradient. That is an error of backward for an input that wants
     * one, but for those of `constant`. */
    void (*gradient)(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx);
    unsigned constant; /* bit i: the slope of input i is 0 everywhere: comparisons, choices */
    /* Elementwise operations: the step that computes it in a map (register i is
     * input i), so that fusion can join it to others. False, or NULL: none. */
    bool (*map)(const KilnNode *node, KilnMapStep *ret);
    KilnAutocast autocast;
    unsigned bf16_inputs, bf16_outputs; /* bit i: may be bf16 in mixed precision */
    /* Floating-point operations of products and convolutions, a multiplication and
     * an addition counted as two (as PyTorch's flop counter); NULL: none worth counting. */
    double (*flops)(const KilnNode *node);
};

/* Every operation: X(name) for kiln_op_<name>. Attributes and signatures are in
 * the subjects' headers. Attributes have no padding that is not zeroed, for they
 * are hashed as bytes. */
#define KILN_OP_TABLE(X)                                                                           \
    KILN_OPS_ELEMENTWISE(X)                                                                        \
    KILN_OPS_ACTIVATION(X)                                                                         \
    KILN_OPS_CAST(X)                                                                               \
    KILN_OPS_SHAPE(X)                                                                              \
    KILN_OPS_PADDING(X)                                                                            \
    KILN_OPS_INDEX(X)                                                                              \
    KILN_OPS_EMBEDDING(X)                                                                          \
    KILN_OPS_RESAMPLE(X)                                                                           \
    KILN_OPS_DROPOUT(X)                                                                            \
    KILN_OPS_REDUCE(X)                                                                             \
    KILN_OPS_PRODUCT(X)                                                                            \
    KILN_OPS_CONV(X)                                                                               \
    KILN_OPS_POOL(X)                                                                               \
    KILN_OPS_NORM(X)                                                                               \
    KILN_OPS_ATTENTION(X)                                                                          \
    KILN_OPS_ROTARY(X)                                                                             \
    KILN_OPS_RECURRENT(X)                                                                          \
    KILN_OPS_LOSS(X)                                                                               \
    KILN_OPS_CTC(X)                                                                                \
    KILN_OPS_UPDATES(X)                                                                            \
    KILN_OPS_OPTIMIZERS(X)

#define KILN_OP_DECLARE(name) extern const KilnOp kiln_op_##name;
KILN_OP_TABLE(KILN_OP_DECLARE)
#undef KILN_OP_DECLARE

/* The same as an array: kernels and tests loop over it. */
extern const KilnOp *const kiln_ops[];
extern const size_t kiln_ops_count;

#endif

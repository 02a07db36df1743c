/* An operation is a const descriptor: its inputs, shapes, gradient and attributes. Its kernels are
 * in the backends (graph/backend.h). To add one: an X(name) line in its header in graph/ops, its
 * KilnOp in the .c file beside it, a kernel in backend/cpu/kernels and one in backend/ref. */
#ifndef KILN_GRAPH_OP_H
#define KILN_GRAPH_OP_H

#include "graph/graph.h"
#include "graph/map.h"
#include "graph/ops/activation.h"
#include "graph/ops/sequence/kv_cache.h"
#include "graph/ops/images/boxes.h"
#include "graph/ops/cast.h"
#include "graph/ops/sequence/attention.h"
#include "graph/ops/select/compact.h"
#include "graph/ops/images/conv.h"
#include "graph/ops/sequence/crf.h"
#include "graph/ops/sequence/ctc.h"
#include "graph/ops/training/dropout.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/sequence/embedding.h"
#include "graph/ops/select/index.h"
#include "graph/ops/training/loss.h"
#include "graph/ops/norm.h"
#include "graph/ops/training/optimizers.h"
#include "graph/ops/images/padding.h"
#include "graph/ops/images/patches.h"
#include "graph/ops/images/pool.h"
#include "graph/ops/product.h"
#include "graph/ops/training/random.h"
#include "graph/ops/sequence/recurrent.h"
#include "graph/ops/reduce.h"
#include "graph/ops/images/resize.h"
#include "graph/ops/sequence/rotary.h"
#include "graph/ops/images/resample.h"
#include "graph/ops/reshape.h"
#include "graph/ops/images/sample.h"
#include "graph/ops/select/segment.h"
#include "graph/ops/select/sort.h"
#include "graph/ops/training/updates.h"

/* What mixed precision does with an operation's floats, as torch.autocast's lists. */
typedef enum KilnAutocast {
    KILN_AUTOCAST_F32,   /* computed in f32: losses, statistics, long sums */
    KILN_AUTOCAST_BF16,  /* cast to bf16: products, convolutions */
    KILN_AUTOCAST_FOLLOW /* bf16 if the largest of the inputs that may be bf16 all are */
} KilnAutocast;

struct KilnOp {
    const char *name;
    int n_inputs;  /* as recorded; optional ones are NULL pointers */
    int n_outputs; /* 0 only with `updates`; infer may lower the node's own count */
    size_t attrs_size;
    unsigned updates; /* bit i: the node writes input i, a variable */
    /* Checks the inputs and sets dtype and shape of every output. On failure sets err (what the
     * operation needs and what it got; recording adds the layer). */
    KilnStatus (*infer)(KilnNode *node, KilnError *err);
    /* Records the gradients of the inputs from those of the outputs (dy[i] is NULL if output i has
     * none); leaves dx[i] NULL for an input without one. NULL: the operation has no gradient, which
     * is an error of backward for any input that needs one and is not `constant`. */
    void (*gradient)(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx);
    unsigned constant; /* bit i: the derivative by input i is 0 everywhere (comparisons, masks) */
    /* Elementwise operations: the map step that computes it (register i is input i), for fusion.
     * False, or NULL: none. */
    bool (*map)(const KilnNode *node, KilnMapStep *ret);
    KilnAutocast autocast;
    unsigned bf16_inputs, bf16_outputs; /* bit i: may be bf16 in mixed precision */
    /* Floating-point operations of products and convolutions; a multiplication and an addition
     * count as two, as in PyTorch's flop counter. NULL: not counted. */
    double (*flops)(const KilnNode *node);
    const KilnCustomOp *custom; /* what a component defined; NULL: a built-in operation */
};

/* Every operation: X(name) for kiln_op_<name>. Attributes and signatures are in the headers of
 * graph/ops. Padding in attributes is zero, because they are hashed as bytes. */
#define KILN_OP_TABLE(X)                                                                           \
    KILN_OPS_ELEMENTWISE(X)                                                                        \
    KILN_OPS_ACTIVATION(X)                                                                         \
    KILN_OPS_CAST(X)                                                                               \
    KILN_OPS_SHAPE(X)                                                                              \
    KILN_OPS_PADDING(X)                                                                            \
    KILN_OPS_INDEX(X)                                                                              \
    KILN_OPS_SORT(X)                                                                               \
    KILN_OPS_SEGMENT(X)                                                                            \
    KILN_OPS_RANDOM(X)                                                                             \
    KILN_OPS_EMBEDDING(X)                                                                          \
    KILN_OPS_RESAMPLE(X)                                                                           \
    KILN_OPS_RESIZE(X)                                                                             \
    KILN_OPS_PATCHES(X)                                                                            \
    KILN_OPS_SAMPLE(X)                                                                             \
    KILN_OPS_BOXES(X)                                                                              \
    KILN_OPS_COMPACT(X)                                                                            \
    KILN_OPS_DROPOUT(X)                                                                            \
    KILN_OPS_REDUCE(X)                                                                             \
    KILN_OPS_PRODUCT(X)                                                                            \
    KILN_OPS_CONV(X)                                                                               \
    KILN_OPS_POOL(X)                                                                               \
    KILN_OPS_NORM(X)                                                                               \
    KILN_OPS_ATTENTION(X)                                                                          \
    KILN_OPS_ROTARY(X)                                                                             \
    KILN_OPS_KV_CACHE(X)                                                                           \
    KILN_OPS_RECURRENT(X)                                                                          \
    KILN_OPS_LOSS(X)                                                                               \
    KILN_OPS_CTC(X)                                                                                \
    KILN_OPS_CRF(X)                                                                                \
    KILN_OPS_UPDATES(X)                                                                            \
    KILN_OPS_OPTIMIZERS(X)

#define KILN_OP_DECLARE(name) extern const KilnOp kiln_op_##name;
KILN_OP_TABLE(KILN_OP_DECLARE)
#undef KILN_OP_DECLARE

/* The same as an array, for kernels and tests that loop over it. */
extern const KilnOp *const kiln_ops[];
extern const size_t kiln_ops_count;

#endif

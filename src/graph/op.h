/* What an operation is: a const descriptor. Kernels are the backend's. */
#ifndef KILN_GRAPH_OP_H
#define KILN_GRAPH_OP_H

#include "graph/graph.h"

struct KilnOp {
    const char *name;
    int n_inputs;  /* as recorded; optional ones are NULL pointers */
    int n_outputs; /* 0 only with `updates` */
    size_t attrs_size;
    unsigned updates; /* bit i: input i is a variable that the node writes */
    /* Check the inputs and set dtype and shape of every output. On a misfit set
     * err (what the operation needs and what came; the layer is added). */
    KilnStatus (*infer)(KilnNode *node, KilnError *err);
    /* Record the gradients of the inputs from those of the outputs (dy[i] NULL:
     * output i got none); leave dx[i] NULL for an input without one. NULL: the
     * operation has no gradient. */
    void (*gradient)(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx);
};

/* Every operation, by subject: X(name) for kiln_op_<name>. */
#define KILN_OP_TABLE(X)                                                                           \
    X(add)                                                                                         \
    X(mul)                                                                                         \
    X(scale)                                                                                       \
    X(fill)                                                                                        \
    X(relu)                                                                                        \
    X(relu_grad)                                                                                   \
    X(reshape)                                                                                     \
    X(permute)                                                                                     \
    X(dropout)                                                                                     \
    X(dropout_grad)                                                                                \
    X(sum)                                                                                         \
    X(mean)                                                                                        \
    X(broadcast)                                                                                   \
    X(sum_rows)                                                                                    \
    X(broadcast_rows)                                                                              \
    X(argmax)                                                                                      \
    X(equal)                                                                                       \
    X(matmul)                                                                                      \
    X(linear)                                                                                      \
    X(conv2d)                                                                                      \
    X(conv2d_grad_input)                                                                           \
    X(conv2d_grad_weight)                                                                          \
    X(max_pool2d)                                                                                  \
    X(max_pool2d_grad)                                                                             \
    X(global_avg_pool2d)                                                                           \
    X(global_avg_pool2d_grad)                                                                      \
    X(batch_norm)                                                                                  \
    X(batch_norm_grad)                                                                             \
    X(batch_norm_eval)                                                                             \
    X(softmax)                                                                                     \
    X(softmax_grad)                                                                                \
    X(cross_entropy)                                                                               \
    X(cross_entropy_grad)                                                                          \
    X(ema_update)                                                                                  \
    X(increment)                                                                                   \
    X(sgd_update)                                                                                  \
    X(adam_update)

#define KILN_OP_DECLARE(name) extern const KilnOp kiln_op_##name;
KILN_OP_TABLE(KILN_OP_DECLARE)
#undef KILN_OP_DECLARE

/* The same as an array: kernels and tests loop over it. */
extern const KilnOp *const kiln_ops[];
extern const size_t kiln_ops_count;

/* Attributes and signatures (inputs -> outputs). Structs have no padding that
 * is not zeroed, for they are hashed as bytes.
 *
 * add, mul            a, b -> y
 * scale               x -> y                              KilnScaleAttrs
 * fill                -> y (shape in attrs)               KilnFillAttrs
 * relu                x -> y
 * relu_grad           dy, y -> dx          (dx = dy where y > 0)
 * reshape             x -> y (same bytes)                 KilnShapeAttrs
 * permute             x -> y                              KilnPermuteAttrs
 * dropout             x, key -> y, mask u8                KilnDropoutAttrs
 * dropout_grad        dy, mask -> dx                      KilnDropoutAttrs
 * sum, mean           x -> scalar
 * broadcast           scalar -> y of attrs' shape         KilnShapeAttrs
 * sum_rows            x [..., C] -> [C]
 * broadcast_rows      b [C] -> y of attrs' shape          KilnShapeAttrs
 * argmax              x [..., C] -> i32 [...]
 * equal               a i32, b i32 -> float
 * matmul              a, b -> y                           KilnMatmulAttrs
 * linear              x, weight, bias? -> y
 * conv2d              x, weight, bias? -> y               KilnConvAttrs
 * conv2d_grad_input   dy, weight -> dx                    KilnConvAttrs (with the input's shape)
 * conv2d_grad_weight  dy, x -> dweight                    KilnConvAttrs (with the weight's shape)
 * max_pool2d          x -> y, index u8|i32: place of the maximum, in the backend's own code
 *                                                         KilnPoolAttrs
 * max_pool2d_grad     dy, index -> dx                     KilnPoolAttrs (with the input's shape)
 * global_avg_pool2d   x -> y;   _grad: dy -> dx           KilnShapeAttrs (the input's shape)
 * batch_norm          x, weight, bias -> y, mean, var     KilnBatchNormAttrs (biased var)
 * batch_norm_grad     dy, x, weight, mean, var -> dx, dweight, dbias   KilnBatchNormAttrs
 * batch_norm_eval     x, weight, bias, mean, var -> y     KilnBatchNormAttrs
 * softmax             x -> y;   softmax_grad: dy, y -> dx
 * cross_entropy       logits, labels -> loss, probabilities            KilnCrossEntropyAttrs
 * cross_entropy_grad  dloss scalar, probabilities, labels -> dlogits   KilnCrossEntropyAttrs
 * ema_update          variable*, value ->                 KilnScaleAttrs (momentum); plus
 *                     `correction` (unbiased variance) as factor on value
 * increment           variable* i64 ->
 * sgd_update          param*, grad, momentum_buffer*?, hyper ->        KilnSgd
 * adam_update         param*, grad, exp_avg*, exp_avg_sq*, hyper ->    KilnAdam
 * (* updated in place; ? optional) */
typedef struct KilnScaleAttrs {
    double factor, correction;
} KilnScaleAttrs;
typedef struct KilnFillAttrs {
    double value;
    KilnShape shape;
    KilnDType dtype;
    int32_t zero;
} KilnFillAttrs;
typedef struct KilnShapeAttrs {
    KilnShape shape;
} KilnShapeAttrs;
typedef struct KilnPermuteAttrs {
    int32_t order[KILN_MAX_RANK];
} KilnPermuteAttrs;
typedef struct KilnDropoutAttrs {
    double p;
    int64_t stream;
} KilnDropoutAttrs;
typedef struct KilnMatmulAttrs {
    int32_t transpose_a, transpose_b;
} KilnMatmulAttrs;
typedef struct KilnConvAttrs {
    int64_t stride, padding;
    KilnShape shape;
} KilnConvAttrs;
typedef struct KilnPoolAttrs {
    int64_t kernel, stride, padding;
    KilnShape shape;
} KilnPoolAttrs;
typedef struct KilnBatchNormAttrs {
    double eps;
} KilnBatchNormAttrs;
typedef struct KilnCrossEntropyAttrs {
    double label_smoothing;
} KilnCrossEntropyAttrs;

#endif

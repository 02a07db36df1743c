/* What an operation is: a const descriptor. Kernels are the backend's. */
#ifndef KILN_GRAPH_OP_H
#define KILN_GRAPH_OP_H

#include "graph/graph.h"

struct KilnOp {
    const char *name;
    int n_inputs;        /* as recorded; optional ones are NULL pointers */
    int n_outputs;       /* 0 only with `updates` */
    size_t attrs_size;
    unsigned updates;    /* bit i: input i is a variable that the node writes */
    /* Check the inputs and set dtype and shape of every output. On a misfit set
     * err (what the operation needs and what came; the layer is added). */
    KilnStatus (*infer)(KilnNode *node, KilnError *err);
    /* Record the gradients of the inputs from those of the outputs (dy[i] NULL:
     * output i got none); leave dx[i] NULL for an input without one. NULL: the
     * operation has no gradient. */
    void (*gradient)(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx);
};

/* Every operation, in one table: kernels and tests loop over it. */
extern const KilnOp *const kiln_ops[];
extern const size_t kiln_ops_count;

extern const KilnOp kiln_op_add, kiln_op_mul, kiln_op_scale, kiln_op_fill, kiln_op_relu,
    kiln_op_relu_grad, kiln_op_reshape, kiln_op_permute, kiln_op_dropout, kiln_op_dropout_grad,
    kiln_op_sum, kiln_op_mean, kiln_op_broadcast, kiln_op_sum_rows, kiln_op_broadcast_rows,
    kiln_op_argmax, kiln_op_equal, kiln_op_matmul, kiln_op_linear, kiln_op_conv2d,
    kiln_op_conv2d_grad_input, kiln_op_conv2d_grad_weight, kiln_op_max_pool2d,
    kiln_op_max_pool2d_grad, kiln_op_global_avg_pool2d, kiln_op_global_avg_pool2d_grad,
    kiln_op_batch_norm, kiln_op_batch_norm_grad, kiln_op_batch_norm_eval, kiln_op_softmax,
    kiln_op_softmax_grad, kiln_op_cross_entropy, kiln_op_cross_entropy_grad, kiln_op_ema_update,
    kiln_op_increment, kiln_op_sgd_update, kiln_op_adam_update;

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
typedef struct KilnScaleAttrs { double factor, correction; } KilnScaleAttrs;
typedef struct KilnFillAttrs { double value; KilnShape shape; KilnDType dtype; int32_t zero; } KilnFillAttrs;
typedef struct KilnShapeAttrs { KilnShape shape; } KilnShapeAttrs;
typedef struct KilnPermuteAttrs { int32_t order[KILN_MAX_RANK]; } KilnPermuteAttrs;
typedef struct KilnDropoutAttrs { double p; int64_t stream; } KilnDropoutAttrs;
typedef struct KilnMatmulAttrs { int32_t transpose_a, transpose_b; } KilnMatmulAttrs;
typedef struct KilnConvAttrs { int64_t stride, padding; KilnShape shape; } KilnConvAttrs;
typedef struct KilnPoolAttrs { int64_t kernel, stride, padding; KilnShape shape; } KilnPoolAttrs;
typedef struct KilnBatchNormAttrs { double eps; } KilnBatchNormAttrs;
typedef struct KilnCrossEntropyAttrs { double label_smoothing; } KilnCrossEntropyAttrs;

#endif

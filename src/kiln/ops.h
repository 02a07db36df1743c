/* Operations on tensors. Each records one node and returns its output; nothing
 * is computed until kiln_graph_run. Shapes are checked at once: an operation
 * whose inputs do not fit returns a poisoned tensor, remembers the first error
 * with layer and shapes, and whatever uses it is poisoned too, so that a step
 * reads like its formula; kiln_graph_check or kiln_graph_run reports it.
 *
 * Images are [N, H, W, C]. Convolution weights are PyTorch's [O, I, kh, kw],
 * linear weights [out, in]. Float means f32 (f64 on the reference backend). */
#ifndef KILN_OPS_H
#define KILN_OPS_H

#include "kiln/tensor.h"

/* ---- Elementwise, shape --------------------------------------------------- */

/* a + b, same shape. */
KILN_API KilnTensor *kiln_add(KilnTensor *a, KilnTensor *b);
/* a * b, same shape. */
KILN_API KilnTensor *kiln_mul(KilnTensor *a, KilnTensor *b);
/* x * factor. */
KILN_API KilnTensor *kiln_scale(KilnTensor *x, double factor);
/* max(x, 0). */
KILN_API KilnTensor *kiln_relu(KilnTensor *x);
/* The same elements in another shape; one size may be -1. No copy. */
KILN_API KilnTensor *kiln_reshape(KilnTensor *x, KilnShape shape);
/* Axis i of the result is axis order[i] of x; order has rank(x) entries. */
KILN_API KilnTensor *kiln_permute(KilnTensor *x, const int *order);
/* [N, H, W, C] -> [N, C*H*W] in PyTorch's order; other ranks [N, ...] -> [N, rest]. */
KILN_API KilnTensor *kiln_flatten(KilnTensor *x);
/* Zero each element with probability p and scale the rest by 1/(1-p).
 * `key` is i32 [2], changed by the caller every step (kiln_step_dropout_key);
 * `stream` tells the layers of one step apart. */
KILN_API KilnTensor *kiln_dropout(KilnTensor *x, double p, KilnTensor *key, int64_t stream);

/* ---- Reductions ----------------------------------------------------------- */

/* Sum, and mean, of all elements: a scalar. */
KILN_API KilnTensor *kiln_sum(KilnTensor *x);
KILN_API KilnTensor *kiln_mean(KilnTensor *x);
/* Sum over all axes but the last: [..., C] -> [C]. */
KILN_API KilnTensor *kiln_sum_rows(KilnTensor *x);
/* Index of the largest element on the last axis, first of equals: [..., C] -> i32 [...]. */
KILN_API KilnTensor *kiln_argmax(KilnTensor *x);
/* 1.0 where the i32 tensors agree, else 0.0; float. No gradient. */
KILN_API KilnTensor *kiln_equal(KilnTensor *a, KilnTensor *b);

/* ---- Matrix products and convolutions ------------------------------------- */

/* op(a) · op(b) of matrices; op transposes when the flag is set. [m,k]·[k,n]. */
KILN_API KilnTensor *kiln_matmul(KilnTensor *a, KilnTensor *b, bool transpose_a, bool transpose_b);
/* x · weightᵀ + bias: [N, in], [out, in], [out] or NULL -> [N, out]. */
KILN_API KilnTensor *kiln_linear(KilnTensor *x, KilnTensor *weight, KilnTensor *bias);

/* One number for height and width; where the two differ, the pair {height, width}
 * instead: one that is not all 0 is taken. 0 reads as the default. */
typedef struct KilnConv {
    int64_t stride;   /* default 1 */
    int64_t padding;  /* zeros on every side */
    int64_t dilation; /* from one element of the kernel to the next; default 1 */
    int64_t groups;   /* of channels that do not see each other; default 1 */
    int64_t stride_hw[2], padding_hw[2], dilation_hw[2];
} KilnConv;

/* Cross-correlation as PyTorch's conv2d: [N,H,W,I], [O,I/groups,kh,kw], [O] or NULL
 * -> [N, (H + 2p - d(kh-1) - 1)/s + 1, (W + 2p - d(kw-1) - 1)/s + 1, O]. With as many
 * groups as channels it is depthwise. */
KILN_API KilnTensor *kiln_conv2d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                 KilnConv conv);
/* The same along one axis, as PyTorch's conv1d but for the order: [N,L,I],
 * [O,I/groups,k], [O] or NULL -> [N, (L + 2p - d(k-1) - 1)/s + 1, O]. Pairs are ignored. */
KILN_API KilnTensor *kiln_conv1d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                 KilnConv conv);

typedef struct KilnConvTranspose {
    KilnConv conv;          /* the convolution that this is the transpose of */
    int64_t output_padding; /* rows and columns more at the end; less than the stride */
    int64_t output_padding_hw[2];
} KilnConvTranspose;

/* PyTorch's conv_transpose2d, the gradient of conv2d with respect to its input:
 * [N,H,W,I], [I,O/groups,kh,kw], [O] or NULL -> [N, (H-1)s - 2p + d(kh-1) + 1 + output
 * padding, and so for W, O]. */
KILN_API KilnTensor *kiln_conv_transpose2d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                           KilnConvTranspose conv);

/* Pairs {height, width} as in KilnConv. */
typedef struct KilnPool {
    int64_t kernel;
    int64_t stride;  /* 0: the kernel's size */
    int64_t padding; /* at most half of the kernel */
    int64_t kernel_hw[2], stride_hw[2], padding_hw[2];
    bool exclude_padding; /* averages over the elements of the image alone; PyTorch's
                             count_include_pad=False */
} KilnPool;

/* Largest element of each window (padding counts as -inf), as PyTorch's. */
KILN_API KilnTensor *kiln_max_pool2d(KilnTensor *x, KilnPool pool);
/* Mean of each window (padding counts as zeros), as PyTorch's. */
KILN_API KilnTensor *kiln_avg_pool2d(KilnTensor *x, KilnPool pool);
/* Mean of windows that share the image among height×width places, as PyTorch's:
 * [N,H,W,C] -> [N,height,width,C]. With 1×1 it is the mean over the whole image. */
KILN_API KilnTensor *kiln_adaptive_avg_pool2d(KilnTensor *x, int64_t height, int64_t width);
/* The same along one axis: [N,L,C] -> [N,...,C]. Pairs are ignored. */
KILN_API KilnTensor *kiln_max_pool1d(KilnTensor *x, KilnPool pool);
KILN_API KilnTensor *kiln_avg_pool1d(KilnTensor *x, KilnPool pool);
KILN_API KilnTensor *kiln_adaptive_avg_pool1d(KilnTensor *x, int64_t length);

/* ---- Normalization -------------------------------------------------------- */

typedef struct KilnBatchNorm {
    double eps;      /* PyTorch: 1e-5 */
    double momentum; /* PyTorch: 0.1 */
    bool training;   /* batch statistics and update of the running ones, or running ones only */
} KilnBatchNorm;

/* Batch normalization over all axes but the last (Ioffe and Szegedy 2015).
 * x [..., C]; weight, bias, running_mean, running_var [C]. In training the
 * running statistics are updated as PyTorch does (unbiased variance). */
KILN_API KilnTensor *kiln_batch_norm(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                     KilnTensor *running_mean, KilnTensor *running_var,
                                     KilnBatchNorm norm);

/* Layer normalization (Ba et al. 2016) over the last `axes` axes, as PyTorch's; weight and
 * bias have the shape of those axes, or are NULL. eps: PyTorch's default is 1e-5. */
KILN_API KilnTensor *kiln_layer_norm(KilnTensor *x, KilnTensor *weight, KilnTensor *bias, int axes,
                                     double eps);
/* x / sqrt(mean(x²) + eps) * weight over the last `axes` axes (Zhang and Sennrich 2019), as
 * PyTorch's; weight may be NULL. eps: PyTorch's default for f32 is 2^-23. */
KILN_API KilnTensor *kiln_rms_norm(KilnTensor *x, KilnTensor *weight, int axes, double eps);
/* Group normalization (Wu and He 2018), as PyTorch's but for the order: x [N, ..., C] in
 * `groups` of consecutive channels; weight and bias [C], or NULL. eps: as above. */
KILN_API KilnTensor *kiln_group_norm(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                     int64_t groups, double eps);

/* ---- Probabilities and losses --------------------------------------------- */

/* Softmax over the last axis. */
KILN_API KilnTensor *kiln_softmax(KilnTensor *x);
/* Mean over the batch of -log softmax(logits)[label], with label smoothing as
 * PyTorch's (0: none). logits [N, C], labels i32 [N] -> scalar. */
KILN_API KilnTensor *kiln_cross_entropy(KilnTensor *logits, KilnTensor *labels,
                                        double label_smoothing);

/* ---- Updates in place ------------------------------------------------------ */

/* variable = (1-momentum)*variable + momentum*value, same shape. */
KILN_API void kiln_ema_update(KilnTensor *variable, KilnTensor *value, double momentum);
/* variable += 1 on an i64 scalar. */
KILN_API void kiln_increment(KilnTensor *variable);

/* Numbers that change from step to step, in one f32 leaf so that the plan stays. */
typedef struct KilnSgd {
    double momentum, weight_decay;
    bool nesterov;
} KilnSgd;

/* PyTorch's SGD on flat [n] tensors. hyper f32 [2]: learning rate, and 1 on
 * the first step (the momentum buffer starts as the gradient), else 0.
 * momentum_buffer may be NULL when momentum is 0. */
KILN_API void kiln_sgd_update(KilnTensor *param, KilnTensor *grad, KilnTensor *momentum_buffer,
                              KilnTensor *hyper, KilnSgd sgd);

typedef struct KilnAdam {
    double beta1, beta2, eps, weight_decay;
    bool decoupled; /* AdamW (Loshchilov and Hutter 2019): decay apart from the gradient */
} KilnAdam;

/* PyTorch's Adam/AdamW on flat [n] tensors (Kingma and Ba 2015). hyper f32
 * [3]: learning rate, 1 - beta1^t, 1 - beta2^t for step t = 1, 2, ... */
KILN_API void kiln_adam_update(KilnTensor *param, KilnTensor *grad, KilnTensor *exp_avg,
                               KilnTensor *exp_avg_sq, KilnTensor *hyper, KilnAdam adam);

#endif

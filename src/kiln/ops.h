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

/* ---- Elementwise ------------------------------------------------------------
 * Operands broadcast as in NumPy and PyTorch: axes are matched from the last, and
 * sizes must be equal or one of them 1. Names, values and gradients are those of
 * PyTorch's function of the same name; what differs is said. */

KILN_API KilnTensor *kiln_add(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_sub(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_mul(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_div(KilnTensor *a, KilnTensor *b);
/* x * factor, x + number, -x. */
KILN_API KilnTensor *kiln_scale(KilnTensor *x, double factor);
KILN_API KilnTensor *kiln_shift(KilnTensor *x, double number);
KILN_API KilnTensor *kiln_neg(KilnTensor *x);
/* The smaller, larger of two; NaN if one is. Equals share the gradient. */
KILN_API KilnTensor *kiln_minimum(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_maximum(KilnTensor *a, KilnTensor *b);
/* min(max(x, least), most); infinite bounds are none. On a bound the slope is 0
 * (PyTorch's since 2.15). */
KILN_API KilnTensor *kiln_clamp(KilnTensor *x, double least, double most);

/* 1.0 where the comparison holds, else 0.0. No gradient. */
KILN_API KilnTensor *kiln_eq(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_ne(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_lt(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_le(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_gt(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_ge(KilnTensor *a, KilnTensor *b);
/* a where the condition (float or u8) is not zero, else b. */
KILN_API KilnTensor *kiln_where(KilnTensor *condition, KilnTensor *a, KilnTensor *b);
/* value where the mask (float or u8) is not zero, else x. */
KILN_API KilnTensor *kiln_masked_fill(KilnTensor *x, KilnTensor *mask, double value);

KILN_API KilnTensor *kiln_exp(KilnTensor *x);
KILN_API KilnTensor *kiln_log(KilnTensor *x);
/* log(1 + x), exact for small x. */
KILN_API KilnTensor *kiln_log1p(KilnTensor *x);
KILN_API KilnTensor *kiln_sqrt(KilnTensor *x);
KILN_API KilnTensor *kiln_rsqrt(KilnTensor *x);
KILN_API KilnTensor *kiln_reciprocal(KilnTensor *x);
KILN_API KilnTensor *kiln_square(KilnTensor *x);
/* x to a number; x to a tensor. */
KILN_API KilnTensor *kiln_pow(KilnTensor *x, double exponent);
KILN_API KilnTensor *kiln_power(KilnTensor *x, KilnTensor *exponent);
/* Slope 0 at 0. */
KILN_API KilnTensor *kiln_abs(KilnTensor *x);
/* -1, 0 or 1; of NaN 0. No gradient. */
KILN_API KilnTensor *kiln_sign(KilnTensor *x);
KILN_API KilnTensor *kiln_erf(KilnTensor *x);
KILN_API KilnTensor *kiln_sin(KilnTensor *x);
KILN_API KilnTensor *kiln_cos(KilnTensor *x);

/* i32 or u8 as floats. No gradient. */
KILN_API KilnTensor *kiln_to_float(KilnTensor *x);
/* x repeated to a shape to which it broadcasts (PyTorch's expand). */
KILN_API KilnTensor *kiln_broadcast_to(KilnTensor *x, KilnShape shape);
/* 1.0 where the i32 tensors agree, else 0.0; same shape. No gradient. */
KILN_API KilnTensor *kiln_equal(KilnTensor *a, KilnTensor *b);

/* ---- Activations ------------------------------------------------------------ */

/* max(x, 0); slope 0 at 0. */
KILN_API KilnTensor *kiln_relu(KilnTensor *x);
/* x where positive, else slope * x (PyTorch: 0.01). */
KILN_API KilnTensor *kiln_leaky_relu(KilnTensor *x, double slope);
/* x where positive, else alpha * (exp(x) - 1) (PyTorch: 1); Clevert et al. 2016. */
KILN_API KilnTensor *kiln_elu(KilnTensor *x, double alpha);
typedef enum KilnGelu {
    KILN_GELU_ERF, /* x * Phi(x) */
    KILN_GELU_TANH /* its approximation through tanh, as GPT-2's */
} KilnGelu;
/* Hendrycks and Gimpel 2016. */
KILN_API KilnTensor *kiln_gelu(KilnTensor *x, KilnGelu form);
/* x * sigmoid(x). */
KILN_API KilnTensor *kiln_silu(KilnTensor *x);
/* log(1 + exp(beta x)) / beta, and x where beta x > threshold (PyTorch: 1 and 20). */
KILN_API KilnTensor *kiln_softplus(KilnTensor *x, double beta, double threshold);
KILN_API KilnTensor *kiln_sigmoid(KilnTensor *x);
KILN_API KilnTensor *kiln_tanh(KilnTensor *x);

/* ---- Shape, dropout --------------------------------------------------------- */

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
/* Over n axes, each named once, negative ones from the end; n = 0: over all. With
 * `keep` they stay as axes of size 1, else they are gone. */
KILN_API KilnTensor *kiln_sum_axes(KilnTensor *x, const int *axes, int n, bool keep);
KILN_API KilnTensor *kiln_mean_axes(KilnTensor *x, const int *axes, int n, bool keep);
/* PyTorch's amax and amin: NaN if one is; equals share the gradient evenly. */
KILN_API KilnTensor *kiln_max_axes(KilnTensor *x, const int *axes, int n, bool keep);
KILN_API KilnTensor *kiln_min_axes(KilnTensor *x, const int *axes, int n, bool keep);
/* log of the sum of exp, without overflow. */
KILN_API KilnTensor *kiln_logsumexp(KilnTensor *x, const int *axes, int n, bool keep);
/* Variance, and its root: squares over the count less `correction` (PyTorch: 1). */
KILN_API KilnTensor *kiln_var(KilnTensor *x, const int *axes, int n, double correction, bool keep);
KILN_API KilnTensor *kiln_std(KilnTensor *x, const int *axes, int n, double correction, bool keep);
/* Sum over all axes but the last: [..., C] -> [C]. */
KILN_API KilnTensor *kiln_sum_rows(KilnTensor *x);
/* Index of the largest element along one axis, first of equals, NaN above all: i32. */
KILN_API KilnTensor *kiln_argmax_axis(KilnTensor *x, int axis, bool keep);
/* The same along the last axis: [..., C] -> i32 [...]. */
KILN_API KilnTensor *kiln_argmax(KilnTensor *x);

/* ---- Matrix products and convolutions ------------------------------------- */

/* op(a) · op(b) of matrices; op transposes when the flag is set. [m,k]·[k,n]. */
KILN_API KilnTensor *kiln_matmul(KilnTensor *a, KilnTensor *b, bool transpose_a, bool transpose_b);
/* x · weightᵀ + bias: [N, in], [out, in], [out] or NULL -> [N, out]. */
KILN_API KilnTensor *kiln_linear(KilnTensor *x, KilnTensor *weight, KilnTensor *bias);

/* Square in height and width; groups are left to the engine issue. */
typedef struct KilnConv {
    int64_t stride;  /* 0 reads as 1 */
    int64_t padding; /* zeros on every side */
} KilnConv;

/* Cross-correlation as PyTorch's conv2d: [N,H,W,I], [O,I,kh,kw], [O] or NULL
 * -> [N, (H+2p-kh)/s+1, (W+2p-kw)/s+1, O]. */
KILN_API KilnTensor *kiln_conv2d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                 KilnConv conv);

typedef struct KilnPool {
    int64_t kernel;
    int64_t stride;  /* 0: the kernel's size */
    int64_t padding; /* at most half of the kernel */
} KilnPool;

/* Largest element of each window (padding counts as -inf), as PyTorch's. */
KILN_API KilnTensor *kiln_max_pool2d(KilnTensor *x, KilnPool pool);
/* Mean over height and width: [N,H,W,C] -> [N,C] (adaptive average pooling to 1×1, flattened). */
KILN_API KilnTensor *kiln_global_avg_pool2d(KilnTensor *x);

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

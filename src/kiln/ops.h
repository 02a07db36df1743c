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
/* variable += weight*(value - variable), torch.lerp's form: same shape; weight is
 * a scalar that may change from step to step. Weight 1 copies the value exactly. */
KILN_API void kiln_lerp_update(KilnTensor *variable, KilnTensor *value, KilnTensor *weight);
/* variable = min(max(variable, -limit), limit); NaN stays (torch.clamp). */
KILN_API void kiln_clamp_update(KilnTensor *variable, double limit);
/* variable += 1 on an i64 scalar. */
KILN_API void kiln_increment(KilnTensor *variable);

/* Square root of the sum of squares of all elements: a scalar, summed in double
 * in an order that does not depend on the threads. No gradient. */
KILN_API KilnTensor *kiln_l2_norm(KilnTensor *x);
/* min(1, max_norm / (norm + 1e-6)): what torch.nn.utils.clip_grad_norm_ multiplies
 * the gradients by. norm is a scalar; no gradient. */
KILN_API KilnTensor *kiln_clip_factor(KilnTensor *norm, double max_norm);

/* ---- Optimizers ------------------------------------------------------------ */

#define KILN_MAX_SLOTS 4

/* What one update of all parameters works on; f32 unless it says otherwise. The
 * parameters lie in runs one after the other, each with its own share of the
 * learning rate and its own weight decay. `hyper` holds the numbers that change
 * from step to step, in a leaf so that the plan stays. */
typedef struct KilnFlat {
    KilnTensor *param, *grad;          /* [n] */
    KilnTensor *slots[KILN_MAX_SLOTS]; /* [n] each: the optimizer's state, zero at first */
    KilnTensor *hyper;                 /* see each update; [0] is the learning rate */
    KilnTensor *scale;                 /* scalar, multiplies the gradients; NULL: 1 */
    KilnTensor *ends;                  /* i64 [k]: where each run ends, rising, the last is n */
    /* [k, 2]: what multiplies the learning rate, and the weight decay. A run whose
     * first is 0 is left alone. `ends` and `rates` NULL: one run, 1 and 0. */
    KilnTensor *rates;
} KilnFlat;

typedef struct KilnSgd {
    double momentum, dampening;
    bool nesterov;
} KilnSgd;

/* torch.optim.SGD. hyper [2]: learning rate; 1 on the first step (the momentum
 * buffer starts as the gradient), else 0. slots: momentum_buffer, NULL allowed when
 * momentum is 0. */
KILN_API void kiln_sgd_update(const KilnFlat *flat, KilnSgd sgd);

typedef struct KilnAdam {
    double beta1, beta2, eps;
    bool decoupled; /* AdamW (Loshchilov and Hutter 2019): decay apart from the gradient */
    bool amsgrad;   /* divide by the largest average so far (Reddi et al. 2018) */
} KilnAdam;

/* torch.optim.Adam and AdamW (Kingma and Ba 2015). hyper [3]: learning rate,
 * 1 - beta1^t, 1 - beta2^t for step t = 1, 2, ... slots: exp_avg, exp_avg_sq, and
 * with amsgrad max_exp_avg_sq. */
KILN_API void kiln_adam_update(const KilnFlat *flat, KilnAdam adam);

typedef struct KilnRmsprop {
    double alpha, eps, momentum;
    bool centered;
} KilnRmsprop;

/* torch.optim.RMSprop (Tieleman and Hinton 2012; centered: Graves 2013). hyper [1]:
 * learning rate. slots: square_avg, momentum_buffer (NULL allowed when momentum is
 * 0), grad_avg (when centered). Where rounding makes the centered variance
 * negative it counts as 0; PyTorch gives NaN. */
KILN_API void kiln_rmsprop_update(const KilnFlat *flat, KilnRmsprop rmsprop);

typedef struct KilnAdagrad {
    double initial_accumulator_value, eps;
} KilnAdagrad;

/* torch.optim.Adagrad (Duchi et al. 2011). hyper [2]: learning rate, decayed by
 * 1/(1 + (t-1)*lr_decay) already; 1 on the first step, else 0. slots: sum. */
KILN_API void kiln_adagrad_update(const KilnFlat *flat, KilnAdagrad adagrad);

typedef struct KilnLamb {
    double beta1, beta2, eps;
    bool always_adapt; /* also scale the steps of runs without weight decay */
} KilnLamb;

/* LAMB (You et al. 2020): AdamW's direction, for each run scaled by the norm of its
 * parameters over the norm of the direction (1 where either is 0); a run is meant
 * to be one parameter tensor. hyper as kiln_adam_update. slots: exp_avg, exp_avg_sq. */
KILN_API void kiln_lamb_update(const KilnFlat *flat, KilnLamb lamb);

typedef struct KilnLion {
    double beta1, beta2;
} KilnLion;

/* Lion (Chen et al. 2023): the sign of a blend of gradient and average. hyper [1]:
 * learning rate. slots: exp_avg. */
KILN_API void kiln_lion_update(const KilnFlat *flat, KilnLion lion);

typedef struct KilnAdan {
    double beta1, beta2, beta3, eps;
    bool no_prox; /* decay before the step, as AdamW, instead of dividing after it */
} KilnAdan;

/* Adan (Xie et al. 2022), as the authors' program: betas are what is kept. hyper
 * [5]: learning rate, 1 - beta_i^t for each, 1 on the first step, else 0. slots:
 * exp_avg, exp_avg_sq, exp_avg_diff, pre_grad (the last gradient). */
KILN_API void kiln_adan_update(const KilnFlat *flat, KilnAdan adan);

#endif

/* Operations that write variables: stores, running averages, and the updates of optimizers. Part of
 * kiln/ops.h. */
#ifndef KILN_OPS_UPDATES_H
#define KILN_OPS_UPDATES_H

#include "kiln/tensor.h"

/* ---- Updates in place ------------------------------------------------------ */

/* variable = x, each in its own type, same shape. */
KILN_API void kiln_store(KilnTensor *variable, KilnTensor *x);

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
 * in an order that does not depend on the threads. It has no gradient. */
KILN_API KilnTensor *kiln_l2_norm(KilnTensor *x);
/* min(1, max_norm / (norm + 1e-6)): what torch.nn.utils.clip_grad_norm_ multiplies
 * the gradients by. norm is a scalar. It has no gradient. */
KILN_API KilnTensor *kiln_clip_factor(KilnTensor *norm, double max_norm);

/* ---- Optimizers ------------------------------------------------------------ */

#define KILN_MAX_SLOTS 4

/* Inputs of an optimizer's update of all parameters; f32 unless stated. The parameters are divided
 * into consecutive segments, each with its own factor of the learning rate and its own weight
 * decay. `hyper` holds the numbers that change from step to step, in a leaf, so that the plan stays
 * the same. Each optimizer's formula is in nn/optimizers/NAME.c. */
typedef struct KilnFlat {
    KilnTensor *param, *grad;          /* [n] */
    KilnTensor *slots[KILN_MAX_SLOTS]; /* [n] each: the optimizer's state, initially zero */
    KilnTensor *hyper;                 /* see each update; [0] is the learning rate */
    KilnTensor *scale;                 /* scalar factor of the gradients; NULL: 1 */
    /* i64 [k]: end of each segment, increasing, the last is n. Or i32: the rows to update, below.
     */
    KilnTensor *segment_ends;
    /* [k, 2]: factor of the learning rate, and weight decay. A segment with factor 0 is not
     * updated. Both NULL: one segment with 1 and 0. */
    KilnTensor *rates;
    /* A variable [p] for the 2-norms of parts of the gradient, before `scale`: part i ends at
     * part_ends[i] (i64 [p], increasing, the last is n). They need no extra pass. Segments that are
     * not updated do not count; the norm of a part made of those alone is unchanged. NULL: none. */
    KilnTensor *part_ends, *norms;
} KilnFlat;

/* Rows of an embedding. SGD without momentum, Adagrad and Adam also update the rows alone that a
 * step used (torch.optim.SparseAdam), in time that does not depend on the others. Then param, grad
 * and slots are [V, ...], rates is [1, 2] or NULL, norms is NULL, and segment_ends is i32 [1 + 2V]:
 * the number of rows, or -1 for all of them, and their numbers, each once; what follows is not
 * read. The trainer records such updates for optimizers with the option `sparse`. */

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
    bool decoupled; /* AdamW (Loshchilov and Hutter 2019): decoupled weight decay */
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
 * 1/(1 + (t-1)*lr_decay) already; 1 on the first step, else 0. slots: sum. Rows that are updated
 * alone start at initial_accumulator_value when they are first used. */
KILN_API void kiln_adagrad_update(const KilnFlat *flat, KilnAdagrad adagrad);

typedef struct KilnLamb {
    double beta1, beta2, eps;
    bool always_adapt; /* also scale the steps of segments without weight decay */
} KilnLamb;

/* LAMB (You et al. 2020): AdamW's direction, scaled in each segment by the norm of its parameters
 * over the norm of the direction (1 where either is 0). Each segment should be one parameter
 * tensor. hyper as kiln_adam_update. slots: exp_avg, exp_avg_sq. */
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

/* Adan (Xie et al. 2022), as the authors' program: betas are the shares that are kept. hyper
 * [5]: learning rate, 1 - beta_i^t for each, 1 on the first step, else 0. slots:
 * exp_avg, exp_avg_sq, exp_avg_diff, pre_grad (the last gradient). */
KILN_API void kiln_adan_update(const KilnFlat *flat, KilnAdan adan);

#endif

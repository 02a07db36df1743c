/* Vector loops of the optimizers: one pass over parameters, gradients and state. optimizers.c is
 * compiled once per level. */
#ifndef KILN_BACKEND_CPU_ISA_OPTIMIZERS_H
#define KILN_BACKEND_CPU_ISA_OPTIMIZERS_H

#include <stdint.h>

#include "backend/cpu/level.h"

/* Part of the flat buffers within one segment, as f32: the caller converts bf16 before and after
 * (kernels/update_tiles.h). */
typedef struct KilnOptimizerBuffers {
    float *param;
    const float *grad;
    float *slots[4]; /* NULL: none */
    int64_t n;
    float scale; /* of the gradients */
} KilnOptimizerBuffers;

/* Constants of a loop, rounded once. `keep` and `take`: beta and 1 - beta. `decay` times the
 * parameter is added to the gradient; `shrink` multiplies the parameter. */
typedef struct KilnSgdLoop {
    float lr, momentum, take, decay;
    int first, nesterov;
} KilnSgdLoop;

typedef struct KilnAdamLoop {
    float keep1, take1, keep2, take2, eps;
    float step; /* learning rate / (1 - beta1^t) */
    float root; /* 1 / sqrt(1 - beta2^t) */
    float decay, shrink;
} KilnAdamLoop;

typedef struct KilnRmspropLoop {
    float lr, keep, take, eps, momentum, decay;
} KilnRmspropLoop;

typedef struct KilnAdagradLoop {
    float lr, eps, decay;
    float start; /* of the sum */
    int first;
} KilnAdagradLoop;

typedef struct KilnLionLoop {
    float lr, keep1, take1, keep2, take2, shrink;
} KilnLionLoop;

typedef struct KilnAdanLoop {
    float keep1, take1, keep2, take2, keep3, take3, eps;
    float step, step_diff; /* learning rate / (1 - beta1^t), and beta2 times learning rate / (1 -
                              beta2^t) */
    float root;            /* 1 / sqrt(1 - beta3^t) */
    float shrink, divide;  /* before and after the step */
    int first;
} KilnAdanLoop;

typedef struct KilnLambLoop {
    float keep1, take1, keep2, take2, eps;
    float correct;   /* 1 / (1 - beta1^t) */
    float root;      /* 1 / sqrt(1 - beta2^t) */
    float decay, lr; /* lr includes the trust ratio */
} KilnLambLoop;

/* The float results are the sum of squares of buffers->grad, added in f32. */
typedef struct KilnOptimizerLoops {
    float (*sgd)(const KilnOptimizerBuffers *buffers, const KilnSgdLoop *sgd);
    float (*adam)(const KilnOptimizerBuffers *buffers, const KilnAdamLoop *adam);
    float (*rmsprop)(const KilnOptimizerBuffers *buffers, const KilnRmspropLoop *rmsprop);
    float (*adagrad)(const KilnOptimizerBuffers *buffers, const KilnAdagradLoop *adagrad);
    float (*lion)(const KilnOptimizerBuffers *buffers, const KilnLionLoop *lion);
    float (*adan)(const KilnOptimizerBuffers *buffers, const KilnAdanLoop *adan);
    /* Updates the averages; returns the sums of squares of parameters and direction. */
    void (*lamb_moments)(const KilnOptimizerBuffers *buffers, const KilnLambLoop *lamb,
                         double *ret_param, double *ret_direction);
    void (*lamb_step)(const KilnOptimizerBuffers *buffers, const KilnLambLoop *lamb);
    double (*square_sum)(const float *x, int64_t n);
    void (*lerp)(float *variable, const float *value, float weight, int64_t n);
    void (*clamp)(float *variable, float limit, int64_t n);
} KilnOptimizerLoops;

KILN_DECLARE_LOOPS(KilnOptimizerLoops, optimizer_loops);

#endif

/* Adan (Xie et al., "Adan: adaptive Nesterov momentum algorithm", 2022), with betas as in the
 * authors' program: the share that is kept. For each parameter p with gradient g in step t, where d
 * is g minus the last step's g (0 on the first step):
 *
 *     m = beta1 * m + (1 - beta1) * g
 *     n = beta2 * n + (1 - beta2) * d
 *     v = beta3 * v + (1 - beta3) * (g + beta2 * d)^2
 *     u = (m / (1 - beta1^t) + beta2 * n / (1 - beta2^t)) / (sqrt(v / (1 - beta3^t)) + eps)
 *     p = (p - lr * u) / (1 + lr * weight_decay)   no_prox: p * (1 - lr * weight_decay) - lr * u
 *
 * Operation: graph/ops/training/optimizers.c. Kernel: backend/cpu/kernels/optimizers.c; its vector
 * loop: backend/cpu/isa/optimizers.c. Reference: backend/ref/optimizers.c. */
#include "kiln.h"

typedef struct Opts {
    KILN_OPTIMIZER_OPTIONS;
    double eps;
    double *betas;
    size_t betas_count;
    bool no_prox;
} Opts;

static const KilnField fields[] = {
    KILN_OPTIMIZER_FIELDS(
        Opts, "0.001", "0.0",
        "decoupled: shrinks the parameters by this times the learning rate in every step"),
    KILN_FIELD_F64_LIST(
        Opts, betas, "[0.98, 0.92, 0.99]", 0.0, 1.0,
        "decay rates of the averages of the gradient, its changes and the square of both, below 1"),
    KILN_FIELD_F64(Opts, eps, "1e-8", 0.0, 1.0, "added to the denominator"),
    KILN_FIELD_BOOL(Opts, no_prox, "false",
                    "shrink the parameters before the step, as in AdamW, instead of after it"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    return kiln_adam_check_betas(opts->betas, opts->betas_count, 3, ret_option, err);
}

static void common(const KilnInstance *self, KilnOptimizerCommon *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_OPTIMIZER_COMMON(opts, opts->betas[0]);
}

static size_t slots(const KilnInstance *self, const char *names[KILN_MAX_SLOTS])
{
    (void)self;
    names[0] = "exp_avg";
    names[1] = "exp_avg_sq";
    names[2] = "exp_avg_diff";
    names[3] = "pre_grad";
    return 4;
}

/* Betas in the order of the averages; the third correction is that of the square. */
static size_t hyper(const KilnInstance *self, double lr, int64_t step, float ret[KILN_MAX_HYPER])
{
    const Opts *opts = kiln_opts(self);
    size_t n = kiln_adam_hyper(opts->betas, 3, lr, step, ret);

    ret[n] = step == 1 ? 1.0f : 0.0f;
    return n + 1;
}

static void update(const KilnInstance *self, const KilnFlat *flat)
{
    const Opts *opts = kiln_opts(self);
    KilnAdan adan = {
        .beta1 = opts->betas[0],
        .beta2 = opts->betas[1],
        .beta3 = opts->betas[2],
        .eps = opts->eps,
        .no_prox = opts->no_prox,
    };

    kiln_adan_update(flat, adan);
}

static const KilnOptimizerOps ops = {
    .common = common,
    .slots = slots,
    .hyper = hyper,
    .update = update,
};

const KilnComponent kiln_optimizer_adan = {
    .kind = KILN_KIND_OPTIMIZER,
    .name = "adan",
    .summary = "Adan: Adam with Nesterov momentum from the changes of the gradient",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.optimizer = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_optimizer_adan, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

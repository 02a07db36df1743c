/* LAMB (You et al., "Large batch optimization for deep learning", 2020). For each parameter p with
 * gradient g in step t:
 *
 *     m  = beta1 * m + (1 - beta1) * g
 *     v  = beta2 * v + (1 - beta2) * g^2
 *     u  = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay * p
 *     p -= lr * trust * u                          trust = norm(p) / norm(u) of the whole tensor
 *
 * trust is 1 where either norm is 0. As in the authors' program it is also 1 for parameters without
 * weight decay (norms, biases), unless always_adapt is set.
 *
 * Operation: graph/ops/training/optimizers.c. Kernel: backend/cpu/kernels/optimizers.c; its vector
 * loop: backend/cpu/isa/optimizers.c. Reference: backend/ref/optimizers.c. */
#include "kiln.h"

typedef struct Opts {
    KILN_OPTIMIZER_OPTIONS;
    double eps;
    double *betas;
    size_t betas_count;
    bool always_adapt;
} Opts;

static const KilnField fields[] = {
    KILN_OPTIMIZER_FIELDS(Opts, "0.001", "0.01",
                          "adds this times the parameters to the direction of the step"),
    KILN_FIELD_F64_LIST(Opts, betas, "[0.9, 0.999]", 0.0, 1.0,
                        "decay rates of the averages of the gradient and of its square, below 1"),
    KILN_FIELD_F64(Opts, eps, "1e-6", 0.0, 1.0, "added to the denominator"),
    KILN_FIELD_BOOL(Opts, always_adapt, "false",
                    "scale the steps of parameters without weight decay as well"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    return kiln_adam_check_betas(opts->betas, opts->betas_count, 2, ret_option, err);
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
    return 2;
}

static size_t hyper(const KilnInstance *self, double lr, int64_t step, float ret[KILN_MAX_HYPER])
{
    const Opts *opts = kiln_opts(self);

    return kiln_adam_hyper(opts->betas, 2, lr, step, ret);
}

static void update(const KilnInstance *self, const KilnFlat *flat)
{
    const Opts *opts = kiln_opts(self);
    KilnLamb lamb = {
        .beta1 = opts->betas[0],
        .beta2 = opts->betas[1],
        .eps = opts->eps,
        .always_adapt = opts->always_adapt,
    };

    kiln_lamb_update(flat, lamb);
}

static const KilnOptimizerOps ops = {
    .common = common,
    .slots = slots,
    .hyper = hyper,
    .update = update,
    .per_parameter = true,
};

const KilnComponent kiln_optimizer_lamb = {
    .kind = KILN_KIND_OPTIMIZER,
    .name = "lamb",
    .summary =
        "LAMB: AdamW with steps scaled to the weights' norm layer by layer, for large batches",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.optimizer = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_optimizer_lamb, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

/* AdamW (Loshchilov and Hutter 2019), as torch.optim.AdamW: Adam with decoupled weight decay. For
 * each parameter p with gradient g in step t:
 *
 *     p *= 1 - lr * weight_decay
 *     m  = beta1 * m + (1 - beta1) * g
 *     v  = beta2 * v + (1 - beta2) * g^2           amsgrad divides by the largest v so far
 *     p -= lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)
 *
 * The operation is adam_update with `decoupled`; nn/adam_family.c computes 1 - beta^t.
 *
 * With `sparse`, m, v and p of an embedding's row change only in steps that use the row (lazy Adam,
 * torch.optim.SparseAdam, which adds eps before the correction of v); t counts all steps.
 *
 * Operation: graph/ops/training/optimizers.c. Kernel: backend/cpu/kernels/optimizers.c; its vector
 * loop: backend/cpu/isa/optimizers.c. Reference: backend/ref/optimizers.c. */
#include "kiln.h"

typedef struct Opts {
    KILN_OPTIMIZER_OPTIONS;
    double eps;
    double *betas;
    size_t betas_count;
    bool amsgrad, sparse;
} Opts;

static const KilnField fields[] = {
    KILN_OPTIMIZER_FIELDS(
        Opts, "0.001", "0.01",
        "decoupled: shrinks the parameters by this times the learning rate in every step"),
    KILN_FIELD_F64_LIST(Opts, betas, "[0.9, 0.999]", 0.0, 1.0,
                        "decay rates of the averages of the gradient and of its square, below 1"),
    KILN_FIELD_F64(Opts, eps, "1e-8", 0.0, 1.0, "added to the denominator"),
    KILN_FIELD_BOOL(Opts, amsgrad, "false",
                    "divide by the largest average of the square so far (Reddi et al. 2018)"),
    KILN_OPTIMIZER_SPARSE_FIELD(Opts),
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
    ret->sparse = opts->sparse;
}

static size_t slots(const KilnInstance *self, const char *names[KILN_MAX_SLOTS])
{
    const Opts *opts = kiln_opts(self);

    names[0] = "exp_avg";
    names[1] = "exp_avg_sq";
    names[2] = "max_exp_avg_sq";
    return opts->amsgrad ? 3 : 2;
}

static size_t hyper(const KilnInstance *self, double lr, int64_t step, float ret[KILN_MAX_HYPER])
{
    const Opts *opts = kiln_opts(self);

    return kiln_adam_hyper(opts->betas, 2, lr, step, ret);
}

static void update(const KilnInstance *self, const KilnFlat *flat)
{
    const Opts *opts = kiln_opts(self);
    KilnAdam adam = {
        .beta1 = opts->betas[0],
        .beta2 = opts->betas[1],
        .eps = opts->eps,
        .decoupled = true,
        .amsgrad = opts->amsgrad,
    };

    kiln_adam_update(flat, adam);
}

static const KilnOptimizerOps ops = {
    .common = common,
    .slots = slots,
    .hyper = hyper,
    .update = update,
};

const KilnComponent kiln_optimizer_adamw = {
    .kind = KILN_KIND_OPTIMIZER,
    .name = "adamw",
    .summary = "Adam with decoupled weight decay",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.optimizer = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_optimizer_adamw, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

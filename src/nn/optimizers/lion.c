/* Lion (Chen et al., "Symbolic discovery of optimization algorithms", 2023). It has half of Adam's
 * state and wants a learning rate 3 to 10 times smaller than Adam's. For each parameter p with
 * gradient g:
 *
 *     u = beta1 * m + (1 - beta1) * g
 *     p = p * (1 - lr * weight_decay) - lr * sign(u)
 *     m = beta2 * m + (1 - beta2) * g
 *
 * Operation: graph/ops/training/optimizers.c. Kernel: backend/cpu/kernels/optimizers.c; its vector
 * loop: backend/cpu/isa/optimizers.c. Reference: backend/ref/optimizers.c. */
#include "kiln.h"

typedef struct Opts {
    KILN_OPTIMIZER_OPTIONS;
    double *betas;
    size_t betas_count;
} Opts;

static const KilnField fields[] = {
    KILN_OPTIMIZER_FIELDS(
        Opts, "0.0001", "0.0",
        "decoupled: shrinks the parameters by this times the learning rate in every step"),
    KILN_FIELD_F64_LIST(Opts, betas, "[0.9, 0.99]", 0.0, 1.0,
                        "weight of the average in the step, and its decay rate; both below 1"),
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
    return 1;
}

static size_t hyper(const KilnInstance *self, double lr, int64_t step, float ret[KILN_MAX_HYPER])
{
    (void)self;
    (void)step;
    ret[0] = (float)lr;
    return 1;
}

static void update(const KilnInstance *self, const KilnFlat *flat)
{
    const Opts *opts = kiln_opts(self);
    KilnLion lion = { .beta1 = opts->betas[0], .beta2 = opts->betas[1] };

    kiln_lion_update(flat, lion);
}

static const KilnOptimizerOps ops = {
    .common = common,
    .slots = slots,
    .hyper = hyper,
    .update = update,
};

const KilnComponent kiln_optimizer_lion = {
    .kind = KILN_KIND_OPTIMIZER,
    .name = "lion",
    .summary = "Lion: steps of equal size, by the sign of an average of the gradient",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.optimizer = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_optimizer_lion, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

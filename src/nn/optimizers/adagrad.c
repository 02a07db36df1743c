/* Adagrad (Duchi et al. 2011), as torch.optim.Adagrad. For each parameter p with gradient g in step
 * t:
 *
 *     g += weight_decay * p
 *     s += g^2                                     starts at initial_accumulator_value
 *     p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)
 *
 * With `sparse` embeddings get the same values, at the cost of the used rows.
 *
 * Operation: graph/ops/training/optimizers.c. Kernel: backend/cpu/kernels/optimizers.c; its vector
 * loop: backend/cpu/isa/optimizers.c. Reference: backend/ref/optimizers.c. */
#include "kiln.h"

typedef struct Opts {
    KILN_OPTIMIZER_OPTIONS;
    double lr_decay, initial_accumulator_value, eps;
    bool sparse;
} Opts;

static const KilnField fields[] = {
    KILN_OPTIMIZER_FIELDS(Opts, "0.01", "0.0",
                          "L2 penalty: adds this times the parameters to the gradient"),
    KILN_FIELD_F64(Opts, lr_decay, "0.0", 0.0, 1e6,
                   "divides the learning rate of step t by 1 + (t-1) times this"),
    KILN_FIELD_F64(Opts, initial_accumulator_value, "0.0", 0.0, 1e6, "initial sum of squares"),
    KILN_FIELD_F64(Opts, eps, "1e-10", 0.0, 1.0, "added to the denominator"),
    KILN_OPTIMIZER_SPARSE_FIELD(Opts),
    KILN_FIELD_END,
};

static void common(const KilnInstance *self, KilnOptimizerCommon *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_OPTIMIZER_COMMON(opts, 0.0);
    ret->sparse = opts->sparse;
}

static size_t slots(const KilnInstance *self, const char *names[KILN_MAX_SLOTS])
{
    (void)self;
    names[0] = "sum";
    return 1;
}

static size_t hyper(const KilnInstance *self, double lr, int64_t step, float ret[KILN_MAX_HYPER])
{
    const Opts *opts = kiln_opts(self);

    ret[0] = (float)(lr / (1.0 + (double)(step - 1) * opts->lr_decay));
    ret[1] = step == 1 ? 1.0f : 0.0f;
    return 2;
}

static void update(const KilnInstance *self, const KilnFlat *flat)
{
    const Opts *opts = kiln_opts(self);
    KilnAdagrad adagrad = {
        .initial_accumulator_value = opts->initial_accumulator_value,
        .eps = opts->eps,
    };

    kiln_adagrad_update(flat, adagrad);
}

static const KilnOptimizerOps ops = {
    .common = common,
    .slots = slots,
    .hyper = hyper,
    .update = update,
};

const KilnComponent kiln_optimizer_adagrad = {
    .kind = KILN_KIND_OPTIMIZER,
    .name = "adagrad",
    .summary = "Adagrad: steps scaled by the sum of all squared gradients so far",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.optimizer = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_optimizer_adagrad, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

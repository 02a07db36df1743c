/* RMSprop (Tieleman and Hinton 2012; centered: Graves 2013), as torch.optim.RMSprop. For each
 * parameter p with gradient g:
 *
 *     g += weight_decay * p
 *     v  = alpha * v + (1 - alpha) * g^2
 *     a  = alpha * a + (1 - alpha) * g             centered only; then v - a^2 stands for v below
 *     b  = momentum * b + g / (sqrt(v) + eps)      without momentum: b is the quotient alone
 *     p -= lr * b
 *
 * Operation: graph/ops/training/optimizers.c. Kernel: backend/cpu/kernels/optimizers.c; its vector
 * loop: backend/cpu/isa/optimizers.c. Reference: backend/ref/optimizers.c. */
#include "kiln.h"

typedef struct Opts {
    KILN_OPTIMIZER_OPTIONS;
    double alpha, eps, momentum;
    bool centered;
} Opts;

static const KilnField fields[] = {
    KILN_OPTIMIZER_FIELDS(Opts, "0.01", "0.0",
                          "L2 penalty: adds this times the parameters to the gradient"),
    KILN_FIELD_F64(Opts, alpha, "0.99", 0.0, 1.0,
                   "decay rate of the average of the squared gradient"),
    KILN_FIELD_F64(Opts, eps, "1e-8", 0.0, 1.0, "added to the denominator"),
    KILN_FIELD_F64(Opts, momentum, "0.0", 0.0, 1.0, "fraction of the last update to keep"),
    KILN_FIELD_BOOL(
        Opts, centered, "false",
        "divide by the standard deviation of the gradient instead of its root mean square"),
    KILN_FIELD_END,
};

static void common(const KilnInstance *self, KilnOptimizerCommon *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_OPTIMIZER_COMMON(opts, opts->momentum);
}

static size_t slots(const KilnInstance *self, const char *names[KILN_MAX_SLOTS])
{
    const Opts *opts = kiln_opts(self);

    names[0] = "square_avg";
    names[1] = opts->momentum > 0.0 ? "momentum_buffer" : NULL;
    names[2] = opts->centered ? "grad_avg" : NULL;
    return 3;
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
    KilnRmsprop rmsprop = {
        .alpha = opts->alpha,
        .eps = opts->eps,
        .momentum = opts->momentum,
        .centered = opts->centered,
    };

    kiln_rmsprop_update(flat, rmsprop);
}

static const KilnOptimizerOps ops = {
    .common = common,
    .slots = slots,
    .hyper = hyper,
    .update = update,
};

const KilnComponent kiln_optimizer_rmsprop = {
    .kind = KILN_KIND_OPTIMIZER,
    .name = "rmsprop",
    .summary = "RMSprop: steps scaled by a running average of the squared gradient",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.optimizer = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_optimizer_rmsprop, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

/* Stochastic gradient descent, as torch.optim.SGD. For each parameter p with gradient g:
 *
 *     g += weight_decay * p
 *     b  = momentum * b + (1 - dampening) * g      on the first step: b = g
 *     p -= lr * b                                  nesterov: lr * (g + momentum * b)
 *
 * Without momentum there is no b: p -= lr * g. With `sparse` embeddings get the same values, at the
 * cost of the used rows.
 *
 * Operation: graph/ops/training/optimizers.c. Kernel: backend/cpu/kernels/optimizers.c; its vector
 * loop: backend/cpu/isa/optimizers.c. Reference: backend/ref/optimizers.c. */
#include "kiln.h"

typedef struct Opts {
    KILN_OPTIMIZER_OPTIONS;
    double momentum, dampening;
    bool nesterov, sparse;
} Opts;

static const KilnField fields[] = {
    KILN_OPTIMIZER_FIELDS(Opts, "0.001", "0.0",
                          "L2 penalty: adds this times the parameters to the gradient"),
    KILN_FIELD_F64(Opts, momentum, "0.0", 0.0, 1.0, "fraction of the last update to keep"),
    KILN_FIELD_F64(Opts, dampening, "0.0", 0.0, 1.0,
                   "fraction of the gradient to leave out of the momentum"),
    KILN_FIELD_BOOL(Opts, nesterov, "false",
                    "look ahead along the momentum; needs momentum > 0 and no dampening"),
    KILN_OPTIMIZER_SPARSE_FIELD(Opts),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "sparse";
    if (opts->sparse && opts->momentum > 0.0)
        return kiln_error_set(err, KILN_E_RANGE,
                              "true needs momentum=0, got %g: momentum moves rows that a step does "
                              "not use; use optimizer=adam for averages of the used rows",
                              opts->momentum);
    if (!opts->nesterov || (opts->momentum > 0.0 && opts->dampening <= 0.0))
        return KILN_OK;
    *ret_option = "nesterov";
    if (opts->momentum > 0.0)
        return kiln_error_set(err, KILN_E_RANGE, "true needs dampening=0, got %g", opts->dampening);
    return kiln_error_set(err, KILN_E_RANGE,
                          "true needs a momentum above 0; set momentum (0.9, say) or "
                          "nesterov=false");
}

static void common(const KilnInstance *self, KilnOptimizerCommon *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_OPTIMIZER_COMMON(opts, opts->momentum);
    ret->sparse = opts->sparse;
}

static size_t slots(const KilnInstance *self, const char *names[KILN_MAX_SLOTS])
{
    const Opts *opts = kiln_opts(self);

    if (opts->momentum <= 0.0)
        return 0;
    names[0] = "momentum_buffer";
    return 1;
}

static size_t hyper(const KilnInstance *self, double lr, int64_t step, float ret[KILN_MAX_HYPER])
{
    (void)self;
    ret[0] = (float)lr;
    ret[1] = step == 1 ? 1.0f : 0.0f;
    return 2;
}

static void update(const KilnInstance *self, const KilnFlat *flat)
{
    const Opts *opts = kiln_opts(self);
    KilnSgd sgd = {
        .momentum = opts->momentum,
        .dampening = opts->dampening,
        .nesterov = opts->nesterov,
    };

    kiln_sgd_update(flat, sgd);
}

static const KilnOptimizerOps ops = {
    .common = common,
    .slots = slots,
    .hyper = hyper,
    .update = update,
};

const KilnComponent kiln_optimizer_sgd = {
    .kind = KILN_KIND_OPTIMIZER,
    .name = "sgd",
    .summary = "Stochastic gradient descent with momentum, Nesterov and weight decay",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.optimizer = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_optimizer_sgd, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

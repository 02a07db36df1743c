/* Adam (Kingma and Ba 2015) as torch.optim.Adam has it. */
#include "kiln.h"

typedef struct Opts {
    double lr, eps, weight_decay;
    double *betas;
    size_t betas_count;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, lr, "0.001", 0.0, 1e6, "learning rate, before the scheduler's factor"),
    KILN_FIELD_F64_LIST(Opts, betas, "[0.9, 0.999]", 0.0, 1.0,
                        "two numbers below 1: how slowly the averages of the gradient and of its "
                        "square forget"),
    KILN_FIELD_F64(Opts, eps, "1e-8", 0.0, 1.0, "added to the denominator"),
    KILN_FIELD_F64(Opts, weight_decay, "0.0", 0.0, 1e3,
                   "L2 penalty: this times the parameters is added to the gradient"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    return kiln_adam_check_betas(opts->betas, opts->betas_count, ret_option, err);
}

static double learning_rate(const KilnInstance *self)
{
    return ((const Opts *)kiln_opts(self))->lr;
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

    return kiln_adam_hyper(opts->betas, lr, step, ret);
}

static void update(const KilnInstance *self, KilnTensor *param, KilnTensor *grad,
                   KilnTensor *const slot[KILN_MAX_SLOTS], KilnTensor *numbers)
{
    const Opts *opts = kiln_opts(self);
    KilnAdam adam = {
        .beta1 = opts->betas[0],
        .beta2 = opts->betas[1],
        .eps = opts->eps,
        .weight_decay = opts->weight_decay,
        .decoupled = false,
    };

    kiln_adam_update(param, grad, slot[0], slot[1], numbers, adam);
}

static const KilnOptimizerOps ops = {
    .learning_rate = learning_rate,
    .slots = slots,
    .hyper = hyper,
    .update = update,
};

const KilnComponent kiln_optimizer_adam = {
    .kind = KILN_KIND_OPTIMIZER,
    .name = "adam",
    .summary = "Adam: steps scaled by running averages of the gradient and its square",
    .fields = fields,
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.optimizer = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_optimizer_adam, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

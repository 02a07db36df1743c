/* An optimizer in a plugin, with an update of its own: signum (Bernstein et al., "signSGD", 2018),
 * steps of equal size in the direction of the sign of the momentum. For each parameter p with
 * gradient g:
 *
 *     m = momentum * m + (1 - momentum) * g
 *     p = p - lr * (sign(m) + weight_decay * p)
 *
 * The update is a custom operation that writes its first two inputs. */
#include "kiln.h"

typedef struct Opts {
    KILN_OPTIMIZER_OPTIONS;
    double momentum;
} Opts;

static const KilnField fields[] = {
    KILN_OPTIMIZER_FIELDS(Opts, "0.0001", "0.0",
                          "decoupled: shrinks the parameters by this times the learning rate"),
    KILN_FIELD_F64(Opts, momentum, "0.9", 0.0, 1.0, "weight of the average in the step; below 1"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "momentum";
    return opts->momentum < 1.0 ? KILN_OK
                                : kiln_error_set(err, KILN_E_RANGE, "expected a number below 1");
}

/* ---- The update ------------------------------------------------------------------------- */

enum { PARAM, MOMENTUM, GRAD, HYPER, SCALE, ENDS, RATES, INPUTS };

typedef struct Attrs {
    double momentum;
} Attrs;

static KilnStatus update_infer(const void *attrs, const KilnOpArg *inputs, KilnOpArg *outputs,
                               KilnError *err)
{
    (void)attrs;
    (void)outputs;
    if (!kiln_shape_equal(&inputs[PARAM].shape, &inputs[MOMENTUM].shape) ||
        !kiln_shape_equal(&inputs[PARAM].shape, &inputs[GRAD].shape))
        return kiln_error_set(err, KILN_E_SHAPE,
                              "parameters, momentum and gradients must have one shape");
    return KILN_OK;
}

static void update_range(void *context, int64_t begin, int64_t end)
{
    const KilnOpCall *call = context;
    const KilnOpArg *in = call->inputs;
    float *p = in[PARAM].data, *m = in[MOMENTUM].data;
    const float *g = in[GRAD].data, *rates = in[RATES].data;
    const int64_t *ends = in[ENDS].data;
    const float lr = *(const float *)in[HYPER].data;
    const float scale = in[SCALE].data != NULL ? *(const float *)in[SCALE].data : 1.0F;
    const float keep = (float)((const Attrs *)call->attrs)->momentum;
    int64_t segment = 0;

    for (int64_t i = begin; i < end; i++) {
        while (i >= ends[segment])
            segment++;
        const float rate = lr * rates[2 * segment], decay = rates[2 * segment + 1];

        if (rate == 0.0F)
            continue;
        m[i] = keep * m[i] + (1.0F - keep) * scale * g[i];
        p[i] -= rate * ((float)((m[i] > 0.0F) - (m[i] < 0.0F)) + decay * p[i]);
    }
}

static void update_run(const KilnOpCall *call)
{
    kiln_op_parallel(call, call->inputs[PARAM].shape.dim[0], 16384, update_range, (void *)call);
}

static const KilnCustomOp signum_update = {
    .size = sizeof(KilnCustomOp),
    .name = "signum_update",
    .n_inputs = INPUTS,
    .attrs_size = sizeof(Attrs),
    .updates = 1u << PARAM | 1u << MOMENTUM,
    .infer = update_infer,
    .cpu = update_run,
};

static void update(const KilnInstance *self, const KilnFlat *flat)
{
    const Opts *opts = kiln_opts(self);
    const Attrs attrs = { .momentum = opts->momentum };
    KilnTensor *inputs[INPUTS] = { flat->param, flat->slots[0],     flat->grad, flat->hyper,
                                   flat->scale, flat->segment_ends, flat->rates };

    kiln_custom_op(kiln_tensor_graph(flat->param), &signum_update, inputs, &attrs, NULL);
}

/* ---- The component ----------------------------------------------------------------------- */

static void common(const KilnInstance *self, KilnOptimizerCommon *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_OPTIMIZER_COMMON(opts, opts->momentum);
}

static size_t slots(const KilnInstance *self, const char *names[KILN_MAX_SLOTS])
{
    (void)self;
    names[0] = "momentum_buffer";
    return 1;
}

static size_t hyper(const KilnInstance *self, double lr, int64_t step, float ret[KILN_MAX_HYPER])
{
    (void)self;
    (void)step;
    ret[0] = (float)lr;
    return 1;
}

static const KilnOptimizerOps ops = {
    .common = common,
    .slots = slots,
    .hyper = hyper,
    .update = update,
};

const KilnComponent kiln_optimizer_signum = {
    .kind = KILN_KIND_OPTIMIZER,
    .name = "signum",
    .summary = "Signum: steps of equal size, by the sign of the momentum",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.optimizer = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_optimizer_signum, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

/* Focal loss (Lin et al., "Focal loss for dense object detection", 2017): cross-entropy times
 * (1 - p)^gamma, with p the probability of the sample's class, so that samples which the network
 * gets right count little; a mean over the samples. For shares of classes p is exp(-cross-entropy).
 */
#include "kiln.h"

#include <stdlib.h>

typedef struct Opts {
    double gamma;
    KILN_CLASS_WEIGHTS_OPTIONS;
} Opts;

typedef struct State {
    float *weights;
    int64_t n_classes;
} State;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, gamma, "2.0", 0.0, 100.0,
                   "how little easy samples count; 0: cross-entropy"),
    KILN_CLASS_WEIGHTS_FIELD(Opts),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    return KILN_CLASS_WEIGHTS_CHECK(opts, ret_option, err);
}

static KilnStatus setup(KilnInstance *self, const KilnDataSpec *data, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    state->n_classes = data->n_classes;
    return kiln_class_weights(opts->class_weights, opts->class_weights_count, data, &state->weights,
                              err);
}

static KilnTensor *rows(KilnTensor *output, KilnTensor *target, KilnTensor *weight)
{
    const KilnCrossEntropy options = { .weight = weight, .reduction = KILN_REDUCTION_NONE };

    return kiln_target_is_soft(target) ? kiln_cross_entropy_soft(output, target, options)
                                       : kiln_cross_entropy(output, target, options);
}

static KilnTensor *loss(KilnInstance *self, KilnStep *step, KilnTensor *output, KilnTensor *target)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnTensor *plain = rows(output, target, NULL), *weighted = plain;
    /* Above 0, where a power below 1 has no slope. */
    KilnTensor *missed = kiln_clamp(kiln_shift(kiln_neg(kiln_exp(kiln_neg(plain))), 1.0), 1e-7,
                                    1.0);

    if (opts->balanced && state->weights == NULL)
        state->weights = kiln_balanced_weights(step, state->n_classes);
    if (state->weights != NULL)
        weighted = rows(output, target,
                        kiln_graph_input(kiln_step_graph(step), KILN_F32,
                                         KILN_SHAPE(state->n_classes), state->weights));
    return kiln_mean(kiln_mul(kiln_pow(missed, opts->gamma), weighted));
}

static void release(KilnInstance *self)
{
    free(((State *)kiln_state(self))->weights);
}

static const KilnLossOps ops = { .setup = setup, .loss = loss };

const KilnComponent kiln_loss_focal = {
    .kind = KILN_KIND_LOSS,
    .name = "focal",
    .summary = "Focal loss: cross-entropy that counts easy samples less",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.loss = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_loss_focal, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

/* Cross-entropy of classes (torch.nn.CrossEntropyLoss): -log softmax(logits)[class], with class
 * weights as a mean over the weights of the samples' classes. */
#include "kiln.h"

#include <stdlib.h>

typedef struct Opts {
    double label_smoothing;
    KILN_CLASS_WEIGHTS_OPTIONS;
} Opts;

typedef struct State {
    float *weights;
    int64_t n_classes;
} State;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, label_smoothing, "0.0", 0.0, 1.0,
                   "in training, this fraction of each label is spread over all classes"),
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

static KilnTensor *loss(KilnInstance *self, KilnStep *step, KilnTensor *output, KilnTensor *target)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnCrossEntropy options = {
        .label_smoothing = kiln_step_training(step) ? opts->label_smoothing : 0.0,
    };

    if (opts->balanced && state->weights == NULL)
        state->weights = kiln_balanced_weights(step, state->n_classes);
    if (state->weights != NULL)
        options.weight = kiln_graph_input(kiln_step_graph(step), KILN_F32,
                                          KILN_SHAPE(state->n_classes), state->weights);
    return kiln_target_is_soft(target) ? kiln_cross_entropy_soft(output, target, options)
                                       : kiln_cross_entropy(output, target, options);
}

static void release(KilnInstance *self)
{
    free(((State *)kiln_state(self))->weights);
}

static const KilnLossOps ops = { .setup = setup, .loss = loss };

const KilnComponent kiln_loss_cross_entropy = {
    .kind = KILN_KIND_LOSS,
    .name = "cross_entropy",
    .summary = "Cross-entropy of classes, with label smoothing and class weights",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.loss = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_loss_cross_entropy, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

/* Binary cross-entropy of independent labels (torch.nn.BCEWithLogitsLoss): of each label by itself
 * -y log(p) - (1 - y) log(1 - p) with p = sigmoid(logit), a mean over samples and labels.
 * pos_weight multiplies the first term, so that labels which few samples have are not always
 * denied. */
#include "kiln.h"

#include <stdlib.h>

typedef struct Opts {
    double *pos_weight;
    size_t pos_weight_count;
    bool balanced;
} Opts;

typedef struct State {
    float *pos_weight; /* [labels]; NULL: all 1 */
    int64_t n_labels;
} State;

static const KilnField fields[] = {
    KILN_FIELD_F64_LIST(Opts, pos_weight, "[]", 0.0, 1e9,
                        "factor of each label where a sample has it, in the order of the labels; "
                        "empty: all 1"),
    KILN_FIELD_BOOL(Opts, balanced, "false",
                    "pos_weight is the training samples without the label over those with it"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "balanced";
    return !opts->balanced || opts->pos_weight_count == 0
               ? KILN_OK
               : kiln_error_set(err, KILN_E_RANGE, "pos_weight is given, too; set one of them");
}

static KilnStatus setup(KilnInstance *self, const KilnDataSpec *data, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnFeature *labels = kiln_spec_labels(data);
    State *state = kiln_state(self);

    state->n_labels = labels != NULL ? data->n_classes : 0;
    if (opts->pos_weight_count == 0)
        return KILN_OK;
    if ((int64_t)opts->pos_weight_count != state->n_labels)
        return kiln_error_set(err, KILN_E_RANGE,
                              "pos_weight has %zu numbers, but the data has %lld labels; give one "
                              "for each",
                              opts->pos_weight_count, (long long)state->n_labels);
    state->pos_weight = malloc(opts->pos_weight_count * sizeof(*state->pos_weight));
    if (state->pos_weight == NULL)
        return kiln_error_nomem(err, opts->pos_weight_count * sizeof(*state->pos_weight));
    for (size_t i = 0; i < opts->pos_weight_count; i++)
        state->pos_weight[i] = (float)opts->pos_weight[i];
    return KILN_OK;
}

/* The weights from the training samples; NULL: there is no memory, or they are not known. */
static float *balance(State *state, KilnStep *step)
{
    int64_t samples = 0;
    const int64_t *counts;

    if (state->pos_weight != NULL || state->n_labels == 0)
        return state->pos_weight;
    counts = kiln_step_class_counts(step, &samples);
    if (counts == NULL)
        return NULL;
    state->pos_weight = malloc((size_t)state->n_labels * sizeof(*state->pos_weight));
    for (int64_t i = 0; i < state->n_labels && state->pos_weight != NULL; i++)
        state->pos_weight[i] = counts[i] > 0
                                   ? (float)((double)(samples - counts[i]) / (double)counts[i])
                                   : 1.0f;
    return state->pos_weight;
}

static KilnTensor *loss(KilnInstance *self, KilnStep *step, KilnTensor *output, KilnTensor *target)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const float *weights = opts->balanced ? balance(state, step) : state->pos_weight;
    KilnTensor *pos_weight = NULL;

    if (weights != NULL)
        pos_weight = kiln_graph_input(kiln_step_graph(step), KILN_F32, KILN_SHAPE(state->n_labels),
                                      weights);
    return kiln_bce_with_logits(output, target, NULL, pos_weight, KILN_REDUCTION_MEAN);
}

static void release(KilnInstance *self)
{
    free(((State *)kiln_state(self))->pos_weight);
}

static const KilnLossOps ops = { .setup = setup, .loss = loss };

const KilnComponent kiln_loss_binary_cross_entropy = {
    .kind = KILN_KIND_LOSS,
    .name = "binary_cross_entropy",
    .summary = "Binary cross-entropy of independent labels, with weights of positives",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.loss = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_loss_binary_cross_entropy, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

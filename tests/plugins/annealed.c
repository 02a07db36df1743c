/* A loss whose weight changes with every batch: as an attribute, so that each step needs a plan of
 * its own, or as data. */
#include "kiln.h"

typedef struct Opts {
    bool data;
} Opts;

typedef struct State {
    int64_t batches;
} State;

static const KilnField fields[] = {
    KILN_FIELD_BOOL(Opts, data, "false", "the weight is data, not an attribute"),
    KILN_FIELD_END,
};

static KilnTensor *loss(KilnInstance *self, KilnStep *step, KilnTensor *output, KilnTensor *target)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const double weight = 1.0 / (1.0 + (double)state->batches++ / 64.0);
    KilnTensor *entropy = kiln_cross_entropy(output, target, (KilnCrossEntropy) { 0 });

    return opts->data ? kiln_mul(entropy, kiln_graph_scalar(kiln_step_graph(step), weight))
                      : kiln_scale(entropy, weight);
}

static const KilnLossOps ops = { .loss = loss };

static const KilnComponent component = {
    .kind = KILN_KIND_LOSS,
    .name = "annealed",
    .summary = "Cross-entropy times a weight that changes with every batch",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.loss = &ops,
};

static const KilnComponent *const list[] = { &component, NULL };
KILN_PLUGIN_DEFINE(list)

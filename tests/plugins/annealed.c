/* A loss whose weight changes with every step: as an attribute, so that each step needs a plan of
 * its own, or as data. */
#include "kiln.h"

typedef struct Opts {
    bool data;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_BOOL(Opts, data, "false", "the weight is data, not an attribute"),
    KILN_FIELD_END,
};

static KilnTensor *loss(KilnInstance *self, KilnStep *step, KilnTensor *output, KilnTensor *target)
{
    const Opts *opts = kiln_opts(self);
    const KilnProgress *at = kiln_step_progress(step);
    const double weight = at != NULL ? 1.0 / (1.0 + (double)at->step / 64.0) : 1.0;
    KilnTensor *scalar = kiln_graph_scalar(kiln_step_graph(step), weight);
    KilnTensor *entropy = kiln_cross_entropy(output, target, (KilnCrossEntropy) { 0 });

    if (at != NULL)
        kiln_step_log(step, "train/weight", scalar, 0);
    return opts->data ? kiln_mul(entropy, scalar) : kiln_scale(entropy, weight);
}

static const KilnLossOps ops = { .loss = loss };

static const KilnComponent component = {
    .kind = KILN_KIND_LOSS,
    .name = "annealed",
    .summary = "Cross-entropy times a weight that changes with every step",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.loss = &ops,
};

static const KilnComponent *const list[] = { &component, NULL };
KILN_PLUGIN_DEFINE(list)

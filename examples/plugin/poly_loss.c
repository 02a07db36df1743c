/* A loss in a plugin: Poly-1 (Leng et al., "PolyLoss", 2022), cross-entropy plus epsilon * (1 - p),
 * with p the probability of the sample's class. */
#include "kiln.h"

typedef struct Opts {
    double epsilon;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, epsilon, "1.0", -1.0, 100.0, "weight of 1 - p; 0: cross-entropy"),
    KILN_FIELD_END,
};

/* Evaluation reports the same loss: it regularizes nothing. */
static KilnTensor *loss(KilnInstance *self, KilnStep *step, KilnTensor *output, KilnTensor *target)
{
    const Opts *opts = kiln_opts(self);
    const KilnCrossEntropy rows = { .reduction = KILN_REDUCTION_NONE };
    KilnTensor *entropy = kiln_target_is_soft(target)
                              ? kiln_cross_entropy_soft(output, target, rows)
                              : kiln_cross_entropy(output, target, rows);
    KilnTensor *missed = kiln_shift(kiln_neg(kiln_exp(kiln_neg(entropy))), 1.0);

    (void)step;
    return kiln_mean(kiln_add(entropy, kiln_scale(missed, opts->epsilon)));
}

static const KilnLossOps ops = { .loss = loss };

const KilnComponent kiln_loss_poly = {
    .kind = KILN_KIND_LOSS,
    .name = "poly",
    .summary = "Poly-1: cross-entropy, and how far the class's probability is from 1",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.loss = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_loss_poly, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

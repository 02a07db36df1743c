/* Huber's loss of numbers (torch.nn.HuberLoss): half the square of errors up to delta, straight
 * beyond it. */
#include "kiln.h"

typedef struct Opts {
    double delta;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, delta, "1.0", 1e-9, 1e9,
                   "errors up to this are squared, in the units that the task trains on"),
    KILN_FIELD_END,
};

static KilnTensor *loss(KilnInstance *self, KilnStep *step, KilnTensor *output, KilnTensor *target)
{
    const Opts *opts = kiln_opts(self);

    (void)step;
    return kiln_huber(output, target, opts->delta, KILN_REDUCTION_MEAN);
}

static const KilnLossOps ops = { .loss = loss };

const KilnComponent kiln_loss_huber = {
    .kind = KILN_KIND_LOSS,
    .name = "huber",
    .summary = "Huber's loss of numbers: squared for small errors, straight for large ones",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.loss = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_loss_huber, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

/* Mean squared error of numbers (torch.nn.MSELoss). */
#include "kiln.h"

static KilnTensor *loss(KilnInstance *self, KilnStep *step, KilnTensor *output, KilnTensor *target)
{
    (void)self;
    (void)step;
    return kiln_mse(output, target, KILN_REDUCTION_MEAN);
}

static const KilnLossOps ops = { .loss = loss };

const KilnComponent kiln_loss_mse = {
    .kind = KILN_KIND_LOSS,
    .name = "mse",
    .summary = "Mean squared error of numbers",
    .ops.loss = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_loss_mse, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

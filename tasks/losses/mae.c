/* Mean absolute error of numbers (torch.nn.L1Loss). */
#include "kiln.h"

static KilnTensor *loss(KilnInstance *self, KilnStep *step, KilnTensor *output, KilnTensor *target)
{
    (void)self;
    (void)step;
    return kiln_l1(output, target, KILN_REDUCTION_MEAN);
}

static const KilnLossOps ops = { .loss = loss };

const KilnComponent kiln_loss_mae = {
    .kind = KILN_KIND_LOSS,
    .name = "mae",
    .summary = "Mean absolute error of numbers",
    .ops.loss = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_loss_mae, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

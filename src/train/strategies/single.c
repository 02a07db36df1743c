/* One process, which trains alone. */
#include "kiln.h"

static KilnStatus setup(KilnInstance *self, int *ret_rank, int *ret_world, KilnError *err)
{
    (void)self;
    (void)err;
    *ret_rank = 0;
    *ret_world = 1;
    return KILN_OK;
}

static const KilnStrategyOps ops = { .setup = setup };

const KilnComponent kiln_strategy_single = {
    .kind = KILN_KIND_STRATEGY,
    .name = "single",
    .summary = "One process trains alone",
    .ops.strategy = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_strategy_single, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

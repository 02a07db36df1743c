/* Passes that only allow what planning does (plan/plan.c, plan/plan_memory.c), so that each can be
 * turned off. */
#include "graph/passes/passes.h"

KilnStatus kiln_pass_layouts(KilnRewrite *rewrite, KilnError *err)
{
    (void)err;
    rewrite->layouts = true;
    return KILN_OK;
}

/* In steps without gradients: there, parameters change less often than steps run. */
KilnStatus kiln_pass_constants(KilnRewrite *rewrite, KilnError *err)
{
    (void)err;
    rewrite->constants = !rewrite->graph->backward;
    return KILN_OK;
}

/* Off in anomaly detection, which still needs a call's inputs after it. */
KilnStatus kiln_pass_in_place(KilnRewrite *rewrite, KilnError *err)
{
    (void)err;
    rewrite->in_place = true;
    return KILN_OK;
}

KilnStatus kiln_pass_share_memory(KilnRewrite *rewrite, KilnError *err)
{
    (void)err;
    rewrite->share_memory = true;
    return KILN_OK;
}

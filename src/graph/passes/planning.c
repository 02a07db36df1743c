/* The passes that planning carries out: here it is allowed to. */
#include "graph/passes/planning.h"

KilnStatus kiln_pass_layouts(KilnRewrite *rewrite, KilnError *err)
{
    (void)err;
    rewrite->layouts = true;
    return KILN_OK;
}

/* Left out where results are looked at: what their call has read must still be there. */
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

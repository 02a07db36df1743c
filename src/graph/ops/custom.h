/* Operations that components define (kiln/custom_op.h): each gets a KilnOp, which the graph owns.
 */
#ifndef KILN_GRAPH_OPS_CUSTOM_H
#define KILN_GRAPH_OPS_CUSTOM_H

#include "graph/backend.h"
#include "kiln/custom_op.h"

/* Frees the descriptors of a graph's custom operations. */
void kiln_custom_ops_free(KilnGraph *graph);

/* ---- For backends ------------------------------------------------------------ */

/* The call as the operation's kernel sees it; `data` is as in the call. */
KilnOpCall kiln_custom_call(const KilnCall *call);
/* KilnKernel.prepare: plain order everywhere, and the workspace. */
KilnStatus kiln_custom_prepare(KilnCall *call, KilnError *err);

#endif

/* Where the first NaN or infinity of a step came from. */
#ifndef KILN_GRAPH_PLAN_ANOMALY_H
#define KILN_GRAPH_PLAN_ANOMALY_H

#include "graph/plan/plan.h"

/* Look at what a call has just written. KILN_E_NUMERIC when there is a NaN or an
 * infinity: the message names the layer, the operation, the element and what the
 * call read. A constant that is infinite on purpose is none. */
KILN_NODISCARD KilnStatus kiln_anomaly_check(const KilnPlanCall *made, KilnError *err);

#endif

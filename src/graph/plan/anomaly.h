/* Finds the operation that produced the first NaN or infinity of a step. */
#ifndef KILN_GRAPH_PLAN_ANOMALY_H
#define KILN_GRAPH_PLAN_ANOMALY_H

#include "graph/plan/plan.h"

/* Checks what a call has just written. KILN_E_NUMERIC if there is a NaN or an infinity: the message
 * names the layer, the operation, the element and the call's inputs. Constants that are infinite on
 * purpose do not count. */
KILN_NODISCARD KilnStatus kiln_anomaly_check(const KilnPlanCall *made, KilnError *err);

#endif

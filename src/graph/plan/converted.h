/* Parameters in the layout of a kernel. All plans of a graph share them, since steps of several
 * sizes read the same weights; each is converted again when its parameter was written. */
#ifndef KILN_GRAPH_PLAN_CONVERTED_H
#define KILN_GRAPH_PLAN_CONVERTED_H

#include "graph/plan/plan.h"

typedef struct KilnConverted KilnConverted;

/* Finds or makes those that a plan's storages of kind KILN_STORAGE_CONVERTED stand for; frees those
 * that no plan needs any more. */
KILN_NODISCARD KilnStatus kiln_converted_bind(KilnGraph *graph, const KilnPlan *plan,
                                              KilnError *err);
void *kiln_converted_address(const KilnConverted *converted);
/* Whether the parameter was not written since `kiln_converted_set`. */
bool kiln_converted_is_current(const KilnConverted *converted);
/* After it was converted, or not: `done`. */
void kiln_converted_set(KilnConverted *converted, bool done);
/* A plan that is freed needs its storages' no more. */
void kiln_converted_leave(const KilnPlan *plan);
/* Frees all of a graph whose plans are freed. */
void kiln_converted_free(KilnGraph *graph);

#endif

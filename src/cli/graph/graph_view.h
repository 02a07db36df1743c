/* A planned step as `kiln graph` shows it: calls grouped by layer. */
#ifndef KILN_CLI_GRAPH_GRAPH_VIEW_H
#define KILN_CLI_GRAPH_GRAPH_VIEW_H

#include "base/page.h"
#include "graph/plan/plan_report.h"

typedef enum KilnStepPhase {
    KILN_STEP_FORWARD,
    KILN_STEP_BACKWARD,
    KILN_STEP_UPDATE,
    KILN_STEP_PHASES
} KilnStepPhase;

/* "forward", "backward", "update". */
const char *kiln_step_phase_name(KilnStepPhase phase);

enum { KILN_GROUP_NAME = 128 };

/* The calls of one layer, or of all layers below one prefix. */
typedef struct KilnCallGroup {
    char name[KILN_GROUP_NAME];
    double seconds[KILN_STEP_PHASES]; /* of one step */
    int calls[KILN_STEP_PHASES];
} KilnCallGroup;

/* A plan's calls and their groups, in order of first appearance. */
typedef struct KilnStepView {
    /* Set by the caller: the parts of layers' names that make a group (0: all), and the phase that
     * the table shows (KILN_STEP_PHASES: all). */
    int64_t depth;
    KilnStepPhase only;

    const KilnPlan *plan;
    KilnCallReport *calls; /* in order of execution */
    size_t n_calls;
    int *group; /* of each call */
    KilnCallGroup *groups;
    size_t n_groups;
    double seconds;    /* of one step, all calls together */
    const char *title; /* set by the caller */
} KilnStepView;

KilnStepPhase kiln_step_phase(const KilnCallReport *call);
/* Mean seconds of one execution. */
double kiln_call_seconds(const KilnCallReport *call);

/* Group a plan's calls: layers that agree in the first `depth` parts of their names form one group.
 * An operation outside of layers belongs to the layer before it, its gradient to that layer's
 * gradients. False: out of memory. The caller releases the view in any case. */
bool kiln_step_view_fill(KilnStepView *view, const KilnPlan *plan);
void kiln_step_view_release(KilnStepView *view);

/* Append a table with one row for each group, or, with depth 0, for each call. */
void kiln_step_table(const KilnStepView *view, KilnPage *page);
/* Append a picture of the step's memory. */
void kiln_step_svg(const KilnStepView *view, KilnText *svg);

#endif

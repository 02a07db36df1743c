/* The planned step as kiln graph shows it: calls in groups of layers. */
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

/* The calls of one layer, or of all below one prefix. */
typedef struct KilnCallGroup {
    char name[KILN_GROUP_NAME];
    double seconds[KILN_STEP_PHASES]; /* of one step */
    int calls[KILN_STEP_PHASES];
} KilnCallGroup;

/* A plan with its calls sorted into groups, in order of first appearance. */
typedef struct KilnStepView {
    const KilnPlan *plan;
    KilnCallReport *calls; /* in order of execution */
    size_t n_calls;
    int *group; /* of each call */
    KilnCallGroup *groups;
    size_t n_groups;
    double seconds; /* of one step, all calls together */
    const char *title;
} KilnStepView;

KilnStepPhase kiln_step_phase(const KilnCallReport *call);
/* Seconds of one run. */
double kiln_call_seconds(const KilnCallReport *call);

/* Look at a plan; layers are put together that agree in their first `depth` parts (0:
 * all parts). Operations outside of layers go with the layer that they follow, and
 * their gradients with that layer's. False: memory is out. */
bool kiln_step_view(const KilnPlan *plan, int depth, KilnStepView *ret);
void kiln_step_view_release(KilnStepView *view);

/* A table of every call, of one phase or all (KILN_STEP_PHASES). */
void kiln_step_table(const KilnStepView *view, KilnStepPhase only, KilnPage *page);
/* One line for each group. */
void kiln_step_groups_table(const KilnStepView *view, KilnStepPhase only, KilnPage *page);
/* The picture. */
void kiln_step_svg(const KilnStepView *view, KilnStepPhase only, KilnText *svg);

#endif

/* A plan from outside: made without a run, and call by call for people, in tables,
 * pictures and profiles. */
#ifndef KILN_GRAPH_PLAN_PLAN_REPORT_H
#define KILN_GRAPH_PLAN_PLAN_REPORT_H

#include "graph/graph.h"

/* The plan that kiln_graph_run would follow for what is recorded now: an earlier one
 * or a new one. Leaves need no data. It belongs to the graph. */
KILN_NODISCARD KilnStatus kiln_graph_plan(KilnGraph *graph, KilnTensor *const *outputs, size_t n,
                                          KilnPlan **ret, KilnError *err);

enum { KILN_CALL_TEXT = 120 };

/* One call of a plan. Pointers are the plan's. */
typedef struct KilnCallReport {
    const char *layer;       /* "": none */
    const char *name;        /* of the operation; "reorder": a change of layout */
    char op[KILN_CALL_TEXT]; /* with what was joined to it: "conv2d + add + relu" */
    bool backward;           /* computes gradients, or comes after them */
    bool update;             /* writes variables, as the optimizer does */
    KilnDType dtype;         /* of its first output; of what an update writes */
    KilnShape shape;
    bool blocked;              /* it lies in an order of the backend's own */
    double flops;              /* as KilnOp's */
    double seconds;            /* in all timed runs together */
    int64_t runs;              /* of those */
    int from[KILN_MAX_INPUTS]; /* the calls that made its inputs; -1: leaves, absent */
    int n_from;
    /* Where the output lies, and the calls during which something does there. In
     * place: that is its input's memory. Not in the block: offset and calls are 0. */
    bool in_block, in_place;
    size_t bytes, offset, workspace;
    int first, last;
} KilnCallReport;

/* All calls in order of execution; owned by the caller (free). NULL: memory is out. */
KilnCallReport *kiln_plan_report(const KilnPlan *plan);

/* The next of the graph's plans; NULL: none. graph->plans is the first. */
const KilnPlan *kiln_plan_next(const KilnPlan *plan);
size_t kiln_plan_calls(const KilnPlan *plan);
/* Bytes of its block. */
size_t kiln_plan_bytes(const KilnPlan *plan);
/* Does it compute gradients? */
bool kiln_plan_trains(const KilnPlan *plan);
/* A part of the block, and the calls during which it is in use: values that lie over
 * each other are one piece, and so is scratch. */
typedef struct KilnPiece {
    size_t offset, bytes;
    int first, last;
} KilnPiece;

/* Fills at most `capacity` pieces (`ret` may be NULL when it is 0) and returns how
 * many there are. */
size_t kiln_plan_pieces(const KilnPlan *plan, KilnPiece *ret, size_t capacity);
/* Memory of the block that is in use during call number `call`. */
size_t kiln_plan_occupied(const KilnPlan *plan, size_t call);
/* FLOPs of the calls that compute gradients, or of the others. */
double kiln_plan_flops(const KilnPlan *plan, bool backward);

#endif

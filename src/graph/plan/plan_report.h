/* A plan described call by call, for tables, diagrams and profiles. */
#ifndef KILN_GRAPH_PLAN_PLAN_REPORT_H
#define KILN_GRAPH_PLAN_PLAN_REPORT_H

#include "graph/graph.h"

enum { KILN_CALL_TEXT = 120 };

/* One call of a plan. The plan owns the pointers. */
typedef struct KilnCallReport {
    const char *layer;       /* "": none */
    const char *name;        /* of the operation; "reorder": a layout conversion */
    char op[KILN_CALL_TEXT]; /* with fused operations: "conv2d + add + relu" */
    bool backward;           /* computes gradients, or comes after them */
    bool update;             /* writes variables, as the optimizer does */
    KilnDType dtype;         /* of its first output, or of the variable that an update writes */
    KilnShape shape;
    bool blocked;   /* its layout is specific to the backend */
    double flops;   /* as KilnOp's */
    double seconds; /* total of all timed runs */
    int64_t runs;   /* of those */
    /* Memory of the output, and the calls during which it is in use. In place: it shares its
     * input's memory. Not in the block: offset and calls are 0. */
    bool in_block, in_place;
    size_t bytes, offset, workspace;
    int first, last;
} KilnCallReport;

/* All calls in order of execution; owned by the caller (free). NULL when out of memory. */
KilnCallReport *kiln_plan_report(const KilnPlan *plan);

/* The next of the graph's plans, or NULL. graph->plans is the first. */
const KilnPlan *kiln_plan_next(const KilnPlan *plan);
size_t kiln_plan_calls(const KilnPlan *plan);
/* Size of its block in bytes. */
size_t kiln_plan_bytes(const KilnPlan *plan);
/* Bytes that it keeps between runs, of what depends on parameters alone; and those of parameters in
 * other layouts, which the graph's plans share. */
size_t kiln_plan_constant_bytes(const KilnPlan *plan);
size_t kiln_plan_converted_bytes(const KilnPlan *plan);
/* Whether it computes gradients. */
bool kiln_plan_trains(const KilnPlan *plan);
/* A part of the block and the calls during which it is in use. Values that share memory are one
 * piece; so is scratch memory. */
typedef struct KilnPiece {
    size_t offset, bytes;
    int first, last;
} KilnPiece;

/* Fills at most `capacity` pieces (`ret` may be NULL if 0) and returns the total. */
size_t kiln_plan_pieces(const KilnPlan *plan, KilnPiece *ret, size_t capacity);
/* Bytes of the block in use during call number `call`. */
size_t kiln_plan_occupied(const KilnPlan *plan, size_t call);
/* FLOPs of the calls that compute gradients, or of the others. */
double kiln_plan_flops(const KilnPlan *plan, bool backward);

#endif

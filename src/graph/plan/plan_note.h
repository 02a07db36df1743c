/* Why a graph plans again and again: what differs between two recorded steps. */
#ifndef KILN_GRAPH_PLAN_PLAN_NOTE_H
#define KILN_GRAPH_PLAN_PLAN_NOTE_H

#include "graph/graph.h"

enum {
    KILN_NOTE_PLANS = 16,  /* plans after which a changing attribute is worth a note */
    KILN_NOTE_SHAPES = 64, /* and shapes of inputs, of which ordinary lengths make some */
};

/* To be called when a plan was made: compares the recorded step with the one planned before, and
 * notes once how they differ, if they record the same operations. */
void kiln_plan_note(KilnGraph *graph);
/* The note, for a warning, the first time that it is taken; else NULL. Borrowed from the graph. */
const char *kiln_plan_note_take(KilnGraph *graph);

#endif

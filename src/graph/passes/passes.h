/* Passes: what changes the step between recording and planning. They work on a
 * copy of the recorded nodes; the recording itself stays as it was written. */
#ifndef KILN_GRAPH_PASSES_H
#define KILN_GRAPH_PASSES_H

#include "graph/backend.h"
#include "graph/graph.h"

/* The step while it is rewritten. Nodes are in order of execution. A pass may
 * change nodes (their inputs, outputs, attributes, epilogue), put others into
 * their place and set nodes[i] to NULL; it must not change tensors. */
typedef struct KilnRewrite {
    KilnGraph *graph;
    KilnArena *arena; /* for what passes make; lives until the plan is made */
    KilnNode **nodes;
    size_t n_nodes;
    KilnTensor **tensors; /* the step's, then those that passes made; by id */
    size_t n_tensors, cap_tensors;
    bool has_bf16_variables;              /* among them are variables of bf16 */
    bool layouts, in_place, share_memory; /* what planning may do; see planning.h */
    bool *kept;                           /* per tensor: its bytes are read after the run */
    KilnNode **made; /* per tensor: the node that makes it, NULL for leaves; see _index */
    int *reads;      /* per tensor: inputs that read it; see _index */
} KilnRewrite;

typedef struct KilnPass {
    const char *name;    /* as `trainer.passes_off` says it */
    const char *summary; /* for help */
    KilnStatus (*run)(KilnRewrite *rewrite, KilnError *err);
    bool joins; /* makes one node of several, or one place of two: left out where every
                   result is looked at */
} KilnPass;

/* In the order in which they run. */
extern const KilnPass kiln_passes[];
extern const size_t kiln_passes_count;

/* Copy the recorded step and run every pass that is not off. `outputs` are
 * read after the run. The arena and what `ret` points to stay the caller's. */
KILN_NODISCARD KilnStatus kiln_rewrite_step(KilnGraph *graph, KilnTensor *const *outputs, size_t n,
                                            KilnArena *arena, KilnRewrite *ret, KilnError *err);

/* ---- For passes ------------------------------------------------------------------- */

/* Bring `made`, `reads` and the nodes' indices up to date, and close the gaps
 * that NULL nodes left. Called before every pass. */
void kiln_rewrite_index(KilnRewrite *rewrite);
/* A tensor that no recording knows; NULL when memory is out. */
KilnTensor *kiln_rewrite_tensor(KilnRewrite *rewrite, KilnDType dtype, const KilnShape *shape);
/* A node of `op` that makes `outputs`, not yet in the list; attrs are copied.
 * NULL when memory is out. */
KilnNode *kiln_rewrite_node(KilnRewrite *rewrite, const KilnOp *op, KilnTensor *const *inputs,
                            int n_inputs, KilnTensor *const *outputs, int n_outputs,
                            const void *attrs, const char *layer);
/* Put a list of nodes before nodes[at]. */
KILN_NODISCARD KilnStatus kiln_rewrite_insert(KilnRewrite *rewrite, size_t at,
                                              KilnNode *const *nodes, size_t n, KilnError *err);
/* Whether the value must exist in memory under its own name: read after the run,
 * or with a place of its own. */
bool kiln_rewrite_visible(const KilnRewrite *rewrite, const KilnTensor *tensor);
/* Whether some node between nodes[from] and nodes[to] (both excluded) writes the
 * bytes of `tensor`, so that a read must not move across it. */
bool kiln_rewrite_written(const KilnRewrite *rewrite, const KilnTensor *tensor, size_t from,
                          size_t to);
/* Whether writing variable `updated` changes what `variable` reads: they are one
 * leaf or two over the same bytes (a parameter, and the flat buffer it lies in). */
bool kiln_overlaps(const KilnTensor *updated, const KilnTensor *variable);

#endif

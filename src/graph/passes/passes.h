/* Passes rewrite the step between recording and planning. They work on a copy of the recorded
 * nodes; the recording stays unchanged. */
#ifndef KILN_GRAPH_PASSES_H
#define KILN_GRAPH_PASSES_H

#include "graph/backend.h"
#include "graph/graph.h"
#include "graph/passes/pass_list.h"

/* The step being rewritten, with nodes in order of execution. A pass may change nodes (inputs,
 * outputs, attributes, epilogue), replace them, and set nodes[i] to NULL; it must not change
 * tensors. */
typedef struct KilnRewrite {
    KilnGraph *graph;
    KilnArena *arena; /* for new nodes and tensors; lives until the plan is made */
    KilnNode **nodes;
    size_t n_nodes;
    KilnTensor **tensors; /* the step's, then those that passes added; by id */
    size_t n_tensors, cap_tensors;
    bool has_bf16_variables; /* some variables are bf16 */
    /* What planning may do; see passes/planning.c. */
    bool layouts, constants, in_place, share_memory;
    bool *kept;      /* per tensor: its bytes are read after the run */
    KilnNode **made; /* per tensor: its producer, NULL for leaves; see kiln_rewrite_index */
    int *reads;      /* per tensor: inputs that read it; see kiln_rewrite_index */
} KilnRewrite;

typedef struct KilnPass {
    const char *name;    /* as in `trainer.passes_off` */
    const char *summary; /* for help */
    KilnStatus (*run)(KilnRewrite *rewrite, KilnError *err);
    bool merges; /* merges nodes or memory: off in anomaly detection, which needs every result */
} KilnPass;

/* In order of execution. */
extern const KilnPass kiln_passes[];
extern const size_t kiln_passes_count;

#define KILN_PASS_DECLARE(name, merges, summary)                                                   \
    KILN_NODISCARD KilnStatus kiln_pass_##name(KilnRewrite *rewrite, KilnError *err);
KILN_PASS_TABLE(KILN_PASS_DECLARE)
#undef KILN_PASS_DECLARE

/* Copies the recorded step and runs every pass that is not off. `outputs` are read after the run.
 * The caller owns the arena and everything in `ret`. */
KILN_NODISCARD KilnStatus kiln_rewrite_step(KilnGraph *graph, KilnTensor *const *outputs, size_t n,
                                            KilnArena *arena, KilnRewrite *ret, KilnError *err);

/* ---- For passes ------------------------------------------------------------------- */

/* Updates `made`, `reads` and the nodes' indices, and removes NULL nodes. Runs before every pass.
 */
void kiln_rewrite_index(KilnRewrite *rewrite);
/* A new tensor that is not in the recording; NULL when out of memory. */
KilnTensor *kiln_rewrite_tensor(KilnRewrite *rewrite, KilnDType dtype, const KilnShape *shape);
/* A node of `op` that produces `outputs`, not yet in the list; attrs are copied. NULL when out of
 * memory. */
KilnNode *kiln_rewrite_node(KilnRewrite *rewrite, const KilnOp *op, KilnTensor *const *inputs,
                            int n_inputs, KilnTensor *const *outputs, int n_outputs,
                            const void *attrs, const char *layer);
/* Whether the value must exist in memory: it is read after the run or has a destination. */
bool kiln_rewrite_visible(const KilnRewrite *rewrite, const KilnTensor *tensor);
/* Whether a node between nodes[from] and nodes[to] (both excluded) writes the bytes of `tensor`, so
 * that a read must not move across it. */
bool kiln_rewrite_written(const KilnRewrite *rewrite, const KilnTensor *tensor, size_t from,
                          size_t to);
/* Whether writing variable `updated` changes what `variable` reads: they are one leaf, or two over
 * the same bytes (a parameter and the flat buffer that contains it). */
bool kiln_overlaps(const KilnTensor *updated, const KilnTensor *variable);

#endif

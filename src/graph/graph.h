/* The recorded step: nodes, tensors, and the graph that owns them. Recording is
 * an arena of nodes in program order, which is also the order of execution:
 * an operation that updates a variable comes after everything recorded before
 * it that reads the variable, and before everything after. */
#ifndef KILN_GRAPH_GRAPH_H
#define KILN_GRAPH_GRAPH_H

#include <xxhash.h>

#include "base/arena.h"
#include "kiln/ops.h"

#define KILN_MAX_INPUTS 12
#define KILN_MAX_OUTPUTS 8

typedef struct KilnOp KilnOp;
typedef struct KilnNode KilnNode;
typedef struct KilnPlan KilnPlan;
typedef struct KilnMap KilnMap;

struct KilnTensor {
    KilnGraph *graph;
    KilnNode *node; /* that makes it; NULL: a leaf */
    int output;     /* which of the node's outputs */
    int id;         /* index among the step's tensors */
    KilnDType dtype;
    bool poisoned;
    bool wants_grad;  /* a variable that wants one, or depends on one */
    bool variable;    /* a leaf that operations may update */
    bool stored_bf16; /* its bytes, or those at its place, are bf16; operations take it as f32 */
    KilnShape shape;
    int64_t classes;  /* of i32 labels: 0 to classes - 1; 0: not known */
    void *data;       /* leaf: the caller's bytes; else set after a run that asked for it */
    void *dest;       /* not NULL: the value must be written here (a gradient's place) */
    void *grad_dest;  /* variables: where the gradient goes, or NULL */
    KilnTensor *grad; /* set by kiln_graph_backward */
};

struct KilnNode {
    const KilnOp *op;
    int index; /* in recording order */
    int n_inputs, n_outputs;
    KilnTensor *inputs[KILN_MAX_INPUTS]; /* NULL: an optional input that is absent */
    KilnTensor *outputs[KILN_MAX_OUTPUTS];
    void *attrs; /* op->attrs_size bytes; padding is zero */
    /* Made by fusion only: a map that the kernel runs on what it computed.
     * Register 0 is output 0 as the operation alone would give it, registers 1...
     * are the inputs after the operation's own. Result 0 of the map takes output
     * 0's place; more results are outputs after the operation's own. NULL: none. */
    const KilnMap *epilogue;
    const char *layer; /* borrowed for the step */
    int block;         /* of the forward pass that is recomputed (recompute.h); 0: none */
    int segment;       /* the second recording of that block; 0: all else */
};

/* Bytes, one thing behind the other: hashed at once, which is far quicker than piece by piece. */
typedef struct KilnPlanKey {
    unsigned char *bytes; /* grow-only, kept between steps */
    size_t n, capacity;
    bool failed; /* memory was out */
} KilnPlanKey;

void kiln_plan_key_add(KilnPlanKey *plan_key, const void *bytes, size_t n);

struct KilnGraph {
    KilnBackend *backend;
    KilnArena arena;  /* nodes and tensors of this step */
    KilnNode **nodes; /* grow-only arrays, kept between steps */
    size_t n_nodes, cap_nodes;
    KilnTensor **tensors;
    size_t n_tensors, cap_tensors;
    KilnPlanKey plan_key; /* everything recorded that decides the plan */
    KilnError error;      /* first error of recording */
    KilnTensor *poison;   /* what failed operations return */
    const char *layer;
    KilnDType float_type; /* f32; f64 on a reference backend made for it */
    bool backward;        /* gradients of this step are recorded */
    bool accumulates;     /* gradients are added to what their places hold */
    size_t n_forward;     /* nodes before the gradients, when `backward` */
    KilnPlan *plans;      /* linked list, last used first */
    size_t n_plans;       /* made so far */
    void *block;          /* activations and workspace, as large as the largest plan needs */
    size_t block_size;
    bool profile;
    KilnPrecision precision;
    const char *const *recompute; /* patterns of layers' paths: blocks to recompute; borrowed */
    size_t n_recompute;
    int block_now, n_blocks, segment; /* of the nodes that are recorded now */
    bool detect_anomaly;              /* look at every result; stop at the first NaN or infinity */
    unsigned passes_off;              /* bit i: pass i of kiln_passes is left out */
};

/* Record `op` with its inputs and attributes: infers output shapes, appends to
 * the hash, and returns output 0 (poisoned when something does not fit). Other
 * outputs are node->outputs[i] of the returned tensor's node. */
KilnTensor *kiln_graph_record(KilnGraph *graph, const KilnOp *op, KilnTensor *const *inputs,
                              int n_inputs, const void *attrs);
/* Remember the first error and return the poisoned tensor. */
KilnTensor *kiln_graph_poison(KilnGraph *graph, const char *format, ...) KILN_PRINTF(2, 3);

#endif

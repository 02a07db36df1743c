/* The recorded step: nodes, tensors, and the graph that owns them. Nodes are recorded in program
 * order, which is also the order of execution: an operation that updates a variable runs after
 * everything recorded before it that reads the variable, and before everything after it. */
#ifndef KILN_GRAPH_GRAPH_H
#define KILN_GRAPH_GRAPH_H

#include <xxhash.h>

#include "base/arena.h"
#include "graph/buffer.h"
#include "kiln/ops.h"

#define KILN_MAX_INPUTS 12
#define KILN_MAX_OUTPUTS 8

typedef struct KilnOp KilnOp;
typedef struct KilnNode KilnNode;
typedef struct KilnPlan KilnPlan;
typedef struct KilnMap KilnMap;
typedef struct KilnCustomOp KilnCustomOp; /* kiln/custom_op.h */

struct KilnTensor {
    KilnGraph *graph;
    KilnNode *node; /* the producer; NULL: a leaf */
    int output;     /* index among the node's outputs */
    int id;         /* index among the step's tensors */
    KilnDType dtype;
    bool poisoned;
    bool wants_grad;  /* a variable that needs a gradient, or depends on one */
    bool variable;    /* a leaf that operations may update */
    bool stored_bf16; /* stored as bf16; operations see it as f32 */
    KilnShape shape;
    int64_t classes;   /* i32 labels are 0 to classes - 1; 0: unknown */
    const void *data;  /* host bytes: of a leaf there, or of a result that the last run gave */
    KilnLocation at;   /* leaf: its bytes */
    KilnLocation dest; /* a location: write the value there (a gradient into its flat buffer) */
    KilnLocation grad_dest; /* variables: destination of the gradient */
    KilnTensor *grad;       /* set by kiln_graph_backward */
};

struct KilnNode {
    const KilnOp *op;
    int index; /* in recording order */
    int n_inputs, n_outputs;
    KilnTensor *inputs[KILN_MAX_INPUTS]; /* NULL: an absent optional input */
    KilnTensor *outputs[KILN_MAX_OUTPUTS];
    void *attrs; /* op->attrs_size bytes; padding is zero */
    /* Set by fusion only: a map that the kernel runs on its result. Register 0 is output 0 as the
     * operation alone would give it; registers 1... are the inputs after the operation's own.
     * Result 0 of the map replaces output 0; more results are outputs after the operation's own.
     * NULL: none. */
    const KilnMap *epilogue;
    const char *layer; /* borrowed for the step */
    int block;         /* block of the forward pass to recompute (recompute.h); 0: none */
    int segment;       /* second recording of that block; 0: everything else */
};

/* The bytes that identify a plan, appended one after the other and hashed in one go, which is much
 * faster than piece by piece. */
typedef struct KilnPlanKey {
    unsigned char *bytes; /* grow-only, kept between steps */
    size_t n, capacity;
    bool failed; /* out of memory */
} KilnPlanKey;

/* How much the graph's plans take, and how often it planned. */
typedef struct KilnPlanCache {
    size_t limit;   /* bytes of all plans */
    size_t bytes;   /* held now */
    size_t kept;    /* plans held now */
    size_t made;    /* so far, with those dropped since */
    double seconds; /* of planning so far */
    /* For plan_note.h: the plan key of the last step that was planned, and why it differed. */
    unsigned char *last_key;
    size_t last_n;
    char note[320];
    bool note_taken;
} KilnPlanCache;

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
    struct KilnLookupFactors *lookup_factors; /* of this step (lookup_factors.h); NULL: none */
    KilnDType float_type;                     /* the backend's: f32 or f64 */
    bool backward;                            /* this step computes gradients */
    bool accumulates; /* gradients are added to what their destinations hold */
    size_t n_forward; /* nodes before the gradients, if `backward` */
    KilnPlan *plans;  /* linked list, most recently used first */
    KilnPlanCache plan_cache;
    struct KilnConverted *converted; /* parameters in other layouts; plan/converted.h */
    KilnBuffer *block;               /* activations and workspace, sized for the largest plan */
    KilnBuffer *uploads; /* copies of inputs in the host's memory, for a backend that needs them */
    char *results;       /* copies of results for the host, where it needs them */
    size_t results_size;
    bool profile;
    KilnPrecision precision;
    const char *const *recompute; /* patterns of layer paths to recompute; borrowed */
    size_t n_recompute;
    int block_now, n_blocks, segment; /* of the nodes being recorded now */
    bool detect_anomaly;              /* check every result; stop at the first NaN or infinity */
    unsigned passes_off;              /* bit i: pass i of kiln_passes does not run */
    KilnOp **custom_ops;              /* made for operations of components */
    size_t n_custom_ops, cap_custom_ops;
};

/* Records `op` with its inputs and attributes: infers output shapes, extends the plan key, and
 * returns output 0 (poisoned when something does not fit). Other outputs are node->outputs[i] of
 * the returned tensor's node. */
KilnTensor *kiln_graph_record(KilnGraph *graph, const KilnOp *op, KilnTensor *const *inputs,
                              int n_inputs, const void *attrs);
/* Like kiln_graph_variable, over bytes in a buffer or in the host's memory. */
KilnTensor *kiln_graph_variable_at(KilnGraph *graph, KilnDType dtype, KilnShape shape,
                                   KilnLocation at, bool wants_grad, KilnLocation grad);
/* Whether the value is written to a location of its own. */
static inline bool kiln_tensor_has_dest(const KilnTensor *tensor)
{
    return tensor->dest.buffer != NULL || tensor->dest.host != NULL;
}
/* Bytes of a tensor as it is stored, in plain order. */
size_t kiln_tensor_bytes(const KilnTensor *tensor);
/* Keeps the first error and returns the poisoned tensor. */
KilnTensor *kiln_graph_poison(KilnGraph *graph, const char *format, ...) KILN_PRINTF(2, 3);
/* The same when memory is out. */
KilnTensor *kiln_graph_poison_nomem(KilnGraph *graph, size_t bytes);

#endif

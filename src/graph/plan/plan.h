/* A plan: the calls that compute one structure of step, and where every value
 * lies. Made once, run every step of that structure. */
#ifndef KILN_GRAPH_PLAN_PLAN_H
#define KILN_GRAPH_PLAN_PLAN_H

#include "graph/backend.h"
#include "graph/graph.h"

/* Memory that one or more values share in turn. */
typedef enum KilnStorageKind {
    KILN_STORAGE_BLOCK, /* part of the graph's block */
    KILN_STORAGE_LEAF,  /* a leaf's own bytes */
    KILN_STORAGE_DEST   /* where a tensor must be written */
} KilnStorageKind;

typedef struct KilnStorage {
    KilnStorageKind kind;
    int tensor; /* leaf and place: id of the tensor that knows the bytes */
    size_t bytes;
    size_t offset;   /* block: from its start */
    int first, last; /* block: calls between which it is in use */
    int merged;      /* index of the storage that it lies over; its own index: none */
    bool kept;       /* holds a result that is read after the run */
} KilnStorage;

/* A call, and which storages its arguments use (-1: absent). */
typedef struct KilnPlanCall {
    KilnCall call;
    const KilnKernel *kernel;
    int inputs[KILN_MAX_INPUTS], outputs[KILN_MAX_OUTPUTS], workspace;
    bool prepared;
    const char *layer, *name; /* for messages and the profile; the plan's own */
    bool backward;            /* computes gradients, or comes after them */
    double flops;             /* as KilnOp's */
    double seconds;           /* spent in runs with profile on */
    int64_t runs;             /* of those */
    struct KilnPlanCall *next_made;
} KilnPlanCall;

struct KilnPlan {
    KilnPlan *next;
    XXH128_hash_t key;
    KilnArena arena;      /* calls, attributes, names */
    KilnPlanCall *made;   /* all calls, to be released */
    KilnPlanCall **calls; /* in order of execution */
    size_t n_calls, cap_calls;
    KilnStorage *storages;
    size_t n_storages, cap_storages;
    void **pointers; /* of the storages, bound before each run */
    int *outputs;    /* storage of each requested output; -1: a leaf */
    size_t block_size;
    bool backward; /* of the calls that are pushed now; in the end: gradients are computed */
};

/* Plan the recorded step so that `outputs` can be read after a run. */
KILN_NODISCARD KilnStatus kiln_plan_new(KilnGraph *graph, KilnTensor *const *outputs, size_t n,
                                        KilnPlan **ret, KilnError *err);
/* Frees the whole list; accepts NULL. */
void kiln_plans_free(KilnPlan *plans);

/* ---- Parts, for planning itself ------------------------------------------------ */

/* Index of a new storage; -1, and err filled, when memory is out. */
KILN_NODISCARD int kiln_plan_storage_new(KilnPlan *plan, KilnStorageKind kind, int tensor,
                                         size_t bytes, KilnError *err);
/* A call of `kernel` without arguments; it belongs to the plan but is not run
 * before it is pushed. NULL, and err filled, when memory is out. */
KilnPlanCall *kiln_plan_call_new(KilnPlan *plan, KilnBackend *backend, const KilnKernel *kernel,
                                 const char *layer, const char *name, KilnError *err);
/* Let the kernel prepare, and check that it kept to the contract. */
KILN_NODISCARD KilnStatus kiln_plan_call_prepare(KilnPlanCall *made, KilnError *err);
/* Let the kernel free what it prepared. */
void kiln_plan_call_release(KilnPlanCall *made);
/* The next call to run. */
KILN_NODISCARD KilnStatus kiln_plan_call_push(KilnPlan *plan, KilnPlanCall *made, KilnError *err);

/* Second half of planning: values lie over each other where a kernel can work
 * in place (if they may), and every storage gets its offset in the block; those that
 * are not in use at the same time share it (if they may). */
KILN_NODISCARD KilnStatus kiln_plan_memory(KilnPlan *plan, bool in_place, bool share,
                                           KilnError *err);
/* The storage that really holds what `storage` is about. */
int kiln_plan_storage(const KilnPlan *plan, int storage);

#endif

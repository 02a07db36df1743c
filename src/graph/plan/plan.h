/* A plan: the calls that compute one structure of step, and the memory of every value. Made once,
 * then run in every step of that structure. */
#ifndef KILN_GRAPH_PLAN_PLAN_H
#define KILN_GRAPH_PLAN_PLAN_H

#include "graph/backend.h"
#include "graph/graph.h"

/* Memory that one or more values use, one after the other. */
typedef enum KilnStorageKind {
    KILN_STORAGE_BLOCK,    /* part of the graph's block */
    KILN_STORAGE_LEAF,     /* a leaf's own bytes */
    KILN_STORAGE_DEST,     /* a tensor's destination */
    KILN_STORAGE_CONSTANT, /* part of the plan's constants */
    KILN_STORAGE_CONVERTED /* a parameter in another layout, which the graph's plans share */
} KilnStorageKind;

typedef struct KilnStorage {
    KilnStorageKind kind;
    int tensor; /* leaf and destination: id of the tensor that has the address; converted: of the
                 * parameter */
    KilnLayout layout;               /* converted */
    struct KilnConverted *converted; /* the same; set before a run */
    size_t bytes;
    size_t offset;   /* block, constants: from their start */
    int first, last; /* block: first and last call that use it */
    int merged;      /* the storage that this one shares; its own index: none */
    bool kept;       /* holds a result that is read after the run */
    bool written;    /* leaf: a call updates it */
} KilnStorage;

/* A call, and the storages of its arguments (-1: absent). */
typedef struct KilnPlanCall {
    KilnCall call;
    const KilnKernel *kernel;
    int inputs[KILN_MAX_INPUTS], outputs[KILN_MAX_OUTPUTS], workspace;
    bool prepared;
    bool constant;            /* depends on parameters alone */
    bool current;             /* constant: needs no run, as its parameters stayed the same */
    const char *layer, *name; /* for messages and the profile; owned by the plan */
    bool backward;            /* computes gradients, or comes after them */
    double flops;             /* as KilnOp's */
    double seconds;           /* total time of runs with profile on */
    int64_t runs;             /* of those */
    struct KilnPlanCall *next_made;
} KilnPlanCall;

struct KilnPlan {
    KilnPlan *next;
    XXH128_hash_t key;
    size_t bytes;         /* of memory that it holds, for the plan cache */
    KilnArena arena;      /* calls, attributes, names */
    KilnPlanCall *made;   /* all calls, for release */
    KilnPlanCall **calls; /* in order of execution: constants first */
    size_t n_calls, cap_calls;
    size_t n_constants;    /* calls that compute constants */
    size_t constants_size; /* bytes of what the other calls read of them */
    KilnBuffer *constants; /* allocated by the first run */
    size_t converted_size; /* bytes of the parameters in other layouts */
    uint64_t stamp;        /* identifies the parameters that they were computed from; 0: none */
    KilnStorage *storages;
    size_t n_storages, cap_storages;
    void **pointers; /* of the storages, set before each run */
    int *outputs;    /* storage of each requested output; -1: a leaf */
    size_t block_size;
    bool backward; /* the calls pushed now compute gradients; when done: the plan computes gradients
                    */
    bool constant; /* the calls pushed now compute constants */
};

/* Plans the recorded step so that `outputs` can be read after a run. */
KILN_NODISCARD KilnStatus kiln_plan_new(KilnGraph *graph, KilnTensor *const *outputs, size_t n,
                                        KilnPlan **ret, KilnError *err);
/* Frees the whole list; accepts NULL. */
void kiln_plans_free(KilnPlan *plans);

/* ---- Internal to planning ------------------------------------------------------- */

/* Index of a new storage; -1, with err set, when out of memory. */
KILN_NODISCARD int kiln_plan_storage_new(KilnPlan *plan, KilnStorageKind kind, int tensor,
                                         size_t bytes, KilnError *err);
/* A call of `kernel` without arguments. The plan owns it, but runs it only after it is pushed.
 * NULL, with err set, when out of memory. */
KilnPlanCall *kiln_plan_call_new(KilnPlan *plan, KilnBackend *backend, const KilnKernel *kernel,
                                 const char *layer, const char *name, KilnError *err);
/* Runs the kernel's prepare and checks that it kept the contract. */
KILN_NODISCARD KilnStatus kiln_plan_call_prepare(KilnPlanCall *made, KilnError *err);
/* Runs the kernel's release. */
void kiln_plan_call_release(KilnPlanCall *made);
/* Appends the call that runs next. */
KILN_NODISCARD KilnStatus kiln_plan_call_push(KilnPlan *plan, KilnPlanCall *made, KilnError *err);

/* Second half of planning: outputs share their inputs' memory where kernels work in place (if
 * `in_place`), and every storage gets an offset in the block. Storages with disjoint lifetimes
 * share memory (if `share`). */
KILN_NODISCARD KilnStatus kiln_plan_memory(KilnPlan *plan, bool in_place, bool share,
                                           KilnError *err);
/* What a call of constants converts for all plans of the graph; NULL: nothing. */
static inline struct KilnConverted *kiln_plan_converts(const KilnPlan *plan,
                                                       const KilnPlanCall *made)
{
    return made->call.n_outputs > 0 ? plan->storages[made->outputs[0]].converted : NULL;
}
/* The storage that holds the bytes of `storage`. */
int kiln_plan_storage(const KilnPlan *plan, int storage);

#endif

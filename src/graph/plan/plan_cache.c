/* Looks plans up by the hash of the recorded step, makes and evicts them. */
#include "graph/plan/plan_cache.h"

#include "graph/op.h"
#include "graph/plan/overlap.h"
#include "graph/plan/plan_note.h"
#include "kiln/tools/clock.h"

/* Completes the plan key: the recorded structure, the requested outputs, the destinations, and
 * which bytes overlap. */
static KilnStatus plan_key(KilnGraph *graph, KilnTensor *const *outputs, size_t n,
                           XXH128_hash_t *ret, KilnError *err)
{
    KilnPlanKey *plan_key = &graph->plan_key;
    const size_t recorded = plan_key->n;

    kiln_plan_key_add(plan_key, &recorded, sizeof(recorded));
    for (size_t i = 0; i < n; i++)
        kiln_plan_key_add(plan_key, &outputs[i]->id, sizeof(int));
    kiln_plan_key_add(plan_key, &graph->passes_off, sizeof(graph->passes_off));
    kiln_plan_key_add(plan_key, &graph->precision, sizeof(graph->precision));
    kiln_plan_key_add(plan_key, &graph->detect_anomaly, sizeof(graph->detect_anomaly));
    for (size_t i = 0; i < graph->n_tensors; i++) {
        if (kiln_tensor_has_dest(graph->tensors[i]))
            kiln_plan_key_add(plan_key, &graph->tensors[i]->id, sizeof(int));
    }
    plan_key->failed |= !kiln_overlap_add_to_key(graph);
    *ret = XXH3_128bits(plan_key->bytes, plan_key->n);
    plan_key->n = recorded; /* the same step may run again with different outputs */
    return plan_key->failed ? kiln_error_nomem(err, plan_key->n) : KILN_OK;
}

/* Removes the plan with that key from the list and returns it; NULL if there is none. */
static KilnPlan *take_plan(KilnGraph *graph, XXH128_hash_t key)
{
    for (KilnPlan **link = &graph->plans; *link != NULL; link = &(*link)->next) {
        KilnPlan *plan = *link;

        if (XXH128_isEqual(plan->key, key)) {
            *link = plan->next;
            return plan;
        }
    }
    return NULL;
}

/* A plan's own memory with its constants, and an estimate of what its kernels hold; the block is
 * the graph's. */
static size_t plan_size(const KilnPlan *plan)
{
    enum { KERNEL_STATE = 8192 }; /* a oneDNN primitive with its memory objects, a bound map */
    size_t bytes = sizeof(*plan) + kiln_arena_bytes(&plan->arena) + plan->constants_size +
                   plan->cap_calls * sizeof(*plan->calls) +
                   plan->cap_storages * (sizeof(*plan->storages) + sizeof(*plan->pointers));

    for (size_t i = 0; i < plan->n_calls; i++)
        bytes += (plan->calls[i]->call.priv != NULL) * (size_t)KERNEL_STATE +
                 (plan->calls[i]->call.epilogue_priv != NULL) * (size_t)KERNEL_STATE;
    return bytes;
}

static void evict_oldest(KilnGraph *graph)
{
    KilnPlanCache *cache = &graph->plan_cache;
    KilnPlan *plan = graph->plans;
    size_t bytes = plan->bytes;

    while (plan->next != NULL && bytes + plan->next->bytes <= cache->limit) {
        plan = plan->next;
        bytes += plan->bytes;
    }
    for (const KilnPlan *old = plan->next; old != NULL; old = old->next) {
        cache->kept--;
        cache->bytes -= old->bytes;
    }
    kiln_plans_free(plan->next);
    plan->next = NULL;
}

static KilnStatus make_plan(KilnGraph *graph, KilnTensor *const *outputs, size_t n, KilnPlan **ret,
                            KilnError *err)
{
    KilnPlanCache *cache = &graph->plan_cache;
    const double start = kiln_clock();
    KilnStatus status = kiln_plan_new(graph, outputs, n, ret, err);

    if (status < 0)
        return status;
    (*ret)->bytes = plan_size(*ret);
    cache->seconds += kiln_clock() - start;
    cache->bytes += (*ret)->bytes;
    cache->made++;
    cache->kept++;
    kiln_plan_note(graph);
    return KILN_OK;
}

KilnStatus kiln_plan_cache_get(KilnGraph *graph, KilnTensor *const *outputs, size_t n,
                               KilnError *err)
{
    XXH128_hash_t key;
    KilnStatus status = plan_key(graph, outputs, n, &key, err);

    if (status < 0)
        return status;
    KilnPlan *plan = take_plan(graph, key);
    if (plan == NULL) {
        status = make_plan(graph, outputs, n, &plan, err);
        if (status < 0)
            return status;
        plan->key = key;
    }
    plan->next = graph->plans;
    graph->plans = plan;
    if (graph->plan_cache.bytes > graph->plan_cache.limit && !graph->profile)
        evict_oldest(graph);
    return KILN_OK;
}

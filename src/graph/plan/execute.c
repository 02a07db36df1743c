/* Execution: finds or makes the plan of the recorded step, binds every call's arguments to memory,
 * and runs. Allocates only when a plan is new. */
#include "base/system/file.h"
#include "base/system/zeros.h"
#include "graph/plan/anomaly.h"
#include "graph/op.h"
#include "graph/plan/overlap.h"
#include "graph/plan/plan.h"
#include "graph/plan/profile.h"
#include "graph/plan/plan_report.h"

/* Limit of stored plans, for programs that never repeat a structure. */
enum { MAX_PLANS = 64 };

/* ---- The plan ------------------------------------------------------------------ */

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
        if (graph->tensors[i]->dest != NULL)
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

static void drop_oldest_plans(KilnGraph *graph)
{
    KilnPlan *plan = graph->plans;

    for (int i = 1; plan != NULL && i < MAX_PLANS; i++)
        plan = plan->next;
    if (plan != NULL) {
        kiln_plans_free(plan->next);
        plan->next = NULL;
    }
}

/* The plan to run, moved to the front of the list. */
static KilnStatus get_plan(KilnGraph *graph, KilnTensor *const *outputs, size_t n, KilnError *err)
{
    XXH128_hash_t key;
    KilnStatus status = plan_key(graph, outputs, n, &key, err);

    if (status < 0)
        return status;
    KilnPlan *plan = take_plan(graph, key);
    if (plan == NULL) {
        status = kiln_plan_new(graph, outputs, n, &plan, err);
        if (status < 0)
            return status;
        plan->key = key;
        graph->n_plans++;
    }
    plan->next = graph->plans;
    graph->plans = plan;
    drop_oldest_plans(graph);
    return KILN_OK;
}

/* ---- Memory -------------------------------------------------------------------- */

static KilnStatus ensure_block(KilnGraph *graph, size_t size, KilnError *err)
{
    if (size <= graph->block_size)
        return KILN_OK;
    /* Free the old block first: both together might not fit. */
    kiln_zeros_free(graph->block);
    graph->block_size = 0;
    graph->block = kiln_zeros(size);
    if (graph->block == NULL)
        return kiln_error_set(err, KILN_E_NOMEM,
                              "out of memory: the step needs %zu MiB for activations; "
                              "try a smaller batch",
                              size >> 20);
    graph->block_size = size;
    return KILN_OK;
}

static KilnStatus bind_storages(const KilnGraph *graph, KilnPlan *plan, KilnError *err)
{
    for (size_t i = 0; i < plan->n_storages; i++) {
        const KilnStorage *storage = &plan->storages[kiln_plan_storage(plan, (int)i)];
        char text[KILN_SHAPE_TEXT];

        if (storage->kind == KILN_STORAGE_BLOCK) {
            plan->pointers[i] = (char *)graph->block + storage->offset;
            continue;
        }
        const KilnTensor *tensor = graph->tensors[storage->tensor];
        plan->pointers[i] = storage->kind == KILN_STORAGE_LEAF ? tensor->data : tensor->dest;
        if (plan->pointers[i] == NULL)
            return kiln_error_set(err, KILN_E_MISSING,
                                  "a leaf of shape %s has no data: the step was recorded for its "
                                  "shapes only and cannot run",
                                  kiln_shape_text(&tensor->shape, text, sizeof(text)));
    }
    return KILN_OK;
}

static void bind_calls(const KilnPlan *plan)
{
    for (size_t c = 0; c < plan->n_calls; c++) {
        KilnPlanCall *made = plan->calls[c];

        for (int i = 0; i < made->call.n_inputs; i++) {
            if (made->inputs[i] >= 0)
                made->call.inputs[i].data = plan->pointers[made->inputs[i]];
        }
        for (int i = 0; i < made->call.n_outputs; i++)
            made->call.outputs[i].data = plan->pointers[made->outputs[i]];
        if (made->workspace >= 0)
            made->call.workspace = plan->pointers[made->workspace];
    }
}

/* ---- Running ------------------------------------------------------------------- */

static void run_calls(const KilnPlan *plan)
{
    for (size_t c = 0; c < plan->n_calls; c++)
        plan->calls[c]->kernel->run(&plan->calls[c]->call);
}

static void run_timed(const KilnPlan *plan)
{
    double start = kiln_clock();

    for (size_t c = 0; c < plan->n_calls; c++) {
        KilnPlanCall *made = plan->calls[c];

        made->kernel->run(&made->call);
        double end = kiln_clock();
        made->seconds += end - start;
        made->runs++;
        start = end;
    }
}

static KilnStatus run_checked(const KilnPlan *plan, KilnError *err)
{
    for (size_t c = 0; c < plan->n_calls; c++) {
        plan->calls[c]->kernel->run(&plan->calls[c]->call);
        if (kiln_anomaly_check(plan->calls[c], err) < 0)
            return err->status;
    }
    return KILN_OK;
}

static KilnStatus check_outputs(const KilnGraph *graph, KilnTensor *const *outputs, size_t n,
                                KilnError *err)
{
    KilnStatus status = kiln_graph_check(graph, err);

    if (status < 0)
        return status;
    for (size_t i = 0; i < n; i++) {
        const KilnTensor *output = outputs[i];

        /* The index in the list also detects a tensor of an earlier step. */
        if (output == NULL || output->graph != graph || output->id < 0 ||
            (size_t)output->id >= graph->n_tensors || graph->tensors[output->id] != output)
            return kiln_error_set(err, KILN_E_INTERNAL, "output %zu is not a tensor of this step",
                                  i);
    }
    return KILN_OK;
}

KilnStatus kiln_graph_plan(KilnGraph *graph, KilnTensor *const *outputs, size_t n, KilnPlan **ret,
                           KilnError *err)
{
    KilnStatus status = check_outputs(graph, outputs, n, err);

    if (status >= 0)
        status = get_plan(graph, outputs, n, err);
    if (status >= 0)
        *ret = graph->plans;
    return status;
}

KilnStatus kiln_graph_run(KilnGraph *graph, KilnTensor *const *outputs, size_t n, KilnError *err)
{
    KilnPlan *plan = NULL;
    KilnStatus status = kiln_graph_plan(graph, outputs, n, &plan, err);

    if (status < 0)
        return status;
    /* Results of an earlier run of this step are now overwritten. */
    for (size_t i = 0; i < graph->n_tensors; i++) {
        if (graph->tensors[i]->node != NULL)
            graph->tensors[i]->data = NULL;
    }
    status = ensure_block(graph, plan->block_size, err);
    if (status >= 0)
        status = bind_storages(graph, plan, err);
    if (status < 0)
        return status;
    bind_calls(plan);
    if (graph->detect_anomaly)
        status = run_checked(plan, err);
    else if (graph->profile)
        run_timed(plan);
    else
        run_calls(plan);
    for (size_t i = 0; i < n; i++) {
        if (plan->outputs[i] >= 0)
            outputs[i]->data = plan->pointers[plan->outputs[i]];
    }
    return status;
}

/* ---- Queries -------------------------------------------------------------------- */

size_t kiln_graph_plans(const KilnGraph *graph)
{
    return graph->n_plans;
}

size_t kiln_graph_bytes(const KilnGraph *graph)
{
    return graph->block_size;
}

bool kiln_graph_profile(const KilnGraph *graph, size_t i, KilnProfileRow *ret)
{
    const KilnPlan *plan = graph->plans;

    if (plan == NULL || i >= plan->n_calls)
        return false;
    const KilnPlanCall *made = plan->calls[i];
    *ret = (KilnProfileRow) {
        .layer = made->layer, .op = made->name, .seconds = made->seconds, .runs = made->runs
    };
    return true;
}

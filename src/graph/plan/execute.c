/* Execution: takes the recorded step's plan from the cache, binds every call's arguments to memory,
 * and runs. Allocates only when a plan is new. */
#include "base/system/file.h"
#include "base/system/zeros.h"
#include "graph/plan/anomaly.h"
#include "graph/op.h"
#include "graph/plan/plan.h"
#include "graph/plan/plan_cache.h"
#include "graph/plan/profile.h"
#include "graph/plan/plan_report.h"

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
        status = kiln_plan_cache_get(graph, outputs, n, err);
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
    return graph->plan_cache.made;
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

/* Execution: takes the recorded step's plan from the cache, binds it to memory (binding.c) and runs
 * it. Allocates only when a plan is new. */
#include "graph/plan/execute.h"

#include "graph/plan/anomaly.h"
#include "graph/plan/binding.h"
#include "graph/plan/constants.h"
#include "graph/plan/converted.h"
#include "graph/op.h"
#include "graph/plan/plan.h"
#include "graph/plan/plan_cache.h"
#include "graph/plan/profile.h"
#include "graph/plan/plan_report.h"
#include "kiln/tools/clock.h"

/* ---- Running ------------------------------------------------------------------- */

static void run_calls(const KilnPlan *plan)
{
    for (size_t c = 0; c < plan->n_calls; c++)
        if (!plan->calls[c]->current)
            plan->calls[c]->kernel->run(&plan->calls[c]->call);
}

static void run_timed(const KilnPlan *plan)
{
    double start = kiln_clock();

    for (size_t c = 0; c < plan->n_calls; c++) {
        KilnPlanCall *made = plan->calls[c];

        if (made->current)
            continue;
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
        if (plan->calls[c]->current)
            continue;
        plan->calls[c]->kernel->run(&plan->calls[c]->call);
        if (kiln_anomaly_check(plan->calls[c], err) < 0)
            return err->status;
    }
    return KILN_OK;
}

/* Finds out which constants need no run; `same`: the parameters of all but those in other layouts
 * stayed. */
static void find_current(const KilnPlan *plan, bool same)
{
    for (size_t c = 0; c < plan->n_constants; c++) {
        const KilnConverted *converted = kiln_plan_converts(plan, plan->calls[c]);

        plan->calls[c]->current = converted != NULL ? kiln_converted_is_current(converted) : same;
    }
}

static void set_converted(const KilnPlan *plan, bool done)
{
    for (size_t c = 0; c < plan->n_constants; c++) {
        KilnConverted *converted = kiln_plan_converts(plan, plan->calls[c]);

        if (converted != NULL && !plan->calls[c]->current)
            kiln_converted_set(converted, done);
    }
}

/* Leaves out the constants if no parameter that they depend on was written since the last run. */
static KilnStatus run_plan(const KilnGraph *graph, KilnPlan *plan, KilnError *err)
{
    const uint64_t stamp = kiln_constants_stamp(graph, plan);
    KilnStatus status = KILN_OK;

    find_current(plan, stamp != 0 && stamp == plan->stamp);
    plan->stamp = 0;
    if (graph->detect_anomaly)
        status = run_checked(plan, err);
    else if (graph->profile)
        run_timed(plan);
    else
        run_calls(plan);
    plan->stamp = status >= 0 ? stamp : 0;
    set_converted(plan, status >= 0);
    return status;
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

KilnStatus kiln_graph_execute(KilnGraph *graph, KilnPlan *plan, KilnTensor *const *outputs,
                              size_t n, KilnError *err)
{
    /* Results of an earlier run of this step are now overwritten. */
    for (size_t i = 0; i < graph->n_tensors; i++) {
        if (graph->tensors[i]->at.host == NULL)
            graph->tensors[i]->data = NULL;
    }
    KilnStatus status = kiln_plan_bind(graph, plan, err);
    if (status < 0)
        return status;
    status = run_plan(graph, plan, err);
    return status >= 0 ? kiln_plan_read_outputs(graph, plan, outputs, n, err) : status;
}

KilnStatus kiln_graph_run(KilnGraph *graph, KilnTensor *const *outputs, size_t n, KilnError *err)
{
    KilnPlan *plan = NULL;
    KilnStatus status = kiln_graph_plan(graph, outputs, n, &plan, err);

    return status >= 0 ? kiln_graph_execute(graph, plan, outputs, n, err) : status;
}

/* ---- Queries -------------------------------------------------------------------- */

size_t kiln_graph_plans(const KilnGraph *graph)
{
    return graph->plan_cache.made;
}

size_t kiln_graph_bytes(const KilnGraph *graph)
{
    return graph->block != NULL ? kiln_buffer_bytes(graph->block) : 0;
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

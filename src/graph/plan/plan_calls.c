/* Storages and calls of a plan: creates, prepares and releases them. */
#include <stdlib.h>

#include "graph/plan/converted.h"
#include "graph/plan/plan.h"

/* Room for one more item in an array of the plan. */
static void *reserve(void *items, size_t count, size_t size, size_t *capacity)
{
    size_t more = *capacity > 0 ? 2 * *capacity : 64;

    if (count < *capacity)
        return items;
    void *fresh = realloc(items, more * size);
    if (fresh != NULL)
        *capacity = more;
    return fresh;
}

int kiln_plan_storage_new(KilnPlan *plan, KilnStorageKind kind, int tensor, size_t bytes,
                          KilnError *err)
{
    KilnStorage *storages = reserve(plan->storages, plan->n_storages, sizeof(*storages),
                                    &plan->cap_storages);

    if (storages == NULL) {
        kiln_error_nomem(err, sizeof(*storages));
        return -1;
    }
    plan->storages = storages;
    storages[plan->n_storages] = (KilnStorage) {
        .kind = kind, .tensor = tensor, .bytes = bytes, .merged = (int)plan->n_storages
    };
    return (int)plan->n_storages++;
}

KilnPlanCall *kiln_plan_call_new(KilnPlan *plan, KilnBackend *backend, const KilnKernel *kernel,
                                 const char *layer, const char *name, KilnError *err)
{
    KilnPlanCall *made = kiln_arena_alloc(&plan->arena, sizeof(*made));
    const char *copy = kiln_arena_strdup(&plan->arena, layer != NULL ? layer : "");

    if (made == NULL || copy == NULL) {
        kiln_error_nomem(err, sizeof(*made));
        return NULL;
    }
    made->call = (KilnCall) { .backend = backend, .op = kernel->op };
    made->kernel = kernel;
    made->workspace = -1;
    made->layer = copy;
    made->name = name;
    for (int i = 0; i < KILN_MAX_INPUTS; i++) {
        made->inputs[i] = -1;
        made->call.inputs[i].absent = true;
    }
    for (int i = 0; i < KILN_MAX_OUTPUTS; i++)
        made->outputs[i] = -1;
    made->next_made = plan->made;
    plan->made = made;
    return made;
}

/* Passes the producers' layouts to the kernel, which sets those that it wants. Kernels without
 * prepare want plain order, except for the layout conversion itself. */
static KilnStatus prepare_kernel(KilnPlanCall *made, KilnError *err)
{
    KilnCall *call = &made->call;

    if (made->kernel->prepare != NULL)
        return made->kernel->prepare(call, err);
    if (made->kernel == call->backend->ops->reorder)
        return KILN_OK;
    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    return KILN_OK;
}

KilnStatus kiln_plan_call_prepare(KilnPlanCall *made, KilnError *err)
{
    const KilnCall *call = &made->call;
    KilnLayout wanted[KILN_MAX_OUTPUTS] = { 0 };

    for (int i = 0; i < call->n_outputs; i++)
        wanted[i] = call->outputs[i].layout;
    KilnStatus status = prepare_kernel(made, err);
    made->prepared = status >= 0;
    for (int i = 0; i < call->n_outputs && status >= 0; i++) {
        if (call->outputs[i].fixed && call->outputs[i].layout != wanted[i])
            status = kiln_error_set(
                err, KILN_E_INTERNAL,
                "the kernel changed the layout of output %d, which must be plain", i);
    }
    if (status < 0)
        return kiln_error_prefix(err, "%s%s%s: ", made->layer, made->layer[0] != '\0' ? ": " : "",
                                 made->name);
    return KILN_OK;
}

KilnStatus kiln_plan_call_push(KilnPlan *plan, KilnPlanCall *made, KilnError *err)
{
    KilnPlanCall **calls = reserve(plan->calls, plan->n_calls, sizeof(KilnPlanCall *),
                                   &plan->cap_calls);

    if (calls == NULL)
        return kiln_error_nomem(err, sizeof(KilnPlanCall *));
    plan->calls = calls;
    made->backward = plan->backward;
    made->constant = plan->constant;
    calls[plan->n_calls++] = made;
    if (made->call.workspace_size > 0) {
        made->workspace = kiln_plan_storage_new(plan, KILN_STORAGE_BLOCK, -1,
                                                made->call.workspace_size, err);
        if (made->workspace < 0)
            return KILN_E_NOMEM;
    }
    return KILN_OK;
}

void kiln_plan_call_release(KilnPlanCall *made)
{
    /* A failed prepare may have set `priv`. */
    if (made->kernel->release != NULL &&
        (made->prepared || made->call.priv != NULL || made->call.epilogue_priv != NULL))
        made->kernel->release(&made->call);
    made->prepared = false;
    made->call.priv = made->call.epilogue_priv = NULL;
}

void kiln_plans_free(KilnPlan *plans)
{
    while (plans != NULL) {
        KilnPlan *next = plans->next;

        for (KilnPlanCall *made = plans->made; made != NULL; made = made->next_made)
            kiln_plan_call_release(made);
        kiln_converted_leave(plans);
        kiln_arena_release(&plans->arena);
        kiln_buffer_free(plans->constants);
        free(plans->calls);
        free(plans->storages);
        free(plans->pointers);
        free(plans->outputs);
        free(plans);
        plans = next;
    }
}

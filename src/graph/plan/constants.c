/* Finds the constants of a plan, and whether the parameters they depend on have changed. */
#include "graph/plan/constants.h"

#include <stdlib.h>
#include <string.h>

#include "graph/op.h"

enum { ALIGN = 64 };

/* ---- Which tensors ------------------------------------------------------------------- */

static bool is_updated(const KilnRewrite *step, const KilnTensor *variable)
{
    for (size_t i = 0; i < step->n_nodes; i++) {
        const KilnNode *node = step->nodes[i];

        for (int k = 0; k < node->n_inputs && node->op->updates != 0; k++)
            if ((node->op->updates >> k & 1) != 0 && node->inputs[k] != NULL &&
                kiln_overlaps(node->inputs[k], variable))
                return true;
    }
    return false;
}

static bool is_constant(const KilnRewrite *step, const KilnNode *node, const bool *constant)
{
    bool reads = false;

    if (node->op->updates != 0 || node->op->custom != NULL)
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        if (node->inputs[i] != NULL && !constant[node->inputs[i]->id])
            return false;
        reads |= node->inputs[i] != NULL;
    }
    for (int i = 0; i < node->n_outputs; i++)
        if (kiln_rewrite_visible(step, node->outputs[i]))
            return false;
    return reads;
}

void kiln_constants_find(const KilnRewrite *step, bool *ret)
{
    for (size_t i = 0; i < step->n_tensors; i++) {
        const KilnTensor *tensor = step->tensors[i];

        ret[i] = step->made[i] == NULL && tensor->variable && step->reads[i] > 0 &&
                 !is_updated(step, tensor);
    }
    for (size_t i = 0; i < step->n_nodes; i++) {
        const KilnNode *node = step->nodes[i];

        if (is_constant(step, node, ret))
            for (int k = 0; k < node->n_outputs; k++)
                ret[node->outputs[k]->id] = true;
    }
}

/* ---- Where they are -------------------------------------------------------------------- */

/* Moves the calls of constants to the front; the others keep their order. */
static KilnStatus move_calls(KilnPlan *plan, KilnError *err)
{
    KilnPlanCall **others = malloc((plan->n_calls + 1) * sizeof(KilnPlanCall *));
    size_t n = 0;

    if (others == NULL)
        return kiln_error_nomem(err, plan->n_calls * sizeof(KilnPlanCall *));
    for (size_t c = 0; c < plan->n_calls; c++) {
        if (plan->calls[c]->constant)
            plan->calls[plan->n_constants++] = plan->calls[c];
        else
            others[n++] = plan->calls[c];
    }
    if (n > 0)
        memcpy(plan->calls + plan->n_constants, others, n * sizeof(KilnPlanCall *));
    free(others);
    return KILN_OK;
}

/* Marks the storages that the calls of constants write, with 1, and those of them that other calls
 * read, with 2. */
static void mark(const KilnPlan *plan, char *marks)
{
    for (size_t c = 0; c < plan->n_calls; c++) {
        const KilnPlanCall *made = plan->calls[c];

        for (int i = 0; i < made->call.n_outputs && c < plan->n_constants; i++)
            marks[made->outputs[i]] = 1;
        for (int i = 0; i < made->call.n_inputs && c >= plan->n_constants; i++)
            if (made->inputs[i] >= 0 && marks[made->inputs[i]] == 1)
                marks[made->inputs[i]] = 2;
    }
}

/* Whether a storage is what a call makes of a parameter by changing its layout alone. */
static bool is_converted(const KilnPlan *plan, const KilnPlanCall *made, int storage)
{
    return made->call.op == NULL && made->outputs[0] == storage && made->inputs[0] >= 0 &&
           plan->storages[made->inputs[0]].kind == KILN_STORAGE_LEAF &&
           made->call.outputs[0].layout != KILN_PLAIN && !plan->storages[storage].kept;
}

/* The graph's plans share them. */
static void place_converted(KilnPlan *plan, char *marks)
{
    for (size_t c = 0; c < plan->n_constants; c++) {
        const KilnPlanCall *made = plan->calls[c];
        const int i = made->call.n_outputs > 0 ? made->outputs[0] : -1;

        if (i < 0 || marks[i] != 2 || !is_converted(plan, made, i))
            continue;
        KilnStorage *storage = &plan->storages[i];

        storage->kind = KILN_STORAGE_CONVERTED;
        storage->tensor = plan->storages[made->inputs[0]].tensor;
        storage->layout = made->call.outputs[0].layout;
        plan->converted_size += storage->bytes;
        marks[i] = 0;
    }
}

KilnStatus kiln_constants_place(KilnPlan *plan, KilnError *err)
{
    KilnStatus status = move_calls(plan, err);
    char *marks = status >= 0 ? calloc(plan->n_storages + 1, 1) : NULL;

    if (marks == NULL)
        return status < 0 ? status : kiln_error_nomem(err, plan->n_storages);
    mark(plan, marks);
    place_converted(plan, marks);
    for (size_t i = 0; i < plan->n_storages; i++) {
        KilnStorage *storage = &plan->storages[i];

        if (marks[i] != 2 && !(marks[i] == 1 && storage->kept))
            continue;
        storage->kind = KILN_STORAGE_CONSTANT;
        storage->offset = plan->constants_size;
        plan->constants_size += (storage->bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
    free(marks);
    return KILN_OK;
}

/* ---- Whether they are current -------------------------------------------------------------- */

uint64_t kiln_constants_stamp(const KilnGraph *graph, const KilnPlan *plan)
{
    uint64_t stamp = 0;

    for (size_t c = 0; c < plan->n_constants; c++) {
        const KilnPlanCall *made = plan->calls[c];

        for (int i = 0; i < made->call.n_inputs && kiln_plan_converts(plan, made) == NULL; i++) {
            const KilnStorage *storage = made->inputs[i] >= 0 ? &plan->storages[made->inputs[i]]
                                                              : NULL;

            if (storage == NULL ||
                (storage->kind != KILN_STORAGE_LEAF && storage->kind != KILN_STORAGE_CONVERTED))
                continue;
            const KilnLocation *at = &graph->tensors[storage->tensor]->at;
            if (at->buffer == NULL)
                return 0;
            const uint64_t source[] = { (uint64_t)(uintptr_t)at->buffer, at->offset,
                                        kiln_buffer_version(at->buffer) };
            stamp = XXH3_64bits_withSeed(source, sizeof(source), stamp);
        }
    }
    return stamp;
}

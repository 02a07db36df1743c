/* Memory planning: finds the lifetime of each storage, decides which outputs overwrite an input,
 * and assigns offsets in one block. */
#include <limits.h>
#include <stdlib.h>

#include "graph/plan/plan.h"

enum { ALIGN = 64 };

int kiln_plan_storage(const KilnPlan *plan, int storage)
{
    while (plan->storages[storage].merged != storage)
        storage = plan->storages[storage].merged;
    return storage;
}

/* ---- Lifetimes ------------------------------------------------------------------ */

static void use(KilnPlan *plan, int storage, int call)
{
    if (storage < 0)
        return;
    KilnStorage *used = &plan->storages[storage];
    if (used->first < 0)
        used->first = call;
    if (used->last < call)
        used->last = call;
}

static void find_lives(KilnPlan *plan)
{
    for (size_t i = 0; i < plan->n_storages; i++) {
        plan->storages[i].first = -1;
        plan->storages[i].last = plan->storages[i].kept ? INT_MAX : -1;
    }
    for (size_t c = 0; c < plan->n_calls; c++) {
        const KilnPlanCall *made = plan->calls[c];

        for (int i = 0; i < made->call.n_inputs; i++)
            use(plan, made->inputs[i], (int)c);
        for (int i = 0; i < made->call.n_outputs; i++)
            use(plan, made->outputs[i], (int)c);
        use(plan, made->workspace, (int)c);
    }
}

/* ---- In place ------------------------------------------------------------------ */

/* Whether output 0 may overwrite input `i` although input `k` is read too: they are disjoint, or
 * the kernel reads each element of both before it writes there. */
static bool apart(const KilnPlan *plan, const KilnPlanCall *made, int i, int k)
{
    const KilnArg *a = &made->call.inputs[i], *b = &made->call.inputs[k];

    if (made->inputs[k] < 0 ||
        kiln_plan_storage(plan, made->inputs[k]) != kiln_plan_storage(plan, made->inputs[i]))
        return true;
    return (made->kernel->in_place >> k & 1) != 0 && a->layout == b->layout &&
           a->bytes == b->bytes && a->dtype == b->dtype;
}

/* Whether output 0 of call number `c` may overwrite its input `i`: the kernel supports it, the
 * input is in the block, and nothing reads it later. */
static bool can_overwrite(const KilnPlan *plan, const KilnPlanCall *made, int c, int i)
{
    const KilnArg *in = &made->call.inputs[i], *out = &made->call.outputs[0];

    if ((made->kernel->in_place >> i & 1) == 0 || made->inputs[i] < 0 ||
        in->layout != out->layout || in->bytes != out->bytes || in->dtype != out->dtype ||
        !kiln_shape_equal(&in->shape, &out->shape))
        return false;
    int below = kiln_plan_storage(plan, made->inputs[i]);
    if (plan->storages[below].kind != KILN_STORAGE_BLOCK || plan->storages[below].last != c ||
        plan->storages[made->outputs[0]].kind != KILN_STORAGE_BLOCK)
        return false;
    for (int k = 0; k < made->call.n_inputs; k++)
        if (k != i && !apart(plan, made, i, k))
            return false;
    return true;
}

/* The input that output 0 of call number `c` overwrites; -1: none. */
static int overwritten_input(const KilnPlan *plan, const KilnPlanCall *made, int c)
{
    for (int i = 0; i < made->call.n_inputs && made->call.n_outputs > 0; i++)
        if (can_overwrite(plan, made, c, i))
            return i;
    return -1;
}

static void merge_in_place(KilnPlan *plan)
{
    for (size_t c = 0; c < plan->n_calls; c++) {
        const KilnPlanCall *made = plan->calls[c];
        const int i = overwritten_input(plan, made, (int)c);

        if (i < 0)
            continue;
        int below = kiln_plan_storage(plan, made->inputs[i]);
        KilnStorage *over = &plan->storages[made->outputs[0]];
        over->merged = below;
        if (plan->storages[below].last < over->last)
            plan->storages[below].last = over->last;
    }
}

/* ---- Offsets ------------------------------------------------------------------- */

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static int by_size(const void *a, const void *b)
{
    const KilnStorage *x = *(KilnStorage *const *)a, *y = *(KilnStorage *const *)b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* The tightest gap for `storage` between those already assigned with overlapping lifetimes;
 * `assigned` is sorted by offset. */
static size_t best_offset(KilnStorage *const *assigned, size_t n, const KilnStorage *storage)
{
    size_t end = 0, best = SIZE_MAX, best_gap = SIZE_MAX, bytes = aligned(storage->bytes);

    for (size_t i = 0; i < n; i++) {
        const KilnStorage *other = assigned[i];

        if (other->last < storage->first || other->first > storage->last)
            continue;
        if (other->offset >= end && other->offset - end >= bytes &&
            other->offset - end < best_gap) {
            best = end;
            best_gap = other->offset - end;
        }
        if (other->offset + aligned(other->bytes) > end)
            end = other->offset + aligned(other->bytes);
    }
    return best != SIZE_MAX ? best : end;
}

/* Inserts in order of offset. */
static void keep_sorted(KilnStorage **assigned, size_t n, KilnStorage *storage)
{
    while (n > 0 && assigned[n - 1]->offset > storage->offset) {
        assigned[n] = assigned[n - 1];
        n--;
    }
    assigned[n] = storage;
}

/* Largest first, each into the tightest gap: near optimal, and deterministic for the same
 * structure. */
static KilnStatus assign_offsets(KilnPlan *plan, KilnError *err)
{
    KilnStorage **order = calloc(2 * (plan->n_storages + 1), sizeof(KilnStorage *));
    KilnStorage **assigned = order != NULL ? order + plan->n_storages + 1 : NULL;
    size_t n = 0;

    if (order == NULL)
        return kiln_error_nomem(err, 2 * plan->n_storages * sizeof(KilnStorage *));
    for (size_t i = 0; i < plan->n_storages; i++) {
        KilnStorage *storage = &plan->storages[i];

        if (storage->kind == KILN_STORAGE_BLOCK && storage->merged == (int)i && storage->first >= 0)
            order[n++] = storage;
    }
    qsort(order, n, sizeof(KilnStorage *), by_size);
    for (size_t i = 0; i < n; i++) {
        KilnStorage *storage = order[i];

        storage->offset = best_offset(assigned, i, storage);
        keep_sorted(assigned, i, storage);
        if (plan->block_size < storage->offset + aligned(storage->bytes))
            plan->block_size = storage->offset + aligned(storage->bytes);
    }
    free(order);
    return KILN_OK;
}

/* Keeps every used storage alive from the first call to the last. */
static void live_always(KilnPlan *plan)
{
    for (size_t i = 0; i < plan->n_storages; i++)
        if (plan->storages[i].first >= 0) {
            plan->storages[i].first = 0;
            plan->storages[i].last = INT_MAX;
        }
}

KilnStatus kiln_plan_memory(KilnPlan *plan, bool in_place, bool share, KilnError *err)
{
    plan->pointers = calloc(plan->n_storages + 1, sizeof(void *));
    if (plan->pointers == NULL)
        return kiln_error_nomem(err, plan->n_storages * sizeof(void *));
    find_lives(plan);
    if (in_place)
        merge_in_place(plan);
    if (!share)
        live_always(plan);
    return assign_offsets(plan, err);
}

/* Keeps parameters in the layouts of kernels, for all plans of a graph. */
#include "graph/plan/converted.h"

#include <stdlib.h>

struct KilnConverted {
    KilnConverted *next;
    KilnLocation at; /* of the parameter */
    KilnLayout layout;
    KilnBuffer *data;
    uint64_t version; /* of the parameter's buffer when it was converted; 0: never */
    int users;        /* storages of plans */
};

/* 0: unknown, since the parameter is in the host's memory. */
static uint64_t version_of(const KilnConverted *converted)
{
    return converted->at.buffer != NULL ? kiln_buffer_version(converted->at.buffer) : 0;
}

static KilnConverted *find(const KilnGraph *graph, const KilnLocation *at, KilnLayout layout)
{
    KilnConverted *converted = graph->converted;

    while (converted != NULL &&
           (converted->layout != layout || !kiln_location_equal(&converted->at, at)))
        converted = converted->next;
    return converted;
}

static KilnConverted *make(KilnGraph *graph, const KilnLocation *at, const KilnStorage *storage,
                           KilnError *err)
{
    KilnConverted *made = calloc(1, sizeof(*made));

    if (made == NULL || kiln_buffer_new(graph->backend, storage->bytes, &made->data, NULL) < 0) {
        free(made);
        kiln_error_set(err, KILN_E_NOMEM,
                       "out of memory: %zu MiB for a weight in another layout; "
                       "trainer.passes_off=[constants] does without",
                       storage->bytes >> 20);
        return NULL;
    }
    made->at = *at;
    made->layout = storage->layout;
    made->next = graph->converted;
    return graph->converted = made;
}

static void free_unused(KilnGraph *graph)
{
    for (KilnConverted **link = &graph->converted; *link != NULL;) {
        KilnConverted *converted = *link;

        if (converted->users > 0) {
            link = &converted->next;
            continue;
        }
        *link = converted->next;
        kiln_buffer_free(converted->data);
        free(converted);
    }
}

KilnStatus kiln_converted_bind(KilnGraph *graph, const KilnPlan *plan, KilnError *err)
{
    bool changed = false;

    for (size_t i = 0; i < plan->n_storages && plan->converted_size > 0; i++) {
        KilnStorage *storage = &plan->storages[i];

        if (storage->kind != KILN_STORAGE_CONVERTED)
            continue;
        const KilnLocation *at = &graph->tensors[storage->tensor]->at;
        if (storage->converted != NULL && kiln_location_equal(&storage->converted->at, at))
            continue;
        KilnConverted *converted = find(graph, at, storage->layout);
        if (converted == NULL)
            converted = make(graph, at, storage, err);
        if (converted == NULL)
            return KILN_E_NOMEM;
        if (storage->converted != NULL)
            storage->converted->users--;
        converted->users++;
        storage->converted = converted;
        changed = true;
    }
    if (changed)
        free_unused(graph);
    return KILN_OK;
}

void *kiln_converted_address(const KilnConverted *converted)
{
    return kiln_buffer_address(converted->data, 0);
}

bool kiln_converted_is_current(const KilnConverted *converted)
{
    return converted->version != 0 && converted->version == version_of(converted);
}

void kiln_converted_set(KilnConverted *converted, bool done)
{
    converted->version = done ? version_of(converted) : 0;
}

void kiln_converted_leave(const KilnPlan *plan)
{
    for (size_t i = 0; i < plan->n_storages; i++)
        if (plan->storages[i].converted != NULL)
            plan->storages[i].converted->users--;
}

void kiln_converted_free(KilnGraph *graph)
{
    free_unused(graph);
}

/* Binds a plan to memory for one run: the block, the leaves and destinations, and copies of inputs
 * and results where the backend does not compute in the host's memory. */
#include "graph/plan/binding.h"

#include <stdlib.h>

#include "graph/plan/converted.h"

/* ---- Memory -------------------------------------------------------------------- */

/* A buffer of at least `size` bytes. The old one is freed first: both together might not fit. */
static KilnStatus ensure_buffer(KilnGraph *graph, KilnBuffer **buffer, size_t size,
                                const char *what, KilnError *err)
{
    if (*buffer != NULL && size <= kiln_buffer_bytes(*buffer))
        return KILN_OK;
    kiln_buffer_free(*buffer);
    *buffer = NULL;
    return kiln_buffer_new(graph->backend, size, buffer, NULL) >= 0
               ? KILN_OK
               : kiln_error_set(err, KILN_E_NOMEM,
                                "out of memory: the step needs %zu MiB for %s; "
                                "try a smaller batch",
                                size >> 20, what);
}

/* The location of a leaf's or a destination's bytes. */
static const KilnLocation *location_of(const KilnGraph *graph, const KilnStorage *storage)
{
    const KilnTensor *tensor = graph->tensors[storage->tensor];

    return storage->kind == KILN_STORAGE_LEAF ? &tensor->at : &tensor->dest;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Whether the storage is an input in the host's memory that the backend reads from a copy. */
static bool needs_upload(const KilnGraph *graph, const KilnStorage *storage)
{
    return storage->kind == KILN_STORAGE_LEAF && !kiln_backend_on_host(graph->backend) &&
           location_of(graph, storage)->host != NULL;
}

static KilnStatus reserve_memory(KilnGraph *graph, KilnPlan *plan, KilnError *err)
{
    size_t uploads = 0;
    KilnStatus status = ensure_buffer(graph, &graph->block, plan->block_size, "activations", err);

    if (status >= 0 && plan->constants_size > 0)
        status = ensure_buffer(graph, &plan->constants, plan->constants_size, "constants", err);

    for (size_t i = 0; i < plan->n_storages && !kiln_backend_on_host(graph->backend); i++)
        uploads += needs_upload(graph, &plan->storages[i]) ? aligned(plan->storages[i].bytes) : 0;
    return status < 0 || uploads == 0
               ? status
               : ensure_buffer(graph, &graph->uploads, uploads, "its inputs", err);
}

static KilnStatus check_location(const KilnGraph *graph, const KilnTensor *tensor,
                                 const KilnLocation *location, KilnError *err)
{
    char text[KILN_SHAPE_TEXT];

    if (kiln_location_address(location) == 0)
        return kiln_error_set(err, KILN_E_MISSING,
                              "a leaf of shape %s has no data: the step was recorded for its "
                              "shapes only and cannot run",
                              kiln_shape_text(&tensor->shape, text, sizeof(text)));
    if (location->host == NULL || kiln_backend_on_host(graph->backend))
        return KILN_OK;
    return location == &tensor->at && !tensor->variable
               ? KILN_OK
               : kiln_error_set(err, KILN_E_INTERNAL,
                                "a variable of shape %s is in the host's memory, which the %s "
                                "backend can not write; use a buffer",
                                kiln_shape_text(&tensor->shape, text, sizeof(text)),
                                graph->backend->ops->name);
}

/* Finds the address of every storage; copies inputs to the backend where it needs that. */
static KilnStatus bind_storages(const KilnGraph *graph, KilnPlan *plan, KilnError *err)
{
    size_t uploaded = 0;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < plan->n_storages && status >= 0; i++) {
        const KilnStorage *storage = &plan->storages[kiln_plan_storage(plan, (int)i)];

        if (storage->kind == KILN_STORAGE_BLOCK) {
            plan->pointers[i] = kiln_buffer_address(graph->block, storage->offset);
            continue;
        }
        if (storage->kind == KILN_STORAGE_CONSTANT) {
            plan->pointers[i] = kiln_buffer_address(plan->constants, storage->offset);
            continue;
        }
        if (storage->kind == KILN_STORAGE_CONVERTED) {
            plan->pointers[i] = kiln_converted_address(storage->converted);
            continue;
        }
        const KilnLocation *location = location_of(graph, storage);
        status = check_location(graph, graph->tensors[storage->tensor], location, err);
        plan->pointers[i] = (void *)kiln_location_address(location);
        if (location->buffer != NULL && (storage->written || storage->kind == KILN_STORAGE_DEST))
            kiln_buffer_written(location->buffer);
        if (status >= 0 && needs_upload(graph, storage)) {
            kiln_buffer_upload(graph->uploads, uploaded, location->host, storage->bytes);
            plan->pointers[i] = kiln_buffer_address(graph->uploads, uploaded);
            uploaded += aligned(storage->bytes);
        }
    }
    return status;
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

KilnStatus kiln_plan_bind(KilnGraph *graph, KilnPlan *plan, KilnError *err)
{
    KilnStatus status = reserve_memory(graph, plan, err);

    if (status >= 0)
        status = kiln_converted_bind(graph, plan, err);
    if (status >= 0)
        status = bind_storages(graph, plan, err);
    if (status >= 0)
        bind_calls(plan);
    return status;
}

/* ---- Results -------------------------------------------------------------------- */

/* The bytes of output i in the backend's memory. */
static KilnLocation result_location(const KilnGraph *graph, const KilnPlan *plan,
                                    const KilnTensor *output, size_t i)
{
    if (plan->outputs[i] < 0)
        return output->at;
    const KilnStorage *storage = &plan->storages[kiln_plan_storage(plan, plan->outputs[i])];
    if (storage->kind == KILN_STORAGE_BLOCK)
        return (KilnLocation) { .buffer = graph->block, .offset = storage->offset };
    if (storage->kind == KILN_STORAGE_CONSTANT)
        return (KilnLocation) { .buffer = plan->constants, .offset = storage->offset };
    return *location_of(graph, storage);
}

/* Memory for copies of the results; grow-only, so that steps allocate nothing. */
static KilnStatus reserve_results(KilnGraph *graph, KilnTensor *const *outputs, size_t n,
                                  KilnError *err)
{
    size_t size = 0;

    for (size_t i = 0; i < n; i++)
        size += aligned(kiln_tensor_bytes(outputs[i]));
    if (size <= graph->results_size)
        return KILN_OK;
    free(graph->results);
    graph->results = malloc(size);
    graph->results_size = graph->results != NULL ? size : 0;
    return graph->results != NULL ? KILN_OK : kiln_error_nomem(err, size);
}

KilnStatus kiln_plan_read_outputs(KilnGraph *graph, const KilnPlan *plan,
                                  KilnTensor *const *outputs, size_t n, KilnError *err)
{
    const bool on_host = kiln_backend_on_host(graph->backend);
    KilnStatus status = on_host ? KILN_OK : reserve_results(graph, outputs, n, err);
    size_t copied = 0;

    for (size_t i = 0; i < n && status >= 0; i++) {
        const KilnLocation location = result_location(graph, plan, outputs[i], i);

        if (on_host || location.buffer == NULL) {
            outputs[i]->data = (const void *)kiln_location_address(&location);
            continue;
        }
        const size_t bytes = kiln_tensor_bytes(outputs[i]);
        kiln_buffer_download(location.buffer, location.offset, graph->results + copied, bytes);
        outputs[i]->data = graph->results + copied;
        copied += aligned(bytes);
    }
    return status >= 0 ? kiln_backend_synchronize(graph->backend, err) : status;
}

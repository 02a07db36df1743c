/* Finds and adds the metrics of a run, and saves and restores their states. */
#include "train/metrics/metric_collection.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "kiln/array.h"

void kiln_metric_collection_release(KilnMetricCollection *collection)
{
    for (size_t i = 0; i < collection->n; i++) {
        kiln_metric_state_free(collection->list[i].state);
        free(collection->list[i].name);
    }
    free(collection->list);
    *collection = (KilnMetricCollection) { 0 };
}

static KilnStatus add(KilnMetricCollection *collection, KilnCollectedMetric added,
                      const KilnMetricForm *form, KilnError *err)
{
    if (!KILN_RESERVE(collection->list, collection->capacity, collection->n + 1))
        return kiln_error_nomem(err, (collection->n + 1) * sizeof(added));
    added.name = kiln_strdup(added.name);
    if (added.name == NULL)
        return kiln_error_nomem(err, 1);
    KilnStatus status = kiln_metric_state_new(added.metric, form, &added.state, err);
    if (status < 0) {
        free(added.name);
        return status;
    }
    collection->list[collection->n++] = added;
    return KILN_OK;
}

KilnStatus kiln_metric_collection_get(KilnMetricCollection *collection, KilnPhase phase,
                                      KilnInstance *metric, const char *name, unsigned flags,
                                      const KilnMetricForm *form, size_t *ret, KilnError *err)
{
    const KilnCollectedMetric wanted = {
        .metric = metric, .phase = phase, .name = (char *)name, .flags = flags
    };
    const KilnCollectedMetric *list = collection->list;
    size_t i = 0;

    while (i < collection->n &&
           (list[i].metric != metric || list[i].phase != phase || strcmp(list[i].name, name) != 0))
        i++;
    *ret = i;
    if (i == collection->n)
        return add(collection, wanted, form, err);
    const int64_t width = kiln_metric_state_form(list[i].state)->width;
    if (width != form->width)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "metric \"%s\" counts rows of %lld scores, but gets some of %lld",
                              name, (long long)width, (long long)form->width);
    return KILN_OK;
}

void kiln_metric_collection_reset(KilnMetricCollection *collection, KilnPhase phase)
{
    for (size_t i = 0; i < collection->n; i++)
        if (collection->list[i].phase == phase)
            kiln_metric_state_reset(collection->list[i].state);
}

/* ---- In a checkpoint ------------------------------------------------------------------ */

#define PREFIX "metrics."

KilnStatus kiln_metric_collection_save(const KilnMetricCollection *collection, KilnPhase phase,
                                       KilnArena *names, KilnStView *views, size_t *n,
                                       KilnError *err)
{
    for (size_t i = 0; i < collection->n; i++) {
        const KilnMetricState *state = collection->list[i].state;

        for (size_t a = 0; collection->list[i].phase == phase && a < state->n_arrays; a++) {
            const KilnMetricStateArray *array = &state->arrays[a];

            if (array->n == 0)
                continue;
            views[*n] = (KilnStView) {
                .name = kiln_arena_printf(names, PREFIX "%s.%s", collection->list[i].name,
                                          array->name),
                .dtype = array->dtype,
                .shape = KILN_SHAPE(array->n),
                .data = array->data,
            };
            if (views[(*n)++].name == NULL)
                return kiln_error_nomem(err, 1);
        }
    }
    return KILN_OK;
}

static KilnStatus load_array(KilnMetricState *state, const char *name, const KilnSafetensors *file,
                             const KilnStEntry *entry, KilnError *err)
{
    bool f64 = strcmp(entry->dtype, kiln_safetensors_name(KILN_F64)) == 0;
    KilnDType dtype = KILN_F64;
    int64_t n = kiln_shape_count(&entry->shape);

    if (n < 0 || (!f64 && !kiln_safetensors_dtype(entry, &dtype)))
        return kiln_error_set(err, KILN_E_FORMAT, "%s has a type or shape that kiln lacks",
                              entry->name);
    void *data = malloc((size_t)n * kiln_dtype_size(dtype) + 1);
    if (data == NULL)
        return kiln_error_nomem(err, (size_t)n * kiln_dtype_size(dtype));
    KilnStatus status = kiln_safetensors_read(file, entry, dtype, data, err);
    if (status < 0) {
        free(data);
        return status;
    }
    return kiln_metric_state_restore(state, name, dtype, data, n, err);
}

/* The name of the state's array that the tensor holds; NULL: it belongs to another state. */
static const char *array_of(const KilnCollectedMetric *metric, const char *tensor)
{
    size_t length = strlen(metric->name), prefix = strlen(PREFIX);

    if (strncmp(tensor, PREFIX, prefix) != 0 ||
        strncmp(tensor + prefix, metric->name, length) != 0 || tensor[prefix + length] != '.')
        return NULL;
    const char *array = tensor + prefix + length + 1;
    return strchr(array, '.') == NULL ? array : NULL;
}

KilnStatus kiln_metric_collection_load(KilnMetricCollection *collection, KilnPhase phase,
                                       const KilnSafetensors *file, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < collection->n; i++) {
        KilnCollectedMetric *metric = &collection->list[i];

        for (size_t e = 0; e < kiln_safetensors_count(file) && status >= 0; e++) {
            const KilnStEntry *entry = kiln_safetensors_at(file, e);
            const char *array = metric->phase == phase ? array_of(metric, entry->name) : NULL;

            if (array != NULL)
                status = load_array(metric->state, array, file, entry, err);
        }
    }
    return status;
}

/* The tallies of a run, and their way through a checkpoint. */
#include "train/metrics/metric_states.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void kiln_metric_states_release(KilnMetricStates *states)
{
    for (size_t i = 0; i < states->n; i++) {
        kiln_metric_state_free(states->list[i].state);
        free(states->list[i].name);
    }
    free(states->list);
    *states = (KilnMetricStates) { 0 };
}

static KilnStatus add(KilnMetricStates *states, KilnCounted counted, const KilnMetricForm *form,
                      KilnError *err)
{
    KilnCounted *more = realloc(states->list, (states->n + 1) * sizeof(*more));

    if (more == NULL)
        return kiln_error_nomem(err, (states->n + 1) * sizeof(*more));
    states->list = more;
    counted.name = kiln_strdup(counted.name);
    if (counted.name == NULL)
        return kiln_error_nomem(err, 1);
    KilnStatus status = kiln_metric_state_new(counted.metric, form, &counted.state, err);
    if (status < 0) {
        free(counted.name);
        return status;
    }
    more[states->n++] = counted;
    return KILN_OK;
}

KilnStatus kiln_metric_states_get(KilnMetricStates *states, int phase, KilnInstance *metric,
                                  const char *name, unsigned flags, const KilnMetricForm *form,
                                  size_t *ret, KilnError *err)
{
    size_t i = 0;

    while (i < states->n && (states->list[i].metric != metric || states->list[i].phase != phase ||
                             strcmp(states->list[i].name, name) != 0))
        i++;
    if (i < states->n && kiln_metric_state_form(states->list[i].state)->width != form->width)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "metric \"%s\" counts rows of %lld scores, but gets some of %lld",
                              name, (long long)kiln_metric_state_form(states->list[i].state)->width,
                              (long long)form->width);
    if (i == states->n) {
        KilnCounted fresh = {
            .metric = metric, .phase = phase, .name = (char *)name, .flags = flags
        };
        KilnStatus status = add(states, fresh, form, err);

        if (status < 0)
            return status;
    }
    *ret = i;
    return KILN_OK;
}

void kiln_metric_states_reset(KilnMetricStates *states, int phase)
{
    for (size_t i = 0; i < states->n; i++)
        if (states->list[i].phase == phase)
            kiln_metric_state_reset(states->list[i].state);
}

/* ---- In a checkpoint ------------------------------------------------------------------ */

#define PREFIX "metrics."

KilnStatus kiln_metric_states_save(const KilnMetricStates *states, int phase, KilnArena *names,
                                   KilnStView *views, size_t *n, KilnError *err)
{
    for (size_t i = 0; i < states->n; i++) {
        const KilnMetricState *state = states->list[i].state;

        for (size_t a = 0; states->list[i].phase == phase && a < state->n_arrays; a++) {
            const KilnMetricStateArray *array = &state->arrays[a];

            if (array->n == 0)
                continue;
            views[*n] = (KilnStView) {
                .name = kiln_arena_printf(names, PREFIX "%s.%s", states->list[i].name, array->name),
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

/* The array that a tensor is of this tally; NULL: it is of another. */
static const char *array_of(const KilnCounted *counted, const char *tensor)
{
    size_t length = strlen(counted->name), prefix = strlen(PREFIX);

    if (strncmp(tensor, PREFIX, prefix) != 0 ||
        strncmp(tensor + prefix, counted->name, length) != 0 || tensor[prefix + length] != '.')
        return NULL;
    const char *array = tensor + prefix + length + 1;
    return strchr(array, '.') == NULL ? array : NULL;
}

KilnStatus kiln_metric_states_load(KilnMetricStates *states, int phase, const KilnSafetensors *file,
                                   KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < states->n; i++) {
        KilnCounted *counted = &states->list[i];

        for (size_t e = 0; e < kiln_safetensors_count(file) && status >= 0; e++) {
            const KilnStEntry *entry = kiln_safetensors_at(file, e);
            const char *array = counted->phase == phase ? array_of(counted, entry->name) : NULL;

            if (array != NULL)
                status = load_array(counted->state, array, file, entry, err);
        }
    }
    return status;
}

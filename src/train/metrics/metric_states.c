/* The tallies of a run, and their way through a checkpoint. */
#include "train/metrics/metric_states.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void kiln_tallies_release(KilnTallies *tallies)
{
    for (size_t i = 0; i < tallies->n; i++) {
        kiln_tally_free(tallies->list[i].tally);
        free(tallies->list[i].name);
    }
    free(tallies->list);
    *tallies = (KilnTallies) { 0 };
}

static KilnStatus add(KilnTallies *tallies, KilnCounted counted, const KilnMetricForm *form,
                      KilnError *err)
{
    KilnCounted *more = realloc(tallies->list, (tallies->n + 1) * sizeof(*more));

    if (more == NULL)
        return kiln_error_nomem(err, (tallies->n + 1) * sizeof(*more));
    tallies->list = more;
    counted.name = kiln_strdup(counted.name);
    if (counted.name == NULL)
        return kiln_error_nomem(err, 1);
    KilnStatus status = kiln_tally_new(counted.metric, form, &counted.tally, err);
    if (status < 0) {
        free(counted.name);
        return status;
    }
    more[tallies->n++] = counted;
    return KILN_OK;
}

KilnStatus kiln_tallies_get(KilnTallies *tallies, int phase, KilnInstance *metric, const char *name,
                            unsigned flags, const KilnMetricForm *form, size_t *ret, KilnError *err)
{
    size_t i = 0;

    while (i < tallies->n &&
           (tallies->list[i].metric != metric || tallies->list[i].phase != phase ||
            strcmp(tallies->list[i].name, name) != 0))
        i++;
    if (i < tallies->n && kiln_tally_form(tallies->list[i].tally)->width != form->width)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "metric \"%s\" counts rows of %lld scores, but gets some of %lld",
                              name, (long long)kiln_tally_form(tallies->list[i].tally)->width,
                              (long long)form->width);
    if (i == tallies->n) {
        KilnCounted fresh = {
            .metric = metric, .phase = phase, .name = (char *)name, .flags = flags
        };
        KilnStatus status = add(tallies, fresh, form, err);

        if (status < 0)
            return status;
    }
    *ret = i;
    return KILN_OK;
}

void kiln_tallies_reset(KilnTallies *tallies, int phase)
{
    for (size_t i = 0; i < tallies->n; i++)
        if (tallies->list[i].phase == phase)
            kiln_tally_reset(tallies->list[i].tally);
}

/* ---- In a checkpoint ------------------------------------------------------------------ */

#define PREFIX "metrics."

KilnStatus kiln_tallies_save(const KilnTallies *tallies, int phase, KilnArena *names,
                             KilnStView *views, size_t *n, KilnError *err)
{
    for (size_t i = 0; i < tallies->n; i++) {
        const KilnTally *tally = tallies->list[i].tally;

        for (size_t a = 0; tallies->list[i].phase == phase && a < tally->n_arrays; a++) {
            const KilnTallyArray *array = &tally->arrays[a];

            if (array->n == 0)
                continue;
            views[*n] = (KilnStView) {
                .name = kiln_arena_printf(names, PREFIX "%s.%s", tallies->list[i].name,
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

static KilnStatus load_array(KilnTally *tally, const char *name, const KilnSafetensors *file,
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
    return kiln_tally_restore(tally, name, dtype, data, n, err);
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

KilnStatus kiln_tallies_load(KilnTallies *tallies, int phase, const KilnSafetensors *file,
                             KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < tallies->n; i++) {
        KilnCounted *counted = &tallies->list[i];

        for (size_t e = 0; e < kiln_safetensors_count(file) && status >= 0; e++) {
            const KilnStEntry *entry = kiln_safetensors_at(file, e);
            const char *array = counted->phase == phase ? array_of(counted, entry->name) : NULL;

            if (array != NULL)
                status = load_array(counted->tally, array, file, entry, err);
        }
    }
    return status;
}

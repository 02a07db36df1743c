/* Metric states: the arrays that metrics count into, and the results that they compute. The metrics
 * themselves are components (tasks/metrics/). */
#include "train/metrics/metric_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "kiln/array.h"

static const KilnMetricOps *ops_of(const KilnMetricState *state)
{
    return kiln_instance_component(state->metric)->ops.metric;
}

int64_t kiln_form_classes(const KilnMetricForm *form)
{
    return form->width == 1 ? 2 : form->width;
}

const char *kiln_form_name(const KilnMetricForm *form, int64_t i, char buf[24])
{
    if (form->names != NULL && i >= 0 && i < form->n_names)
        return form->names[i];
    snprintf(buf, 24, "%lld", (long long)i);
    return buf;
}

/* ---- Life ------------------------------------------------------------------------- */

KilnStatus kiln_metric_state_new(KilnInstance *metric, const KilnMetricForm *form,
                                 KilnMetricState **ret, KilnError *err)
{
    const KilnMetricOps *ops = kiln_instance_component(metric)->ops.metric;
    const bool scored = ops->takes != KILN_METRIC_SEQUENCES && ops->takes != KILN_METRIC_DETECTIONS;
    KilnMetricState *state;

    if (scored && form->width < 1)
        return kiln_error_set(err, KILN_E_SHAPE, "%s: rows have no scores",
                              kiln_instance_path(metric));
    if (ops->takes == KILN_METRIC_RANKINGS && form->width != 1)
        return kiln_error_set(err, KILN_E_SHAPE, "%s: a document has one score, not %lld",
                              kiln_instance_path(metric), (long long)form->width);
    if (ops->check != NULL) {
        KilnStatus status = KILN_CALLED(metric, "check", ops->check(metric, form, err), err);

        if (status < 0) {
            (void)kiln_error_prefix(err, "%s: ", kiln_instance_path(metric));
            return status;
        }
    }
    state = calloc(1, sizeof(*state));
    if (state == NULL)
        return kiln_error_nomem(err, sizeof(*state));
    state->metric = metric;
    state->form = *form;
    *ret = state;
    return KILN_OK;
}

static void clear_values(KilnMetricState *state)
{
    for (size_t i = 0; i < state->n_values; i++)
        free(state->values[i].name);
    state->n_values = 0;
}

void kiln_metric_state_free(KilnMetricState *state)
{
    if (state == NULL)
        return;
    for (size_t i = 0; i < state->n_arrays; i++)
        free(state->arrays[i].data);
    clear_values(state);
    free(state->values);
    free(state);
}

const KilnMetricForm *kiln_metric_state_form(const KilnMetricState *state)
{
    return &state->form;
}

/* ---- Arrays --------------------------------------------------------------------------- */

static KilnMetricStateArray *find(const KilnMetricState *state, const char *name)
{
    for (size_t i = 0; i < state->n_arrays; i++)
        if (strcmp(state->arrays[i].name, name) == 0)
            return (KilnMetricStateArray *)&state->arrays[i];
    return NULL;
}

/* The error of an array that the metric does not have: the metric, or its checkpoint, is another.
 */
static KilnStatus mismatch(const KilnMetricState *state, const char *name, KilnError *err)
{
    return kiln_error_set(err, KILN_E_FORMAT,
                          "%s: its state has an array \"%s\" that metric %s does not have; was "
                          "the metric changed in mid-epoch?",
                          kiln_instance_path(state->metric), name,
                          kiln_instance_name(state->metric));
}

static bool is_list(KilnDType dtype)
{
    return dtype != KILN_I64 && dtype != KILN_F64;
}

static KilnStatus get(KilnMetricState *state, const char *name, KilnDType dtype,
                      KilnMetricStateArray **ret, KilnError *err)
{
    KilnMetricStateArray *array = find(state, name);

    if (array == NULL) {
        if (state->n_arrays == KILN_METRIC_STATE_ARRAYS || strlen(name) >= sizeof(array->name))
            return mismatch(state, name, err);
        array = &state->arrays[state->n_arrays++];
        *array = (KilnMetricStateArray) { .dtype = dtype };
        snprintf(array->name, sizeof(array->name), "%s", name);
    }
    if (array->dtype != dtype)
        return mismatch(state, name, err);
    *ret = array;
    return KILN_OK;
}

/* Room for n elements. */
static KilnStatus reserve(KilnMetricStateArray *array, int64_t n, KilnError *err)
{
    size_t size = kiln_dtype_size(array->dtype);
    int64_t capacity = array->capacity > 0 ? array->capacity : 16;

    if (n <= array->capacity)
        return KILN_OK;
    while (capacity < n && capacity < INT64_MAX / 2)
        capacity = is_list(array->dtype) ? 2 * capacity : n;
    if (capacity < n || (uint64_t)capacity > SIZE_MAX / size)
        return kiln_error_nomem(err, SIZE_MAX);
    void *data = realloc(array->data, (size_t)capacity * size);
    if (data == NULL)
        return kiln_error_nomem(err, (size_t)capacity * size);
    array->data = data;
    array->capacity = capacity;
    return KILN_OK;
}

static KilnStatus zeros(KilnMetricState *state, const char *name, KilnDType dtype, int64_t n,
                        void **ret, KilnError *err)
{
    size_t size = kiln_dtype_size(dtype);
    KilnMetricStateArray *array;
    KilnStatus status = get(state, name, dtype, &array, err);

    if (status >= 0)
        status = reserve(array, n, err);
    if (status < 0)
        return status;
    if (n > array->n) {
        memset((char *)array->data + (size_t)array->n * size, 0, (size_t)(n - array->n) * size);
        array->n = n;
    }
    *ret = array->data;
    return KILN_OK;
}

KilnStatus kiln_metric_state_counts(KilnMetricState *state, const char *name, int64_t n,
                                    int64_t **ret, KilnError *err)
{
    void *data;
    KilnStatus status = zeros(state, name, KILN_I64, n, &data, err);

    if (status >= 0)
        *ret = data;
    return status;
}

KilnStatus kiln_metric_state_sums(KilnMetricState *state, const char *name, int64_t n, double **ret,
                                  KilnError *err)
{
    void *data;
    KilnStatus status = zeros(state, name, KILN_F64, n, &data, err);

    if (status >= 0)
        *ret = data;
    return status;
}

KilnStatus kiln_metric_state_append(KilnMetricState *state, const char *name, KilnDType dtype,
                                    const void *items, int64_t n, KilnError *err)
{
    size_t size = kiln_dtype_size(dtype);
    KilnMetricStateArray *array;
    KilnStatus status = get(state, name, dtype, &array, err);

    if (status >= 0)
        status = reserve(array, array->n + n, err);
    if (status < 0 || n == 0)
        return status;
    memcpy((char *)array->data + (size_t)array->n * size, items, (size_t)n * size);
    array->n += n;
    return KILN_OK;
}

KilnStatus kiln_metric_state_list(const KilnMetricState *state, const char *name, KilnDType dtype,
                                  const void **ret, int64_t *ret_count, KilnError *err)
{
    const KilnMetricStateArray *array = find(state, name);

    if (array != NULL && array->dtype != dtype)
        return mismatch(state, name, err);
    *ret = array != NULL ? array->data : NULL;
    *ret_count = array != NULL ? array->n : 0;
    return KILN_OK;
}

KilnStatus kiln_metric_state_restore(KilnMetricState *state, const char *name, KilnDType dtype,
                                     void *data, int64_t n, KilnError *err)
{
    KilnMetricStateArray *array;
    KilnStatus status = get(state, name, dtype, &array, err);

    if (status < 0) {
        free(data);
        return status;
    }
    free(array->data);
    array->data = data;
    array->n = array->capacity = n;
    return KILN_OK;
}

/* ---- Counting ----------------------------------------------------------------------------- */

static const char rows_name[] = "rows";

int64_t kiln_metric_state_rows(const KilnMetricState *state)
{
    const KilnMetricStateArray *rows = find(state, rows_name);

    return rows != NULL && rows->n > 0 && rows->dtype == KILN_I64 ? *(const int64_t *)rows->data
                                                                  : 0;
}

void kiln_metric_state_reset(KilnMetricState *state)
{
    for (size_t i = 0; i < state->n_arrays; i++) {
        KilnMetricStateArray *array = &state->arrays[i];

        if (array->n > 0 && !is_list(array->dtype))
            memset(array->data, 0, (size_t)array->n * kiln_dtype_size(array->dtype));
        if (is_list(array->dtype))
            array->n = 0;
    }
    clear_values(state);
}

/* The input that the metric needs and the rows lack; NULL: none. */
static const char *missing(const KilnMetricOps *ops, const KilnMetricRows *rows)
{
    switch (ops->takes) {
    case KILN_METRIC_CLASSES:
        return rows->scores == NULL ? "scores of classes"
               : rows->labels == NULL && !(ops->multilabel && rows->targets != NULL) ? "labels"
                                                                                     : NULL;
    case KILN_METRIC_VALUES:
        return rows->scores == NULL ? "predictions" : rows->targets == NULL ? "targets" : NULL;
    case KILN_METRIC_RANKINGS:
        return rows->scores == NULL        ? "scores"
               : rows->targets == NULL     ? "relevances"
               : rows->group_sizes == NULL ? "sizes of groups"
                                           : NULL;
    case KILN_METRIC_SEQUENCES:
        return rows->sequences == NULL                              ? "sequences"
               : rows->references == NULL || rows->n_references < 1 ? "references"
                                                                    : NULL;
    case KILN_METRIC_DETECTIONS:
        return rows->group_sizes == NULL ? "numbers of detections and boxes" : NULL;
    }
    return "an unknown input";
}

static KilnStatus check_rows(const KilnMetricState *state, const KilnMetricRows *rows,
                             KilnError *err)
{
    const KilnMetricInput takes = ops_of(state)->takes;
    const char *lacks = missing(ops_of(state), rows);
    int64_t grouped = 0;

    if (lacks != NULL)
        return kiln_error_set(err, KILN_E_SHAPE, "metric %s needs %s, and the rows have none",
                              kiln_instance_name(state->metric), lacks);
    for (int64_t g = 0; takes == KILN_METRIC_RANKINGS && g < rows->n_groups; g++) {
        if (rows->group_sizes[g] < 0 || rows->group_sizes[g] > rows->count - grouped)
            return kiln_error_set(err, KILN_E_SHAPE, "the size of group %lld exceeds the rows",
                                  (long long)g);
        grouped += rows->group_sizes[g];
    }
    if (takes == KILN_METRIC_RANKINGS && grouped != rows->count)
        return kiln_error_set(err, KILN_E_SHAPE, "groups have %lld rows of %lld",
                              (long long)grouped, (long long)rows->count);
    return KILN_OK;
}

KilnStatus kiln_metric_state_update(KilnMetricState *state, const KilnMetricRows *rows,
                                    KilnError *err)
{
    int64_t *counted = NULL;
    KilnStatus status;

    if (rows->count < 1)
        return KILN_OK;
    status = check_rows(state, rows, err);
    if (status >= 0)
        status = kiln_metric_state_counts(state, rows_name, 1, &counted, err);
    if (status >= 0)
        status = KILN_CALLED(state->metric, "update",
                             ops_of(state)->update(state->metric, state, rows, err), err);
    if (status < 0) {
        (void)kiln_error_prefix(err, "%s: ", kiln_instance_path(state->metric));
        return status;
    }
    *counted += rows->count;
    return KILN_OK;
}

/* ---- Merging ------------------------------------------------------------------------------ */

static KilnStatus merge_array(KilnMetricState *state, const KilnMetricStateArray *from,
                              KilnError *err)
{
    void *to = NULL;
    KilnStatus status;

    if (is_list(from->dtype))
        return kiln_metric_state_append(state, from->name, from->dtype, from->data, from->n, err);
    status = zeros(state, from->name, from->dtype, from->n, &to, err);
    for (int64_t i = 0; i < from->n && status >= 0; i++) {
        if (from->dtype == KILN_I64)
            ((int64_t *)to)[i] += ((const int64_t *)from->data)[i];
        else
            ((double *)to)[i] += ((const double *)from->data)[i];
    }
    return status;
}

KilnStatus kiln_metric_state_merge(KilnMetricState *state, KilnMetricState *other, KilnError *err)
{
    const KilnMetricOps *ops = ops_of(state);
    int64_t *counted = NULL;
    KilnStatus status = KILN_OK;

    if (kiln_metric_state_rows(other) == 0)
        return KILN_OK;
    if (ops->merge != NULL)
        status = KILN_CALLED(state->metric, "merge", ops->merge(state->metric, state, other, err),
                             err);
    for (size_t i = 0; i < other->n_arrays && ops->merge == NULL && status >= 0; i++)
        if (strcmp(other->arrays[i].name, rows_name) != 0)
            status = merge_array(state, &other->arrays[i], err);
    if (status >= 0)
        status = kiln_metric_state_counts(state, rows_name, 1, &counted, err);
    if (status >= 0)
        *counted += kiln_metric_state_rows(other);
    return status < 0 ? kiln_error_prefix(err, "%s: ", kiln_instance_path(state->metric)) : KILN_OK;
}

/* ---- Results --------------------------------------------------------------------------------- */

KilnStatus kiln_metric_state_report(KilnMetricState *state, const char *name, double value,
                                    KilnError *err)
{
    if (!KILN_RESERVE(state->values, state->values_capacity, state->n_values + 1))
        return kiln_error_nomem(err, (state->n_values + 1) * sizeof(*state->values));
    char *copy = kiln_strdup(name != NULL ? name : "");
    if (copy == NULL)
        return kiln_error_nomem(err, 1);
    state->values[state->n_values++] = (KilnMetricResult) { .name = copy, .value = value };
    return KILN_OK;
}

/* ---- Means ------------------------------------------------------------------------- */

KilnStatus kiln_mean_open(KilnMetricState *state, KilnMean *ret, KilnError *err)
{
    KilnStatus status = kiln_metric_state_sums(state, "sum", 1, &ret->sum, err);

    return status < 0 ? status : kiln_metric_state_counts(state, "count", 1, &ret->count, err);
}

double kiln_mean_value(KilnMean mean)
{
    return *mean.count > 0 ? *mean.sum / (double)*mean.count : (double)NAN;
}

KilnStatus kiln_mean_compute(KilnInstance *self, KilnMetricState *state, KilnError *err)
{
    KilnMean mean;
    KilnStatus status = kiln_mean_open(state, &mean, err);

    (void)self;
    return status < 0 ? status : kiln_metric_state_report(state, NULL, kiln_mean_value(mean), err);
}

KilnStatus kiln_metric_state_compute(KilnMetricState *state, const KilnMetricResult **ret,
                                     size_t *ret_count, KilnError *err)
{
    clear_values(state);
    KilnStatus status = KILN_CALLED(state->metric, "compute",
                                    ops_of(state)->compute(state->metric, state, err), err);
    if (status < 0) {
        (void)kiln_error_prefix(err, "%s: ", kiln_instance_path(state->metric));
        return status;
    }
    *ret = state->values;
    *ret_count = state->n_values;
    return KILN_OK;
}

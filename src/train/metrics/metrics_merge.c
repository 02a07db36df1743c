/* Merges what another rank's steps of a phase have logged and counted: sums of logged values, and
 * the arrays of metric states, in a packed form of bytes. */
#include <stdlib.h>
#include <string.h>

#include "train/metrics/metrics.h"

/* ---- Packing -------------------------------------------------------------------------------- */

static void put(KilnText *to, const void *data, size_t bytes)
{
    kiln_text_append_n(to, data, bytes);
}

static void put_text(KilnText *to, const char *text)
{
    put(to, text, strlen(text) + 1);
}

/* The numbers of one name. */
typedef struct Logged {
    uint32_t flags;
    uint32_t has_step; /* its newest value belongs to the step */
    double sum, weight, step;
} Logged;

static void put_name(KilnText *to, const KilnMetrics *metrics, const KilnLoggedName *name,
                     int64_t step)
{
    const KilnMetric *newest = (name->flags & KILN_LOG_STEP) != 0 &&
                                       name->step_value != KILN_NO_VALUE
                                   ? &metrics->values.list[name->step_value]
                                   : NULL;
    const bool has_step = newest != NULL && newest->step == step;
    const Logged logged = {
        .flags = name->flags,
        .has_step = has_step,
        .sum = name->sum,
        .weight = name->weight,
        .step = has_step ? newest->value : 0.0,
    };

    if (!has_step && !(name->weight > 0.0))
        return;
    put_text(to, name->name);
    put(to, &logged, sizeof(logged));
}

static void put_state(KilnText *to, const KilnCollectedMetric *metric)
{
    const KilnMetricState *state = metric->state;
    const uint32_t n = (uint32_t)state->n_arrays;

    put_text(to, metric->name);
    put(to, &n, sizeof(n));
    for (size_t i = 0; i < state->n_arrays; i++) {
        const KilnMetricStateArray *array = &state->arrays[i];
        const int64_t form[2] = { (int64_t)array->dtype, array->n };

        put_text(to, array->name);
        put(to, form, sizeof(form));
        if (array->n > 0)
            put(to, array->data, (size_t)array->n * kiln_dtype_size(array->dtype));
    }
}

void kiln_metrics_pack(const KilnMetrics *metrics, KilnPhase phase, int64_t step, KilnText *ret)
{
    for (size_t i = 0; i < metrics->names.n; i++)
        if (metrics->names.list[i].phase == phase)
            put_name(ret, metrics, &metrics->names.list[i], step);
    put_text(ret, "");
    for (size_t i = 0; i < metrics->collection.n; i++)
        if (metrics->collection.list[i].phase == phase)
            put_state(ret, &metrics->collection.list[i]);
    put_text(ret, "");
}

/* ---- Merging -------------------------------------------------------------------------------- */

typedef struct Reader {
    const char *at, *end;
    bool failed;
} Reader;

/* The next `bytes` bytes, of any alignment; NULL when there are not so many. */
static const char *take(Reader *reader, size_t bytes)
{
    const char *at = reader->at;

    reader->failed = reader->failed || bytes > (size_t)(reader->end - reader->at);
    if (reader->failed)
        return NULL;
    reader->at += bytes;
    return at;
}

/* "" at the end of a list. */
static const char *take_text(Reader *reader)
{
    const size_t room = (size_t)(reader->end - reader->at);
    const char *text = take(reader, strnlen(reader->at, room) + 1);

    return text != NULL ? text : "";
}

static void take_into(Reader *reader, void *to, size_t bytes)
{
    const char *from = take(reader, bytes);

    if (from != NULL)
        memcpy(to, from, bytes);
    else
        memset(to, 0, bytes);
}

static KilnStatus merge_names(KilnMetrics *metrics, KilnPhase phase, int64_t epoch, int64_t step,
                              Reader *reader, KilnError *err)
{
    const char *text;

    while (*(text = take_text(reader)) != '\0') {
        Logged logged;

        take_into(reader, &logged, sizeof(logged));
        if (reader->failed)
            break;
        const int i = kiln_metrics_declare(metrics, phase, text, logged.flags);
        if (i < 0)
            return kiln_error_nomem(err, strlen(text));
        kiln_logged_name_merge(&metrics->names.list[i], logged.sum, logged.weight);
        KilnStatus status = logged.has_step != 0
                                ? kiln_metrics_set_step(metrics, i, logged.step, epoch, step, err)
                                : KILN_OK;
        if (status < 0)
            return status;
    }
    return KILN_OK;
}

static KilnCollectedMetric *find_state(KilnMetrics *metrics, KilnPhase phase, const char *name)
{
    for (size_t i = 0; i < metrics->collection.n; i++)
        if (metrics->collection.list[i].phase == phase &&
            strcmp(metrics->collection.list[i].name, name) == 0)
            return &metrics->collection.list[i];
    return NULL;
}

/* Read one array into the state. */
static KilnStatus take_array(Reader *reader, KilnMetricState *state, KilnError *err)
{
    const char *name = take_text(reader);
    int64_t form[2];

    take_into(reader, form, sizeof(form));
    const KilnDType dtype = (KilnDType)form[0];
    const size_t bytes = (size_t)form[1] * kiln_dtype_size(dtype);
    const char *from = take(reader, bytes);
    if (from == NULL)
        return KILN_OK;
    void *data = malloc(bytes + 1);
    if (data == NULL)
        return kiln_error_nomem(err, bytes);
    memcpy(data, from, bytes);
    return kiln_metric_state_restore(state, name, dtype, data, form[1], err);
}

static KilnStatus merge_state(KilnCollectedMetric *metric, Reader *reader, KilnError *err)
{
    KilnMetricState *other = NULL;
    uint32_t n;
    KilnStatus status = kiln_metric_state_new(metric->metric, kiln_metric_state_form(metric->state),
                                              &other, err);

    take_into(reader, &n, sizeof(n));
    for (uint32_t i = 0; i < n && status >= 0 && !reader->failed; i++)
        status = take_array(reader, other, err);
    if (status >= 0 && !reader->failed)
        status = kiln_metric_state_merge(metric->state, other, err);
    kiln_metric_state_free(other);
    return status;
}

static KilnStatus merge_states(KilnMetrics *metrics, KilnPhase phase, Reader *reader,
                               KilnError *err)
{
    KilnStatus status = KILN_OK;
    const char *name;

    while (status >= 0 && *(name = take_text(reader)) != '\0') {
        KilnCollectedMetric *metric = find_state(metrics, phase, name);

        status = metric != NULL ? merge_state(metric, reader, err)
                                : kiln_error_set(err, KILN_E_FORMAT,
                                                 "metric \"%s\" of another rank is unknown: do "
                                                 "all ranks run the same command?",
                                                 name);
    }
    return status;
}

KilnStatus kiln_metrics_merge(KilnMetrics *metrics, KilnPhase phase, int64_t epoch, int64_t step,
                              const char *packed, size_t bytes, KilnError *err)
{
    Reader reader = { .at = packed, .end = packed + bytes };
    KilnStatus status = merge_names(metrics, phase, epoch, step, &reader, err);

    if (status >= 0)
        status = merge_states(metrics, phase, &reader, err);
    if (status >= 0 && reader.failed)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "the metrics of another rank are cut off: do all ranks run the "
                                "same program?");
    return status;
}

/* Metrics in Python. kiln keeps the rows of an epoch, as for metrics that need all of them, and an
 * object computes the value: so results do not depend on batches, and a checkpoint within an epoch
 * needs nothing of Python's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "python/python_class.h"

static bool is_of_classes(const KilnInstance *self)
{
    return kiln_python_class_of(self)->metric.takes == KILN_METRIC_CLASSES;
}

static KilnStatus update(KilnInstance *self, KilnMetricState *state, const KilnMetricRows *rows,
                         KilnError *err)
{
    const int64_t n = rows->count * kiln_metric_state_form(state)->width;
    KilnStatus status = kiln_metric_state_append(state, "scores", KILN_F32, rows->scores, n, err);

    if (status < 0)
        return status;
    return is_of_classes(self)
               ? kiln_metric_state_append(state, "labels", KILN_I32, rows->labels, rows->count, err)
               : kiln_metric_state_append(state, "targets", KILN_F32, rows->targets, n, err);
}

static json_t *names_of(const KilnMetricForm *form)
{
    json_t *names = json_array();
    char buf[24];

    for (int64_t i = 0; i < kiln_form_classes(form); i++)
        kiln_json_add(&names, kiln_json_text(kiln_form_name(form, i, buf)));
    return names;
}

/* The rows as a request; NULL: memory is out. With the lock held. */
static json_t *request_of(KilnInstance *self, const KilnMetricState *state, KilnError *err)
{
    const KilnPythonObject *object = kiln_state(self);
    const KilnMetricForm *form = kiln_metric_state_form(state);
    const bool classes = is_of_classes(self);
    const KilnDType dtype = classes ? KILN_I32 : KILN_F32;
    const void *scores = NULL, *truth = NULL;
    int64_t n_scores = 0, n_truth = 0;
    KilnStatus status = kiln_metric_state_list(state, "scores", KILN_F32, &scores, &n_scores, err);

    if (status >= 0)
        status = kiln_metric_state_list(state, classes ? "labels" : "targets", dtype, &truth,
                                        &n_truth, err);
    if (status < 0)
        return NULL;
    const KilnShape rows = KILN_SHAPE(n_scores / form->width, form->width);
    const KilnShape labels = KILN_SHAPE(n_truth);
    json_t *place = kiln_python_put(object->host, KILN_F32, &rows, scores);
    json_t *of_truth = kiln_python_put(object->host, dtype, classes ? &labels : &rows, truth);
    return json_pack("{s:s, s:o, s:o, s:o}", "call", "compute", "rows", place, "truth", of_truth,
                     "names", names_of(form));
}

static KilnStatus report(KilnMetricState *state, const json_t *values, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < json_array_size(values) && status >= 0; i++) {
        const json_t *pair = json_array_get(values, i);
        const char *name = json_string_value(json_array_get(pair, 0));
        const char *value = json_string_value(json_array_get(pair, 1));

        if (name != NULL && value != NULL)
            status = kiln_metric_state_report(state, name[0] != '\0' ? name : NULL,
                                              strtod(value, NULL), err);
    }
    return status;
}

static KilnStatus compute(KilnInstance *self, KilnMetricState *state, KilnError *err)
{
    const KilnPythonObject *object = kiln_state(self);
    json_t *reply = NULL;

    if (kiln_metric_state_rows(state) == 0)
        return kiln_metric_state_report(state, NULL, (double)NAN, err);
    kiln_python_host_lock(object->host);
    const KilnPythonCall call = { .what = "compute", .request = request_of(self, state, err) };
    KilnStatus status = kiln_python_call(object->host, &call, &reply, err);
    kiln_python_host_unlock(object->host);
    if (status >= 0)
        status = report(state, json_object_get(reply, "values"), err);
    json_decref(reply);
    return status;
}

static int64_t memory(const KilnInstance *self, const KilnMetricForm *form, int64_t rows,
                      int64_t *ret_computing)
{
    const int64_t truth = is_of_classes(self) ? 1 : form->width;
    const int64_t bytes = rows * (form->width + truth) * 4;

    *ret_computing = 2 * bytes; /* in the shared memory, and in Python */
    return bytes;
}

static void complete(KilnPythonClass *class, KilnArena *arena, const json_t *described)
{
    const char *mode = json_string_value(json_object_get(described, "mode"));
    const char *takes = json_string_value(json_object_get(described, "takes"));

    (void)arena;
    class->metric = (KilnMetricOps) {
        .takes = strcmp(takes, "labels") == 0 ? KILN_METRIC_CLASSES : KILN_METRIC_VALUES,
        .mode = strcmp(mode, "max") == 0   ? KILN_MODE_MAX
                : strcmp(mode, "min") == 0 ? KILN_MODE_MIN
                                           : KILN_MODE_AUTO,
        .update = update,
        .compute = compute,
        .memory = memory,
    };
    class->component.ops.metric = &class->metric;
}

const KilnPythonKind kiln_python_metric = {
    .fields = kiln_python_fields,
    .opts_size = sizeof(KilnPythonOptions),
    .timeout = offsetof(KilnPythonOptions, timeout),
    .state_size = sizeof(KilnPythonObject),
    .init = kiln_python_object_init,
    .release = kiln_python_object_release,
    .complete = complete,
};

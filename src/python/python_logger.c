/* Loggers in Python: log(values, step), and open, flush and close where the class has them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "python/python_class.h"

typedef struct State {
    KilnPythonObject object; /* first */
    KilnError save_failure;
} State;

static KilnPythonHost *host_of(KilnInstance *self)
{
    return ((State *)kiln_state(self))->object.host;
}

/* JSON has no NaN: Python reads the text. */
static json_t *value_of(double value)
{
    return isfinite(value) ? json_real(value)
                           : json_string(isnan(value) ? "nan"
                                         : value > 0  ? "inf"
                                                      : "-inf");
}

static KilnStatus open_run(KilnInstance *self, const KilnLogRun *run, KilnError *err)
{
    const char *state = NULL;
    json_t *hparams = json_object();

    if (!kiln_python_class_of(self)->has_open) {
        json_decref(hparams);
        return KILN_OK;
    }
    for (size_t i = 0; i < run->n_hparams; i++)
        kiln_json_put(&hparams, run->hparams[i].name, kiln_json_text(run->hparams[i].value));
    if (run->state != NULL)
        (void)kiln_state_get_str(run->state, "python", &state);
    return kiln_python_tell(host_of(self), "open",
                            json_pack("{s:s, s:{s:o, s:b, s:I, s:o, s:o, s:s?}}", "call", "open",
                                      "run", "dir", kiln_json_text(run->dir), "resumed",
                                      (int)run->resumed, "step", (json_int_t)run->step, "config",
                                      kiln_json_text(run->config), "hparams", hparams, "state",
                                      state),
                            err);
}

static KilnStatus log_metrics(KilnInstance *self, const KilnLogRow *row, KilnError *err)
{
    const State *state = kiln_state(self);
    json_t *values = json_array();

    if (state->save_failure.status < 0) {
        json_decref(values);
        return kiln_python_save_failed(&state->save_failure, err);
    }
    for (size_t i = 0; i < row->n; i++)
        kiln_json_add(&values, json_pack("[o, o]", kiln_json_text(row->metrics[i].name),
                                         value_of(row->metrics[i].value)));
    return kiln_python_tell(host_of(self), "log",
                            json_pack("{s:s, s:o, s:I, s:{s:s, s:I, s:I, s:I, s:f}}", "call", "log",
                                      "metrics", values, "step", (json_int_t)row->step, "row",
                                      "phase", row->phase, "epoch", (json_int_t)row->epoch, "batch",
                                      (json_int_t)row->batch, "samples", (json_int_t)row->samples,
                                      "wall_time", row->wall_time),
                            err);
}

static KilnStatus flush(KilnInstance *self, KilnError *err)
{
    return kiln_python_tell(host_of(self), "flush", json_pack("{s:s}", "call", "flush"), err);
}

static void state_dict(KilnInstance *self, KilnState *saved)
{
    State *state = kiln_state(self);

    kiln_python_save_state(self, saved, &state->save_failure);
}

static KilnStatus close_run(KilnInstance *self, const char *status, const KilnMetric *metrics,
                            size_t n, KilnError *err)
{
    const State *state = kiln_state(self);

    (void)metrics;
    (void)n;
    if (state->save_failure.status < 0 || !kiln_python_class_of(self)->has_close)
        return kiln_python_save_failed(&state->save_failure, err);
    return kiln_python_tell(host_of(self), "close",
                            json_pack("{s:s, s:s}", "call", "close", "status", status), err);
}

static void complete(KilnPythonClass *class, KilnArena *arena, const json_t *described)
{
    (void)arena;
    (void)described;
    class->logger = (KilnLoggerOps) {
        .open = open_run,
        .log_metrics = log_metrics,
        .flush = class->has_flush ? flush : NULL,
        .state_dict = class->has_state ? state_dict : NULL,
        .close = close_run,
    };
    class->component.ops.logger = &class->logger;
}

const KilnPythonKind kiln_python_logger = {
    .fields = kiln_python_fields,
    .opts_size = sizeof(KilnPythonOptions),
    .timeout = offsetof(KilnPythonOptions, timeout),
    .state_size = sizeof(State),
    .init = kiln_python_object_init,
    .release = kiln_python_object_release,
    .complete = complete,
};

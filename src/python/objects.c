/* Hosts of instances: their start, and the state of objects in checkpoints. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "python/option_values.h"
#include "python/python_class.h"
#include "registry/instance.h"
#include "registry/registry.h"

static void print(void *ctx, bool detail, const char *line)
{
    kiln_instance_print(ctx, detail, line);
}

KilnStatus kiln_python_make(const KilnInstance *self, uint64_t seed, const KilnPoll *poll,
                            KilnPythonHost **ret, KilnError *err)
{
    const KilnPythonClass *class = kiln_python_class_of(self);
    const char *opts = kiln_opts(self);
    const KilnPythonUse use = {
        .python = class->env.python,
        .folder = class->env.folder,
        .name = class->name,
        .timeout = *(const double *)(const void *)(opts + class->timeout),
        .print = print,
        .ctx = (void *)self,
    };
    KilnPythonHost *host = NULL;
    json_t *reply = NULL;
    KilnStatus status = kiln_python_host_start(&use, &host, err);

    if (status < 0)
        return status;
    json_t *options = kiln_option_values(class->component.fields, class->n_own, opts);
    const KilnPythonCall call = {
        .what = "__init__",
        .request = json_pack("{s:s, s:s, s:s, s:I, s:o}", "call", "make", "name",
                             class->name + strlen(KILN_PYTHON_PREFIX), "kind",
                             kiln_kind_name(class->component.kind), "seed",
                             (json_int_t)(seed & INT64_MAX), "options", options),
        .poll = poll,
    };
    status = kiln_python_call(host, &call, &reply, err);
    json_decref(reply);
    if (status < 0)
        kiln_python_host_end(host);
    else
        *ret = host;
    return status;
}

KilnStatus kiln_python_tell(KilnPythonHost *host, const char *what, json_t *request, KilnError *err)
{
    const KilnPythonCall call = { .what = what, .request = request };
    json_t *reply = NULL;

    kiln_python_host_lock(host);
    KilnStatus status = kiln_python_call(host, &call, &reply, err);
    kiln_python_host_unlock(host);
    json_decref(reply);
    return status;
}

KilnStatus kiln_python_object_init(KilnInstance *self, KilnError *err)
{
    KilnPythonObject *state = kiln_state(self);

    return kiln_python_make(self, 0, NULL, &state->host, err);
}

void kiln_python_object_release(KilnInstance *self)
{
    KilnPythonObject *state = kiln_state(self);

    kiln_python_host_end(state->host);
}

/* ---- State ----------------------------------------------------------------------------------- */

#define STATE "python" /* the name of the text in a checkpoint */

void kiln_python_save_state(KilnInstance *self, KilnState *state, KilnError *failure)
{
    KilnPythonObject *object = kiln_state(self);
    const KilnPythonCall call = { .what = "state_dict",
                                  .request = json_pack("{s:s}", "call", "state_dict") };
    json_t *reply = NULL;

    kiln_python_host_lock(object->host);
    KilnStatus status = kiln_python_call(object->host, &call, &reply, failure);
    kiln_python_host_unlock(object->host);
    if (status >= 0)
        kiln_state_set_str(state, STATE, json_string_value(json_object_get(reply, "state")));
    json_decref(reply);
}

KilnStatus kiln_python_save_failed(const KilnError *failure, KilnError *err)
{
    if (failure->status < 0 && err != NULL)
        *err = *failure;
    return failure->status;
}

KilnStatus kiln_python_load_state(KilnInstance *self, const KilnState *state, KilnError *err)
{
    KilnPythonObject *object = kiln_state(self);
    const char *saved = NULL;

    if (!kiln_state_get_str(state, STATE, &saved) || saved == NULL)
        return KILN_OK;
    return kiln_python_tell(object->host, "load_state_dict",
                            json_pack("{s:s, s:s}", "call", "load_state_dict", "state", saved),
                            err);
}

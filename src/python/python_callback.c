/* Callbacks in Python: hooks get the trainer's facts, and say what it shall do. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "python/python_class.h"
#include "registry/trainer_hooks.h"

typedef struct State {
    KilnPythonObject object; /* first */
    KilnError save_failure;
} State;

/* The trainer during a hook, for questions. */
typedef struct Hook {
    KilnInstance *self;
    KilnTrainer *trainer;
} Hook;

/* ---- Facts and questions ----------------------------------------------------------------------
 */

/* JSON has no NaN: null. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* `why`: the error of the run; NULL: none. */
static json_t *facts_of(const KilnTrainer *trainer, const KilnError *why)
{
    double loss = NAN;

    (void)kiln_trainer_loss(trainer, &loss);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o, s:o?}", "epoch",
                     (json_int_t)kiln_trainer_epoch(trainer), "global_step",
                     (json_int_t)kiln_trainer_global_step(trainer), "batch",
                     (json_int_t)kiln_trainer_batch(trainer), "batches",
                     (json_int_t)kiln_trainer_batches(trainer), "max_epochs",
                     (json_int_t)kiln_trainer_max_epochs(trainer), "samples",
                     (json_int_t)kiln_trainer_samples(trainer), "phase",
                     kiln_trainer_phase(trainer), "run_dir",
                     kiln_json_text(kiln_trainer_run_dir(trainer)), "learning_rate",
                     number(kiln_trainer_learning_rate(trainer)), "loss", number(loss), "error",
                     why != NULL ? kiln_json_text(why->text) : NULL);
}

static json_t *metrics_of(const KilnTrainer *trainer)
{
    const KilnMetric *metrics = NULL;
    const size_t n = kiln_trainer_metrics(trainer, &metrics);
    json_t *values = json_object();

    for (size_t i = 0; i < n; i++)
        kiln_json_put(&values, metrics[i].name, number(metrics[i].value));
    return json_pack("{s:o}", "metrics", values);
}

static json_t *outputs_of(KilnPythonHost *host, const KilnTrainer *trainer)
{
    KilnOutputView views[KILN_STEP_OUTPUTS];
    const size_t n = kiln_trainer_outputs(trainer, views);
    json_t *outputs = json_object();

    for (size_t i = 0; i < n; i++)
        kiln_json_put(&outputs, views[i].name,
                      kiln_python_put(host, KILN_F32, &views[i].shape, views[i].data));
    return json_pack("{s:o}", "outputs", outputs);
}

static json_t *feature_of(KilnPythonHost *host, const KilnTrainer *trainer, const char *name)
{
    int64_t n = 0;
    const void *data = name != NULL ? kiln_trainer_feature(trainer, name, &n) : NULL;
    const KilnFeature *feature = data != NULL ? kiln_spec_feature(kiln_trainer_spec(trainer), name)
                                              : NULL;

    if (feature == NULL || feature->varies || feature->shape.rank == KILN_MAX_RANK)
        return json_pack("{s:n}", "place");
    KilnShape shape = { .rank = feature->shape.rank + 1, .dim = { n } };
    memcpy(shape.dim + 1, feature->shape.dim, (size_t)feature->shape.rank * sizeof(int64_t));
    return json_pack("{s:o}", "place", kiln_python_put(host, feature->dtype, &shape, data));
}

static json_t *answer(void *ctx, const char *ask, const json_t *question)
{
    const Hook *hook = ctx;
    const State *state = kiln_state(hook->self);

    if (strcmp(ask, "metrics") == 0)
        return metrics_of(hook->trainer);
    if (strcmp(ask, "outputs") == 0)
        return outputs_of(state->object.host, hook->trainer);
    return feature_of(state->object.host, hook->trainer,
                      json_string_value(json_object_get(question, "name")));
}

/* ---- What it shall do ---------------------------------------------------------------------------
 */

static KilnStatus act(const Hook *hook, const json_t *action, KilnError *err)
{
    const char *log = json_string_value(json_object_get(action, "log"));
    const char *print = json_string_value(json_object_get(action, "print"));
    const char *stop = json_string_value(json_object_get(action, "stop"));
    const char *save = json_string_value(json_object_get(action, "save"));
    const char *value = json_string_value(json_object_get(action, "value"));

    if (log != NULL && value != NULL)
        kiln_trainer_log(hook->trainer, log, strtod(value, NULL),
                         json_is_true(json_object_get(action, "prog_bar")) ? KILN_LOG_PROG_BAR : 0);
    if (print != NULL)
        kiln_trainer_print(hook->trainer, "%s", print);
    if (stop != NULL)
        kiln_trainer_stop(hook->trainer, stop);
    return save != NULL ? kiln_trainer_save(hook->trainer, hook->self, save, 0, err) : KILN_OK;
}

static KilnStatus call_hook(KilnInstance *self, KilnTrainer *trainer, const char *name,
                            const KilnError *why, KilnError *err)
{
    const State *state = kiln_state(self);
    Hook hook = { self, trainer };
    json_t *reply = NULL;

    if (state->save_failure.status < 0)
        return kiln_python_save_failed(&state->save_failure, err);
    const KilnPythonCall call = { .what = name,
                                  .request = json_pack("{s:s, s:s, s:o}", "call", "hook", "name",
                                                       name, "facts", facts_of(trainer, why)),
                                  .answer = answer,
                                  .ctx = &hook };
    kiln_python_host_lock(state->object.host);
    KilnStatus status = kiln_python_call(state->object.host, &call, &reply, err);
    kiln_python_host_unlock(state->object.host);
    const json_t *done = json_object_get(reply, "done");
    for (size_t i = 0; i < json_array_size(done) && status >= 0; i++)
        status = act(&hook, json_array_get(done, i), err);
    json_decref(reply);
    return status;
}

/* ---- Hooks
 * ----------------------------------------------------------------------------------------- */

/* describe.py lists those that a class may have. */
#define DEFINE_HOOK(hook)                                                                          \
    static KilnStatus hook(KilnInstance *self, KilnTrainer *trainer, KilnError *err)               \
    {                                                                                              \
        return call_hook(self, trainer, #hook, NULL, err);                                         \
    }
KILN_TRAINER_HOOKS(DEFINE_HOOK)

static const struct {
    const char *name;
    KilnHook *hook;
    size_t offset;
} hooks[] = {
#define ROW(hook) { #hook, hook, offsetof(KilnCallbackOps, hook) },
    KILN_TRAINER_HOOKS(ROW)
};

/* The run has failed already: what fails here is only reported. */
static void on_exception(KilnInstance *self, KilnTrainer *trainer, const KilnError *why)
{
    KilnError err = { 0 };

    if (call_hook(self, trainer, "on_exception", why, &err) < 0)
        kiln_trainer_print(trainer, "warning: %s", err.text);
}

static void state_dict(KilnInstance *self, KilnState *saved)
{
    State *state = kiln_state(self);

    kiln_python_save_state(self, saved, &state->save_failure);
}

/* Report a state that could not be saved, though the class may have no further hooks. */
static KilnStatus on_save_checkpoint(KilnInstance *self, KilnTrainer *trainer, const char *dir,
                                     KilnError *err)
{
    const State *state = kiln_state(self);

    (void)trainer;
    (void)dir;
    return kiln_python_save_failed(&state->save_failure, err);
}

static const char *const *names_of(KilnArena *arena, const json_t *list)
{
    const size_t n = json_array_size(list);
    const char **names = n > 0 ? kiln_arena_alloc(arena, (n + 1) * sizeof(*names)) : NULL;

    for (size_t i = 0; names != NULL && i < n; i++)
        names[i] = kiln_arena_strdup(arena, json_string_value(json_array_get(list, i)));
    return names;
}

/* The flags of the logged names' modes. */
static const unsigned *flags_of(KilnArena *arena, const json_t *modes)
{
    const size_t n = json_array_size(modes);
    unsigned *flags = n > 0 ? kiln_arena_alloc(arena, n * sizeof(*flags)) : NULL;

    for (size_t i = 0; flags != NULL && i < n; i++) {
        const char *mode = json_string_value(json_array_get(modes, i));

        flags[i] = (strcmp(mode, "min") == 0 ? (unsigned)KILN_LOG_LOWER_IS_BETTER : 0u) |
                   (strcmp(mode, "max") == 0 ? (unsigned)KILN_LOG_HIGHER_IS_BETTER : 0u);
    }
    return flags;
}

static void set_hook(KilnCallbackOps *ops, const char *name)
{
    for (size_t i = 0; i < KILN_COUNT(hooks); i++)
        if (strcmp(hooks[i].name, name) == 0)
            memcpy((char *)ops + hooks[i].offset, &hooks[i].hook, sizeof(hooks[i].hook));
    if (strcmp(name, "on_exception") == 0)
        ops->on_exception = on_exception;
}

static void complete(KilnPythonClass *class, KilnArena *arena, const json_t *described)
{
    const json_t *list = json_object_get(described, "hooks");

    class->callback = (KilnCallbackOps) {
        .state_dict = class->has_state ? state_dict : NULL,
        .load_state_dict = class->has_state ? kiln_python_load_state : NULL,
        .on_save_checkpoint = class->has_state ? on_save_checkpoint : NULL,
        .logs = names_of(arena, json_object_get(described, "logs")),
        .log_flags = flags_of(arena, json_object_get(described, "log_modes")),
    };
    for (size_t i = 0; i < json_array_size(list); i++)
        set_hook(&class->callback, json_string_value(json_array_get(list, i)));
    class->component.ops.callback = &class->callback;
}

const KilnPythonKind kiln_python_callback = {
    .fields = kiln_python_fields,
    .opts_size = sizeof(KilnPythonOptions),
    .timeout = offsetof(KilnPythonOptions, timeout),
    .state_size = sizeof(State),
    .init = kiln_python_object_init,
    .release = kiln_python_object_release,
    .complete = complete,
};

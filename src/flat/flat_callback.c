/* Callbacks of callers that know no structs: one function that gets the hook's name. */
#include <string.h>

#include "flat/flat_component.h"
#include "registry/trainer_hooks.h"

static KilnStatus call(KilnInstance *self, const char *hook, KilnTrainer *trainer, KilnError *err)
{
    return kiln_flat_component_of(self)->hook(kiln_flat_object(self), hook, trainer, err);
}

#define DEFINE(name)                                                                               \
    static KilnStatus call_##name(KilnInstance *self, KilnTrainer *trainer, KilnError *err)        \
    {                                                                                              \
        return call(self, #name, trainer, err);                                                    \
    }
KILN_TRAINER_HOOKS(DEFINE)

#define ROW(name) { #name, offsetof(KilnCallbackOps, name), call_##name },
static const struct {
    const char *name;
    size_t offset;
    KilnHook *call;
} hooks[] = { KILN_TRAINER_HOOKS(ROW) };

KilnStatus kiln_flat_callback_hook(KilnFlatComponent *component, const char *hook,
                                   KilnFlatHook *function, KilnError *err)
{
    for (size_t i = 0; i < KILN_COUNT(hooks); i++)
        if (strcmp(hooks[i].name, hook) == 0) {
            memcpy((char *)&component->callback + hooks[i].offset, &hooks[i].call,
                   sizeof(hooks[i].call));
            component->hook = function;
            return KILN_OK;
        }
    return kiln_error_set(err, KILN_E_KEY, "there is no hook \"%s\"", hook);
}

KilnStatus kiln_flat_callback_logs(KilnFlatComponent *component, const char *name, const char *mode,
                                   KilnError *err)
{
    const char *const *before = component->callback.logs;
    const KilnChoice *choice = kiln_modes;
    size_t n = 0;

    while (choice->name != NULL && strcmp(choice->name, mode) != 0)
        choice++;
    if (choice->name == NULL)
        return kiln_error_set(err, KILN_E_RANGE,
                              "logs of %s: %s: expected min, max or auto, got \"%s\"",
                              component->component.name, name, mode);
    while (before != NULL && before[n] != NULL)
        n++;
    const char **logs = kiln_arena_alloc(&component->arena, (n + 2) * sizeof(*logs));
    unsigned *flags = kiln_arena_alloc(&component->arena, (n + 1) * sizeof(*flags));
    if (logs == NULL || flags == NULL)
        return kiln_error_nomem(err, n * sizeof(*logs));
    if (n > 0) {
        memcpy(logs, before, n * sizeof(*logs));
        memcpy(flags, component->callback.log_flags, n * sizeof(*flags));
    }
    logs[n] = kiln_arena_strdup(&component->arena, name);
    flags[n] = (choice->value == KILN_MODE_MIN ? (unsigned)KILN_LOG_LOWER_IS_BETTER : 0u) |
               (choice->value == KILN_MODE_MAX ? (unsigned)KILN_LOG_HIGHER_IS_BETTER : 0u);
    component->callback.logs = logs;
    component->callback.log_flags = flags;
    return component->arena.failed ? kiln_error_nomem(err, n * sizeof(*logs)) : KILN_OK;
}

/* ---- State ----------------------------------------------------------------------------------- */

/* A state_dict can't fail: the checkpoint says why it has no state, and loading it fails. */
static void state_dict(KilnInstance *self, KilnState *state)
{
    KilnError err = { 0 };

    if (kiln_flat_component_of(self)->save(kiln_flat_object(self), state, &err) < 0)
        kiln_state_set_str(state, "error", err.text);
}

static KilnStatus load_state_dict(KilnInstance *self, const KilnState *state, KilnError *err)
{
    const char *error;

    if (kiln_state_get_str(state, "error", &error))
        return kiln_error_set(err, KILN_E_FORMAT, "the checkpoint has no state of it: %s", error);
    return kiln_flat_component_of(self)->load(kiln_flat_object(self), state, err);
}

void kiln_flat_callback_state(KilnFlatComponent *component, KilnFlatSave *save, KilnFlatLoad *load)
{
    component->save = save;
    component->load = load;
    component->callback.state_dict = state_dict;
    component->callback.load_state_dict = load_state_dict;
}

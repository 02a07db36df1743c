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

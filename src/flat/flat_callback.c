/* Callbacks of callers that know no structs: one function that gets the hook's name. */
#include <stddef.h>
#include <string.h>

#include "flat/flat_component.h"

static KilnStatus call(KilnInstance *self, const char *hook, KilnTrainer *trainer, KilnError *err)
{
    return kiln_flat_component_of(self)->hook(kiln_flat_object(self), hook, trainer, err);
}

/* The hooks, in the order of KilnCallbackOps. */
#define HOOKS(X)                                                                                   \
    X(setup)                                                                                       \
    X(on_fit_start)                                                                                \
    X(on_sanity_check_start)                                                                       \
    X(on_sanity_check_end)                                                                         \
    X(on_train_start)                                                                              \
    X(on_train_epoch_start)                                                                        \
    X(on_train_batch_start)                                                                        \
    X(on_train_batch_end)                                                                          \
    X(on_train_epoch_end)                                                                          \
    X(on_validation_start)                                                                         \
    X(on_validation_epoch_start)                                                                   \
    X(on_validation_batch_start)                                                                   \
    X(on_validation_batch_end)                                                                     \
    X(on_validation_epoch_end)                                                                     \
    X(on_validation_end)                                                                           \
    X(on_train_end)                                                                                \
    X(on_fit_end)                                                                                  \
    X(on_test_start)                                                                               \
    X(on_test_epoch_start)                                                                         \
    X(on_test_batch_start)                                                                         \
    X(on_test_batch_end)                                                                           \
    X(on_test_epoch_end)                                                                           \
    X(on_test_end)                                                                                 \
    X(on_predict_start)                                                                            \
    X(on_predict_epoch_start)                                                                      \
    X(on_predict_batch_start)                                                                      \
    X(on_predict_batch_end)                                                                        \
    X(on_predict_epoch_end)                                                                        \
    X(on_predict_end)                                                                              \
    X(teardown)

#define DEFINE(name)                                                                               \
    static KilnStatus call_##name(KilnInstance *self, KilnTrainer *trainer, KilnError *err)        \
    {                                                                                              \
        return call(self, #name, trainer, err);                                                    \
    }
HOOKS(DEFINE)

#define ROW(name) { #name, offsetof(KilnCallbackOps, name), call_##name },
static const struct {
    const char *name;
    size_t offset;
    KilnHook *call;
} hooks[] = { HOOKS(ROW) };
_Static_assert(sizeof(hooks) / sizeof(hooks[0]) ==
                   offsetof(KilnCallbackOps, on_before_zero_grad) / sizeof(KilnHook *),
               "every hook with a trainer is listed");

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

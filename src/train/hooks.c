/* Calling callbacks. */
#include <string.h>

#include "train/trainer.h"

static KilnHook *hook_at(const KilnCallbackOps *ops, size_t offset)
{
    KilnHook *hook;

    memcpy(&hook, (const char *)ops + offset, sizeof(hook));
    return hook;
}

KilnStatus kiln_hooks_call(KilnTrainer *trainer, size_t offset, KilnHookWho who, KilnError *err)
{
    for (size_t i = 0; i < trainer->n_callbacks; i++) {
        KilnInstance *callback = trainer->callbacks[i];
        const KilnCallbackOps *ops = kiln_instance_component(callback)->ops.callback;
        KilnHook *hook = hook_at(ops, offset);

        if (hook == NULL || (who != KILN_HOOK_ALL && ops->saves != (who == KILN_HOOK_SAVING)))
            continue;
        KilnStatus status = hook(callback, trainer, err);
        if (status < 0) {
            (void)kiln_error_prefix(err, "%s: ", kiln_instance_path(callback));
            return status;
        }
    }
    return KILN_OK;
}

bool kiln_trainer_interrupted(KilnTrainer *trainer)
{
    if (trainer->env->stop != NULL && *trainer->env->stop != 0)
        trainer->interrupted = true;
    return trainer->interrupted;
}

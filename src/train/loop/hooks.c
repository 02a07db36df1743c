/* Sorts callbacks by rank, and calls their hooks and the module's. */
#include "train/loop/hooks.h"

#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "config/provenance/origin.h"
#include "graph/graph.h"
#include "kiln/tools/clock.h"
#include "registry/registry.h"
#include "registry/trainer_hooks.h"
#include "train/trainer.h"

/* ---- The order ---------------------------------------------------------------------- */

static const KilnCallbackOps *callback_ops(const KilnInstance *callback)
{
    return kiln_instance_component(callback)->ops.callback;
}

/* Insertion sort is stable: within a rank, the order of the config remains. */
static void sort_callbacks(KilnTrainer *trainer)
{
    for (size_t i = 1; i < trainer->n_callbacks; i++) {
        KilnInstance *callback = trainer->callbacks[i];
        size_t j = i;

        for (;
             j > 0 && callback_ops(trainer->callbacks[j - 1])->rank > callback_ops(callback)->rank;
             j--)
            trainer->callbacks[j] = trainer->callbacks[j - 1];
        trainer->callbacks[j] = callback;
    }
}

static void add(KilnHooks *hooks, const KilnCallbackOps *ops, KilnInstance *instance)
{
    hooks->all[hooks->n_all].ops = ops;
    hooks->all[hooks->n_all++].instance = instance;
}

/* The module follows the plain callbacks. */
static void fill_all(KilnTrainer *trainer)
{
    const KilnCallbackOps *own = kiln_instance_component(trainer->module)->ops.module->hooks;
    size_t i = 0;

    for (; i < trainer->n_callbacks && callback_ops(trainer->callbacks[i])->rank == KILN_RANK_PLAIN;
         i++)
        add(&trainer->hooks, callback_ops(trainer->callbacks[i]), trainer->callbacks[i]);
    if (own != NULL)
        add(&trainer->hooks, own, trainer->module);
    for (; i < trainer->n_callbacks; i++)
        add(&trainer->hooks, callback_ops(trainer->callbacks[i]), trainer->callbacks[i]);
}

static void fill_list(KilnHooks *hooks, size_t number, KilnHookCall *calls)
{
    KilnHookList *list = &hooks->lists[number];

    *list = (KilnHookList) { .calls = calls };
    for (size_t i = 0; i < hooks->n_all; i++) {
        KilnHook *hook;

        memcpy(&hook, (const char *)hooks->all[i].ops + number * sizeof(hook), sizeof(hook));
        if (hook == NULL)
            continue;
        calls[list->n++] = (KilnHookCall) { .hook = hook, .instance = hooks->all[i].instance };
        list->n_saving += hooks->all[i].ops->rank == KILN_RANK_SAVES;
    }
}

KilnStatus kiln_hooks_set_up(KilnTrainer *trainer, KilnError *err)
{
    KilnHooks *hooks = &trainer->hooks;
    const size_t most = trainer->n_callbacks + 1;

    hooks->all = calloc(most, sizeof(*hooks->all));
    hooks->calls = calloc(most * KILN_HOOK_COUNT, sizeof(*hooks->calls));
    if (hooks->all == NULL || hooks->calls == NULL)
        return kiln_error_nomem(err, most * KILN_HOOK_COUNT * sizeof(*hooks->calls));
    sort_callbacks(trainer);
    fill_all(trainer);
    for (size_t i = 0; i < KILN_HOOK_COUNT; i++)
        fill_list(hooks, i, hooks->calls + i * most);
    return KILN_OK;
}

void kiln_hooks_release(KilnHooks *hooks)
{
    free(hooks->all);
    free(hooks->calls);
    *hooks = (KilnHooks) { 0 };
}

const char *kiln_hook_name(size_t number)
{
#define NAME(hook) [offsetof(KilnCallbackOps, hook) / sizeof(KilnHook *)] = #hook,
    static const char *const names[KILN_HOOK_COUNT] = { KILN_TRAINER_HOOKS(NAME) };
#undef NAME

    return names[number];
}

/* ---- Calling ------------------------------------------------------------------------ */

static KilnStatus call_one(KilnTrainer *trainer, KilnHookCall *call, const char *name,
                           KilnError *err)
{
    if (trainer->graph == NULL || !trainer->graph->profile)
        return KILN_CALLED(call->instance, name, call->hook(call->instance, trainer, err), err);
    const double start = kiln_clock();
    const KilnStatus status = KILN_CALLED(call->instance, name,
                                          call->hook(call->instance, trainer, err), err);
    call->seconds += kiln_clock() - start;
    call->calls++;
    return status;
}

/* Add to the error whose it is: the component, unless it begins with a place in the config, and the
 * plugin that it comes from. */
static KilnStatus add_who(const KilnTrainer *trainer, const KilnInstance *who, KilnStatus status,
                          KilnError *err)
{
    const KilnRegistry *registry = trainer->env != NULL ? trainer->env->registry : NULL;
    const KilnPlugin *plugin = registry != NULL
                                   ? kiln_registry_plugin_of(registry, kiln_instance_component(who))
                                   : NULL;

    if (err != NULL && kiln_origin_prefix(err->text, &err->origin) == 0)
        (void)kiln_error_prefix(err, "%s: ", kiln_instance_path(who));
    if (plugin != NULL && err != NULL) {
        const size_t length = strlen(err->text);

        snprintf(err->text + length, sizeof(err->text) - length, " (of the plugin %s)",
                 plugin->path);
    }
    return status;
}

KilnStatus kiln_hooks_call(KilnTrainer *trainer, size_t offset, KilnHookSubset subset,
                           KilnError *err)
{
    const size_t number = offset / sizeof(KilnHook *);
    const KilnHookList *list = &trainer->hooks.lists[number];
    const size_t others = list->n - list->n_saving;
    const size_t end = subset == KILN_HOOKS_NOT_SAVING ? others : list->n;

    for (size_t i = subset == KILN_HOOKS_SAVING ? others : 0; i < end; i++) {
        KilnStatus status = call_one(trainer, &list->calls[i], kiln_hook_name(number), err);

        if (status < 0)
            return add_who(trainer, list->calls[i].instance, status, err);
    }
    /* Saves requested by callbacks begin after the last of them. */
    return subset == KILN_HOOKS_NOT_SAVING ? KILN_OK : kiln_save_requests_commit(trainer, err);
}

void kiln_hooks_record(KilnTrainer *trainer, size_t offset, const char *name,
                       const KilnRecording *at)
{
    const KilnHooks *hooks = &trainer->hooks;

    for (size_t i = 0; i < hooks->n_all; i++) {
        KilnRecordHook *hook;

        memcpy(&hook, (const char *)hooks->all[i].ops + offset, sizeof(hook));
        if (hook == NULL)
            continue;
        kiln_call_enter(hooks->all[i].instance, name);
        hook(hooks->all[i].instance, trainer, at);
        kiln_call_leave();
    }
}

void kiln_hooks_exception(KilnTrainer *trainer, const KilnError *why)
{
    const KilnHooks *hooks = &trainer->hooks;

    for (size_t i = 0; i < hooks->n_all; i++)
        if (hooks->all[i].ops->on_exception != NULL) {
            kiln_call_enter(hooks->all[i].instance, "on_exception");
            hooks->all[i].ops->on_exception(hooks->all[i].instance, trainer, why);
            kiln_call_leave();
        }
    (void)!kiln_save_requests_commit(trainer, NULL);
}

KilnStatus kiln_hooks_end(KilnTrainer *trainer, KilnStatus status, KilnError *err)
{
    KilnError none = { 0 };

    if (status >= 0)
        return KILN_CALL(trainer, teardown, err);
    kiln_hooks_exception(trainer, err != NULL ? err : &none);
    (void)!KILN_CALL(trainer, teardown, NULL);
    return status;
}

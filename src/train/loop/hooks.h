/* Calls the hooks of callbacks and of the module, in order. */
#ifndef KILN_TRAIN_LOOP_HOOKS_H
#define KILN_TRAIN_LOOP_HOOKS_H

#include "kiln/trainer.h"

/* KilnCallbackOps begins with its plain hooks. */
enum { KILN_HOOK_COUNT = offsetof(KilnCallbackOps, on_before_zero_grad) / sizeof(KilnHook *) };

typedef struct KilnHookCall {
    KilnHook *hook;
    KilnInstance *instance;
    double seconds; /* spent in it, with trainer.profiler */
    int64_t calls;  /* likewise */
} KilnHookCall;

/* The calls of one hook, in order. */
typedef struct KilnHookList {
    KilnHookCall *calls;
    size_t n, n_saving; /* the last n_saving of the n save checkpoints */
} KilnHookList;

typedef struct KilnHooks {
    KilnHookCall *calls; /* memory of all lists */
    KilnHookList lists[KILN_HOOK_COUNT];
    struct {
        const KilnCallbackOps *ops;
        KilnInstance *instance;
    } * all; /* the callbacks in order, with the module among them if it has hooks */
    size_t n_all;
} KilnHooks;

/* Callbacks that save checkpoints run last, after the values that the others logged were sent
 * to the loggers. */
typedef enum KilnHookSubset {
    KILN_HOOKS_ALL,
    KILN_HOOKS_NOT_SAVING,
    KILN_HOOKS_SAVING
} KilnHookSubset;

/* Put callbacks and module in order. */
KILN_NODISCARD KilnStatus kiln_hooks_set_up(KilnTrainer *trainer, KilnError *err);
void kiln_hooks_release(KilnHooks *hooks);
/* Call a hook of everyone who has it. */
#define KILN_CALL(trainer, hook, err)                                                              \
    kiln_hooks_call(trainer, offsetof(KilnCallbackOps, hook), KILN_HOOKS_ALL, err)
/* `offset` is that of the hook in KilnCallbackOps. */
KILN_NODISCARD KilnStatus kiln_hooks_call(KilnTrainer *trainer, size_t offset,
                                          KilnHookSubset subset, KilnError *err);
/* Call a hook that records operations into the current step. */
#define KILN_RECORD(trainer, hook, at)                                                             \
    kiln_hooks_record(trainer, offsetof(KilnCallbackOps, hook), #hook, at)
void kiln_hooks_record(KilnTrainer *trainer, size_t offset, const char *name,
                       const KilnRecording *at);
/* "on_train_batch_end"; `number` is below KILN_HOOK_COUNT. */
const char *kiln_hook_name(size_t number);
void kiln_hooks_exception(KilnTrainer *trainer, const KilnError *why);
/* Call teardown, after on_exception where `status` says that the run failed by *err; returns that
 * status, or teardown's. */
KILN_NODISCARD KilnStatus kiln_hooks_end(KilnTrainer *trainer, KilnStatus status, KilnError *err);

#endif

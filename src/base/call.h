/* Tracks which function of which component a thread is in, for crash reports and for errors without
 * a reason. */
#ifndef KILN_BASE_CALL_H
#define KILN_BASE_CALL_H

#include "kiln/component.h"

typedef struct KilnCallee {
    /* NULL: the plugin at `path` is being loaded; without a path, the kernel of the operation of a
     * component runs, whose name is `hook`. */
    const KilnComponent *component;
    const char *path;      /* in the config ("callbacks.timer"); borrowed for the call */
    const char *hook;      /* "on_train_start"; static text */
    const void *arguments; /* of a kernel: its KilnOpCall; NULL: another function, or a part of the
                            * kernel in another thread */
} KilnCallee;

/* Before a component's function is called, and after it. Calls nest: a task calls its model. */
void kiln_call_enter(const KilnInstance *who, const char *hook);
void kiln_call_leave(void);
/* The same of a function that is called without an instance (KilnComponent.check). */
void kiln_call_enter_component(const KilnComponent *component, const char *path, const char *hook);
/* The same of the kernel of an operation that a component defines (kiln/custom_op.h). */
void kiln_call_enter_kernel(const char *operation, const void *arguments);
/* The same of what another thread was in, as a part of its work runs in this one. */
void kiln_call_enter_again(const KilnCallee *call);
/* Give a failure without a message one; returns `status`. */
KilnStatus kiln_call_result(KilnStatus status, KilnError *err);
/* Forget what a process entered before it forked this one. */
void kiln_call_clear(void);
/* The innermost call of this thread; NULL: none. Async-signal-safe. */
const KilnCallee *kiln_call_current(void);

/* From now on, call `observer` after each of these changes, in the thread that makes it: `now` is
 * the innermost call of that thread, NULL: none; `left`: the one that has just ended; NULL: `now`
 * has just begun. NULL: nobody observes. To be set while no other thread runs. */
typedef void KilnCallObserver(void *ctx, const KilnCallee *now, const KilnCallee *left);
void kiln_call_observe(KilnCallObserver *observer, void *ctx);

/* `call` is the call of a component's function, which returns a status. */
#define KILN_CALLED(who, hook, call, err) (kiln_call_enter(who, hook), kiln_call_result(call, err))

#endif

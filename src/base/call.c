/* The calls of components' functions that a thread is in, innermost last. */
#include "base/call.h"

#include <signal.h>

enum { DEEPEST = 16 }; /* what lies deeper is counted and not kept */

/* A signal handler has no other way to reach them. In memory that exists from the thread's
 * start: a handler must not allocate it. */
static _Thread_local KilnCallee calls[DEEPEST] __attribute__((tls_model("initial-exec")));
static _Thread_local volatile sig_atomic_t depth __attribute__((tls_model("initial-exec")));

/* Set for whole processes that check components (cli/contract/). */
static KilnCallObserver *observe;
static void *observer_ctx;

void kiln_call_observe(KilnCallObserver *observer, void *ctx)
{
    observe = observer;
    observer_ctx = ctx;
}

static void enter(KilnCallee call)
{
    if (depth < DEEPEST)
        calls[depth] = call;
    depth = depth + 1;
    if (observe != NULL)
        observe(observer_ctx, kiln_call_current(), NULL);
}

void kiln_call_enter_again(const KilnCallee *call)
{
    KilnCallee part = *call;

    part.arguments = NULL;
    enter(part);
}

void kiln_call_enter_component(const KilnComponent *component, const char *path, const char *hook)
{
    enter((KilnCallee) { component, path, hook, NULL });
}

void kiln_call_enter_kernel(const char *operation, const void *arguments)
{
    enter((KilnCallee) { .hook = operation, .arguments = arguments });
}

void kiln_call_enter(const KilnInstance *who, const char *hook)
{
    if (who == NULL) /* a loader without a datamodule */
        enter((KilnCallee) { 0 });
    else
        kiln_call_enter_component(kiln_instance_component(who), kiln_instance_path(who), hook);
}

void kiln_call_leave(void)
{
    static const KilnCallee deep;

    depth = depth - 1;
    if (observe != NULL)
        observe(observer_ctx, kiln_call_current(), depth < DEEPEST ? &calls[depth] : &deep);
}

KilnStatus kiln_call_result(KilnStatus status, KilnError *err)
{
    const KilnCallee *call = kiln_call_current();

    if (status < 0 && err != NULL && err->text[0] == '\0' && call != NULL &&
        call->component != NULL)
        kiln_error_set(err, status, "%s/%s failed in %s and gave no reason",
                       kiln_kind_name(call->component->kind), call->component->name, call->hook);
    kiln_call_leave();
    return status;
}

void kiln_call_clear(void)
{
    depth = 0;
}

const KilnCallee *kiln_call_current(void)
{
    const int top = depth > DEEPEST ? DEEPEST : depth;

    return top > 0 && (calls[top - 1].path != NULL || calls[top - 1].hook != NULL) ? &calls[top - 1]
                                                                                   : NULL;
}

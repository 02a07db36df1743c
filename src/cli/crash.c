/* The handler of crash signals: names the component that crashed, or repairs an access to a file
 * that was cut short. It is async-signal-safe: it reads memory and writes to a buffer of its own
 * and to standard error. The same message where a component ends the process by exit(). */
#define _XOPEN_SOURCE 700 /* sigaltstack */
#include "cli/crash.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/call.h"
#include "base/system/mapping.h"
#include "registry/registry.h"

static const struct {
    int number;
    const char *name, *meaning;
} crashes[] = {
    { SIGSEGV, "SIGSEGV", "invalid memory access" },
    { SIGBUS, "SIGBUS", "memory beyond the end of its file" },
    { SIGFPE, "SIGFPE", "an impossible integer operation, such as a division by zero" },
    { SIGILL, "SIGILL", "an instruction that the processor does not have" },
    { SIGABRT, "SIGABRT", "abort() or a failed assert()" },
};

/* File-scope because a signal handler has no other way to reach them. */
static const KilnRegistry *known;
static char command_name[32];
static struct sigaction before[KILN_COUNT(crashes)];
/* A stack that has overflowed has no room for a handler. */
static char spare_stack[1 << 16];

typedef struct Line {
    char text[1024];
    size_t length;
} Line;

/* Append texts; NULL is the last. */
static void put(Line *line, const char *const *texts)
{
    for (; *texts != NULL; texts++)
        for (const char *p = *texts; *p != '\0' && line->length < sizeof(line->text); p++)
            line->text[line->length++] = *p;
}

/* Of a call that has a component. */
static void put_function(Line *line, const KilnCallee *call)
{
    const KilnPlugin *plugin = known != NULL ? kiln_registry_plugin_of(known, call->component)
                                             : NULL;
    put(line, (const char *const[]) {
                  " in ", call->hook, " of ", kiln_kind_name(call->component->kind), "/",
                  call->component->name, " (", call->path,
                  plugin != NULL ? "), of the plugin " : "), which is built in: please report it",
                  plugin != NULL ? plugin->path : NULL, NULL });
}

/* Where the crash is in nobody's function, a plugin may have written beyond its memory before. */
static void put_nobody(Line *line)
{
    put(line, (const char *const[]) { ", in no function of a component", NULL });
    for (size_t i = 0; known != NULL && i < known->plugin_count; i++)
        if (!known->plugins[i].python) {
            put(line, (const char *const[]) {
                          "; perhaps a plugin wrote beyond its memory before: build ",
                          known->plugins[i].path,
                          " with -g -fsanitize=address, and run with "
                          "LD_PRELOAD=$(cc -print-file-name=libasan.so); without plugins please "
                          "report it",
                          NULL });
            return;
        }
    put(line, (const char *const[]) { ": please report it", NULL });
}

static void put_component(Line *line, const KilnCallee *call)
{
    if (call == NULL) {
        put_nobody(line);
        return;
    }
    if (call->component != NULL)
        put_function(line, call);
    else if (call->path != NULL)
        put(line, (const char *const[]) { " while the plugin ", call->path, " was loaded", NULL });
    else
        put(line, (const char *const[]) { " in the kernel of the operation ", call->hook, NULL });
}

/* A pointer to a struct was NULL: the state of a component that declares none? */
static void put_missing_state(Line *line, const KilnCallee *call, const siginfo_t *info)
{
    if (call != NULL && call->component != NULL && call->component->state_size == 0 &&
        (uintptr_t)info->si_addr < 4096)
        put(line, (const char *const[]) { "; it declares no state_size, so kiln_state gives NULL; "
                                          "to use it, set .state_size",
                                          NULL });
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    Line line = { .length = 0 };
    size_t i = 0;

    (void)context;
    if (number == SIGBUS && info->si_code > 0 && kiln_mapping_rescue(info->si_addr))
        return; /* and repeat the access, which works now */
    while (crashes[i].number != number)
        i++;
    sigaction(number, &before[i], NULL);
    put(&line,
        (const char *const[]) { isatty(STDERR_FILENO) ? "\n" : "", /* after an unfinished line */
                                command_name, ": error: crashed with ", crashes[i].name, " (",
                                crashes[i].meaning, ")", NULL });
    put_component(&line, kiln_call_current());
    if (number == SIGSEGV)
        put_missing_state(&line, kiln_call_current(), info);
    put(&line, (const char *const[]) { "\n", NULL });
    (void)!write(STDERR_FILENO, line.text, line.length);
    /* A fault repeats when the handler returns; a signal that was sent must be sent again. */
    if (info->si_code <= 0)
        raise(number);
}

/* Runs in the thread that called exit(). A component's exit(0) must not look like success. */
static void on_exit_of_component(void)
{
    Line line = { .length = 0 };

    if (kiln_call_current() == NULL)
        return;
    put(&line, (const char *const[]) { command_name, ": error: exit() was called", NULL });
    put_component(&line, kiln_call_current());
    put(&line, (const char *const[]) { "\n", NULL });
    fflush(NULL);
    (void)!write(STDERR_FILENO, line.text, line.length);
    _exit(EXIT_FAILURE);
}

void kiln_crash_registry(const KilnRegistry *registry)
{
    known = registry;
}

void kiln_crash_report(const char *command)
{
    stack_t stack = { .ss_sp = spare_stack, .ss_size = sizeof(spare_stack) }, there;
    struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK };

    snprintf(command_name, sizeof(command_name), "%s", command);
    if (sigaltstack(NULL, &there) == 0 && (there.ss_flags & SS_DISABLE) != 0)
        (void)sigaltstack(&stack, NULL);
    action.sa_sigaction = on_crash;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < KILN_COUNT(crashes); i++)
        (void)sigaction(crashes[i].number, &action, &before[i]);
    (void)atexit(on_exit_of_component);
}

/* Child processes of checks. The parent never calls a component. */
#define _GNU_SOURCE
#include "cli/contract/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/text.h"
#include "kiln/custom_op.h"
#include "kiln/tools/clock.h"

static const long poll_ns = 1000000;

/* ---- In the child: which component's function runs ------------------------------------------- */

/* The child has one thread when it begins; it is a process of its own, which ends with the check.
 */
typedef struct Observed {
    KilnContractPage *page;
    pid_t first; /* its first thread */
    const KilnComponent *component;
    KilnTracedHook traced[KILN_TRACE_HOOKS];
    size_t n_traced;
} Observed;

static Observed observed;

static void write_name(char *ret, size_t size, const KilnCallee *call)
{
    if (call == NULL)
        ret[0] = '\0';
    else if (call->component == NULL && call->path == NULL)
        snprintf(ret, size, "the kernel of %s", call->hook);
    else if (call->component == NULL)
        snprintf(ret, size, "loading");
    else
        snprintf(ret, size, "%s of %s/%s", call->hook, kiln_kind_name(call->component->kind),
                 call->component->name);
}

static void trace(const char *hook)
{
    size_t i = 0;

    while (i < observed.n_traced && strcmp(observed.traced[i].hook, hook) != 0)
        i++;
    if (i == KILN_TRACE_HOOKS)
        return;
    if (i == observed.n_traced)
        observed.traced[observed.n_traced++] = (KilnTracedHook) { .hook = hook };
    observed.traced[i].count++;
}

/* The bytes of a NaN that no computation gives. */
enum { UNWRITTEN = 0xFF };

static bool is_float(const KilnOpArg *output)
{
    return output->data != NULL && (output->dtype == KILN_F32 || output->dtype == KILN_F64);
}

/* Before a kernel: mark its outputs, whose memory may still hold what an earlier call wrote. */
static void mark_outputs(const KilnOpCall *call)
{
    for (int i = 0; i < call->n_outputs; i++)
        if (is_float(&call->outputs[i]))
            memset(call->outputs[i].data, UNWRITTEN,
                   (size_t)kiln_shape_count(&call->outputs[i].shape) *
                       kiln_dtype_size(call->outputs[i].dtype));
}

static bool is_marked(const char *element, size_t size)
{
    while (size > 0 && (unsigned char)element[size - 1] == UNWRITTEN)
        size--;
    return size == 0;
}

/* After it: find an element that it did not write. */
static void find_unwritten(const char *operation, const KilnOpCall *call)
{
    for (int i = 0; i < call->n_outputs && observed.page->unwritten[0] == '\0'; i++) {
        const KilnOpArg *output = &call->outputs[i];
        const int64_t n = kiln_shape_count(&output->shape);
        const size_t size = kiln_dtype_size(output->dtype);
        int64_t at = 0;

        while (is_float(output) && at < n &&
               !is_marked((const char *)output->data + (size_t)at * size, size))
            at++;
        if (is_float(output) && at < n)
            snprintf(observed.page->unwritten, sizeof(observed.page->unwritten),
                     "the kernel of %s does not write element %lld of %lld of its output %d",
                     operation, (long long)at, (long long)n, i);
    }
}

static void observe(void *ctx, const KilnCallee *now, const KilnCallee *left)
{
    const bool entered = left == NULL;

    (void)ctx;
    if (entered && now != NULL && now->arguments != NULL)
        mark_outputs(now->arguments);
    if (left != NULL && left->arguments != NULL)
        find_unwritten(left->hook, left->arguments);
    if (gettid() != observed.first) {
        if (entered)
            write_name(observed.page->elsewhere, sizeof(observed.page->elsewhere), now);
        return;
    }
    write_name(observed.page->now, sizeof(observed.page->now), now);
    if (!entered || now == NULL || now->component == NULL || now->component != observed.component)
        return;
    write_name(observed.page->last, sizeof(observed.page->last), now);
    trace(now->hook);
}

void kiln_contract_trace(const KilnComponent *component)
{
    observed.component = component;
    observed.n_traced = 0;
}

size_t kiln_contract_traced(const KilnTracedHook **ret)
{
    *ret = observed.traced;
    return observed.n_traced;
}

/* ---- The child ------------------------------------------------------------------------------- */

KilnStatus kiln_contract_child_open(KilnContractChild *child, KilnError *err)
{
    child->page = mmap(NULL, sizeof(*child->page), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (child->page != MAP_FAILED)
        return KILN_OK;
    child->page = NULL;
    return kiln_error_nomem(err, sizeof(*child->page));
}

void kiln_contract_child_close(KilnContractChild *child)
{
    if (child->page != NULL)
        munmap(child->page, sizeof(*child->page));
    child->page = NULL;
}

static void fail(KilnContractPage *page, const char *advice, const char *format, ...)
    KILN_PRINTF(3, 4);
static void fail(KilnContractPage *page, const char *advice, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(page->text, sizeof(page->text), format, args);
    va_end(args);
    snprintf(page->advice, sizeof(page->advice), "%s", advice);
    page->level = KILN_CONTRACT_FAILED;
}

static void be_child(const KilnContractChild *child, void (*body)(void *ctx), void *ctx)
{
    const int output = open(child->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0); /* what the component starts ends with it */
    if (output < 0 || nothing < 0 || dup2(nothing, 0) < 0 || dup2(output, 1) < 0 ||
        dup2(output, 2) < 0)
        _exit(127);
    observed = (Observed) { .page = child->page, .first = gettid() };
    kiln_call_clear();
    kiln_call_observe(observe, NULL);
    body(ctx);
    if (child->page->unwritten[0] != '\0')
        fail(child->page,
             "write every element of the outputs, also at the ends of the ranges of "
             "kiln_op_parallel",
             "%s", child->page->unwritten);
    fflush(NULL);
    child->page->answered = true;
    _exit(0); /* not exit(): what the plugin registered with atexit() is no business of a check */
}

/* ---- How it ended ---------------------------------------------------------------------------- */

/* The last line of the output that holds `word`, without what precedes the word, in `ret`. */
static bool find_line(const char *text, const char *word, char *ret, size_t size)
{
    const char *found = NULL;

    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        found = at;
    if (found != NULL)
        snprintf(ret, size, "%.*s", (int)strcspn(found, "\n"), found);
    return found != NULL;
}

static const char *where(const KilnContractPage *page)
{
    return page->now[0] != '\0' ? page->now : page->elsewhere;
}

/* Whether AddressSanitizer only reports a signal, which the crash report explains better. */
static bool is_signal(const char *report)
{
    return strstr(report, ": SEGV") != NULL || strstr(report, ": ABRT") != NULL ||
           strstr(report, "DEADLYSIGNAL") != NULL || strstr(report, "stack-overflow") != NULL;
}

/* A signal ended the child. The crash report (cli/crash.h) and the C library have said what they
 * know in its output. */
static void crashed(KilnContractPage *page, const char *output, int number)
{
    static const char memory_advice[] =
        "build the plugin and kiln with -fsanitize=address: it names the line";
    static const char *const corruptions[] = { "AddressSanitizer: ", "free(): ",
                                               "malloc(): ",         "realloc(): ",
                                               "corrupted ",         "malloc_check_get_size" };
    char line[1024], why[128] = "";

    for (size_t i = 0; i < KILN_COUNT(corruptions) && why[0] == '\0'; i++)
        (void)!find_line(output, corruptions[i], why, sizeof(why));
    why[strcspn(why, "\n")] = '\0';
    if (strstr(why, "plugin: error") != NULL) /* glibc ends its line only on a terminal */
        *strstr(why, "plugin: error") = '\0';
    if (why[0] != '\0' && !is_signal(why))
        fail(page, memory_advice,
             "wrote beyond a block of memory, or freed it twice (%s); found after %s was called",
             why, page->last[0] != '\0' ? page->last : "no component's function");
    else if (find_line(output, "crashed with ", line, sizeof(line)))
        fail(page, "run it in a debugger, or build it with -fsanitize=address", "%s", line);
    else
        fail(page, "memory may be out: look at `dmesg`", "killed by signal %d (%s) in %s", number,
             strsignal(number), where(page)[0] != '\0' ? where(page) : "no component's function");
}

static void ended(KilnContractPage *page, const char *output, int status)
{
    static const char advice[] = "return an error instead (kiln_error_set): only the program may "
                                 "end the process";
    char line[1024];

    if (WIFSIGNALED(status)) {
        crashed(page, output, WTERMSIG(status));
    } else if (strstr(output, "AddressSanitizer: ") != NULL) {
        crashed(page, output, SIGABRT);
    } else if (find_line(output, "exit() was called", line, sizeof(line))) {
        fail(page, advice, "%s", line);
    } else {
        fail(page, advice, "ended the process with exit status %d in %s", WEXITSTATUS(status),
             where(page)[0] != '\0' ? where(page) : "no component's function");
    }
}

static void explain(const KilnContractChild *child, int status)
{
    char *output = NULL;
    size_t size = 0;

    (void)!kiln_file_read(child->output, (size_t)1 << 24, &output, &size, NULL);
    ended(child->page, output != NULL ? output : "", status);
    free(output);
}

static void hung(const KilnContractChild *child)
{
    const char *at = where(child->page);

    if (at[0] != '\0')
        fail(child->page, "--timeout SECONDS allows more", "still in %s after %g seconds", at,
             child->timeout);
    else
        fail(child->page, "--timeout SECONDS allows more", "took longer than %g seconds",
             child->timeout);
}

/* Wait for the child; true: it ended by itself. */
static bool wait_for(const KilnContractChild *child, pid_t pid, int *ret_status)
{
    const struct timespec pause = { .tv_nsec = poll_ns };
    const double began = kiln_clock();

    while (waitpid(pid, ret_status, WNOHANG) == 0) {
        if (kiln_clock() - began > child->timeout || *child->stop != 0)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

KilnStatus kiln_contract_child_run(KilnContractChild *child, void (*body)(void *ctx), void *ctx,
                                   KilnError *err)
{
    KilnContractPage *page = child->page;
    int status = 0;

    page->answered = false;
    page->level = KILN_CONTRACT_PASSED;
    page->text[0] = page->advice[0] = page->now[0] = page->last[0] = page->elsewhere[0] =
        page->unwritten[0] = page->list[0] = '\0';
    fflush(NULL);
    const pid_t pid = fork();
    if (pid < 0)
        return kiln_error_set(err, KILN_E_IO, "no child process: %s", strerror(errno));
    if (pid == 0)
        be_child(child, body, ctx);
    const bool by_itself = wait_for(child, pid, &status);
    kill(-pid, SIGKILL);
    if (!by_itself)
        waitpid(pid, &status, 0);
    if (*child->stop != 0)
        return KILN_E_INTERRUPTED;
    if (!by_itself)
        hung(child);
    else if (!page->answered)
        explain(child, status);
    return KILN_OK;
}

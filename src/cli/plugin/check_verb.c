/* kiln plugin check: does a component keep its contract? */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/system/file.h"
#include "base/text.h"
#include "cli/contract/contract.h"
#include "cli/plugin/check_page.h"
#include "cli/plugin/plugin_verbs.h"
#include "cli/screen/screen.h"

enum { LONGEST_LINE = 4096 /* arguments */ };
static const double timeout_s = 120.0; /* unless --timeout is given */

/* ---- An allocator that checks ------------------------------------------------------------------
 */

/* glibc's checking malloc, which finds writes beyond a block when that is freed, and fills blocks
 * with a pattern. Without caches of threads, what is allocated can be counted. */
#define CHECKING_MALLOC "libc_malloc_debug.so.0"
#define CHECKING_TUNABLES                                                                          \
    "glibc.malloc.check=3:glibc.malloc.perturb=165:glibc.malloc.tcache_count=0"

/* Sanitizers have allocators of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* The arguments of this process, NULL-terminated; owned by the caller with *ret_text. */
static char **read_arguments(char **ret_text)
{
    char **arguments = calloc(LONGEST_LINE + 1, sizeof(*arguments));
    size_t size = 0, n = 0;

    *ret_text = NULL;
    if (arguments == NULL ||
        kiln_file_read("/proc/self/cmdline", (size_t)1 << 22, ret_text, &size, NULL) < 0) {
        free(arguments);
        return NULL;
    }
    for (char *at = *ret_text; at < *ret_text + size && n < LONGEST_LINE; at += strlen(at) + 1)
        arguments[n++] = at;
    return arguments;
}

/* Start this program again with that malloc, unless it runs with it. Where the system has none, the
 * checks find fewer mistakes. */
static void use_checking_malloc(void)
{
    const char *tunables = getenv("GLIBC_TUNABLES");
    char *text, **arguments;

    if (SANITIZED || (tunables != NULL && strstr(tunables, "glibc.malloc.check") != NULL))
        return;
    void *library = dlopen(CHECKING_MALLOC, RTLD_LAZY);
    if (library != NULL)
        dlclose(library);
    arguments = read_arguments(&text);
    if (arguments != NULL && setenv("GLIBC_TUNABLES", CHECKING_TUNABLES, 1) == 0 &&
        (library == NULL || getenv("LD_PRELOAD") != NULL ||
         setenv("LD_PRELOAD", CHECKING_MALLOC, 1) == 0))
        execv("/proc/self/exe", arguments);
    free(arguments);
    free(text);
}

/* ---- Arguments ------------------------------------------------------------------------------- */

static bool is_override(const char *word)
{
    return strchr(word, '=') != NULL || word[0] == '~' || word[0] == '+';
}

/* Take FILE.so and KIND/NAME; the other words are overrides. */
static KilnStatus read_words(KilnArgs *args, KilnContractRequest *request, KilnError *err)
{
    size_t n = 0;

    for (size_t i = 0; i < args->n_words; i++) {
        const char *word = args->words[i];

        if (is_override(word) && !kiln_is_file(word))
            args->words[n++] = word;
        else if (request->file == NULL && (kiln_ends_with(word, ".so") || kiln_is_file(word)))
            request->file = word;
        else if (request->name == NULL)
            request->name = word;
        else
            return kiln_error_set(err, KILN_E_USAGE,
                                  "check %s: expected one plugin, one component, and overrides",
                                  word);
    }
    args->words[n] = NULL;
    args->n_words = n;
    request->words = args->words;
    if (args->all && (request->file != NULL || request->name != NULL))
        return kiln_error_set(err, KILN_E_USAGE,
                              "--all checks the built-in components: leave out %s",
                              request->file != NULL ? request->file : request->name);
    if (!args->all && request->file == NULL && request->name == NULL)
        return kiln_error_set(err, KILN_E_USAGE,
                              "check: expected a plugin (./mine.so), a component "
                              "(callback/ema), or --all for every built-in one");
    return KILN_OK;
}

static KilnStatus read_timeout(const KilnArgs *args, double *ret, KilnError *err)
{
    if (args->timeout != NULL && (kiln_parse_f64(args->timeout, ret, NULL) < 0 || !(*ret > 0.0)))
        return kiln_error_set(err, KILN_E_USAGE, "--timeout %s: expected seconds above 0",
                              args->timeout);
    return KILN_OK;
}

/* ---- The verb -------------------------------------------------------------------------------- */

static void show_progress(void *ctx, const char *component, const char *check)
{
    const KilnConsole *console = ctx;

    if (console->terminal)
        fprintf(stderr, "\r\033[K%s%s%s", component, component[0] != '\0' ? ": " : "", check);
}

static KilnStatus print(const KilnArgs *args, const KilnContractRequest *request,
                        const KilnContractReport *report, KilnError *err)
{
    const char *target = request->file != NULL   ? request->file
                         : request->name != NULL ? request->name
                                                 : "built-in components";
    KilnPage page = kiln_screen_page();

    if (args->json)
        return kiln_check_print_json(report, target, err);
    kiln_check_page_write(&page, report, target, args->all && !args->verbose);
    return kiln_screen_print(&page) == 0 ? KILN_OK : kiln_error_nomem(err, 0);
}

int kiln_plugin_verb_check(KilnArgs *args)
{
    KilnConsole console = kiln_screen_console(stderr);
    KilnContractRequest request = {
        .plugins = args->plugins, .timeout = timeout_s, .progress = show_progress, .ctx = &console
    };
    KilnContractReport report = { 0 };
    KilnError err = { 0 };
    KilnStatus status = read_words(args, &request, &err);

    if (status >= 0)
        status = read_timeout(args, &request.timeout, &err);
    if (status < 0)
        return kiln_screen_result(args->command, status, &err);
    use_checking_malloc();
    request.stop = kiln_screen_catch_signals().stop;
    status = kiln_contract_check(&request, &report, &err);
    if (console.terminal)
        fputs("\r\033[K", stderr);
    if (status >= 0)
        status = print(args, &request, &report, &err);
    const bool failed = report.levels[KILN_CONTRACT_FAILED] > 0;
    kiln_contract_report_release(&report);
    if (status == KILN_E_INTERRUPTED)
        return kiln_screen_signal_status();
    return status < 0 ? kiln_screen_result(args->command, status, &err) : failed;
}

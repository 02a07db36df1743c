/* The standard streams and the console over one, signal handlers, and error messages. */
#include "cli/screen/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/text.h"
#include "config/provenance/error_list.h"
#include "config/provenance/source_snippet.h"
#include "config/tree/node.h"
#include "config/provenance/origin.h"

/* The terminal of the run, whose last line may be unfinished; -1: none. Read by signal handlers. */
static volatile int terminal_fd = -1;

static void write_stream(void *ctx, const char *text)
{
    FILE *stream = ctx;

    fputs(text, stream);
    fflush(stream);
}

static int terminal_width(void *stream)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size = { 0 };
    int64_t width = 0;

    if (columns != NULL && kiln_parse_i64(columns, &width, NULL) >= 0 && width > 0 && width < 10000)
        return (int)width;
    if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

/* Reads the locale from the environment; the program itself keeps the "C" locale, for numbers. */
static bool has_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

    for (size_t i = 0; i < KILN_COUNT(names); i++) {
        const char *locale = getenv(names[i]);

        if (locale != NULL && locale[0] != '\0')
            return strstr(locale, "UTF-8") != NULL || strstr(locale, "utf8") != NULL ||
                   strstr(locale, "UTF8") != NULL || strstr(locale, "utf-8") != NULL;
    }
    return false;
}

KilnConsole kiln_screen_console(FILE *stream)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    bool terminal = isatty(fileno(stream)) && (term == NULL || strcmp(term, "dumb") != 0);

    return (KilnConsole) {
        .terminal = terminal,
        .colour = terminal && (no_color == NULL || no_color[0] == '\0'),
        .utf8 = terminal && has_utf8(),
        .width = terminal ? terminal_width(stream) : 100,
        .ctx = stream,
        .write = write_stream,
        .measure = terminal ? terminal_width : NULL,
    };
}

const KilnConsole *kiln_screen_run_console(FILE *stream, bool quiet, bool verbose,
                                           KilnConsole *console)
{
    *console = kiln_screen_console(stream);
    console->verbose = verbose;
    if (console->terminal && !quiet)
        terminal_fd = fileno(stream);
    return quiet ? NULL : console;
}

KilnPage kiln_screen_page(void)
{
    KilnConsole console = kiln_screen_console(stdout);

    return (KilnPage) { .width = console.width, .colour = console.colour };
}

int kiln_screen_print(KilnPage *page)
{
    bool whole = !page->text.failed;

    kiln_page_end(page);
    if (!whole)
        fputs("out of memory\n", stderr);
    else if (page->text.length > 0)
        fputs(page->text.data, stdout);
    kiln_text_release(&page->text);
    return whole ? 0 : 1;
}

/* ---- Signals ------------------------------------------------------------------------ */

/* File-scope because a signal handler has no other way to reach the run. */
static volatile int stop_signal, save_requested;
static volatile int64_t stop_ms;

static int64_t clock_ms(void)
{
    struct timespec at = { 0 };

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

/* A second signal ends the process, except one that arrives within 100 ms: `timeout` sends one to
 * the process and one to its group. The system repeats SIGXCPU and SIGPIPE by itself. */
static void on_stop(int number)
{
    enum { SAME_MS = 100 };
    const int saved_errno = errno;

    if (stop_signal == 0) {
        stop_ms = clock_ms();
        stop_signal = number;
    } else if (number != SIGXCPU && number != SIGPIPE && clock_ms() - stop_ms > SAME_MS) {
        if (terminal_fd >= 0)
            (void)!write(terminal_fd, "\n", 1); /* the shell's prompt starts a line */
        _exit(128 + number);
    }
    errno = saved_errno;
}

static void on_save(int number)
{
    (void)number;
    save_requested = 1;
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action = { .sa_handler = handler };

    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

KilnSignals kiln_screen_catch_signals(void)
{
    static const int stops[] = { SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGPIPE };
    struct sigaction before;

    for (size_t i = 0; i < KILN_COUNT(stops); i++) {
        bool ignored = stops[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 &&
                       before.sa_handler == SIG_IGN; /* nohup */

        if (!ignored)
            handle(stops[i], on_stop);
    }
    handle(SIGUSR1, on_save);
    handle(SIGXFSZ, SIG_IGN); /* the write fails and is reported */
    return (KilnSignals) { .stop = &stop_signal, .save = &save_requested };
}

static void on_batch_stop(int number)
{
    if (stop_signal == 0)
        stop_signal = number;
}

KilnSignals kiln_screen_catch_batch_signals(void)
{
    static const int stops[] = { SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGUSR1 };
    KilnSignals signals = kiln_screen_catch_signals();

    for (size_t i = 0; i < KILN_COUNT(stops); i++)
        handle(stops[i], on_batch_stop);
    return signals;
}

int kiln_screen_signal_status(void)
{
    return stop_signal != 0 ? 128 + stop_signal : 0;
}

/* ---- Errors ------------------------------------------------------------------------- */

enum { MOST_SHOWN = 100 };

typedef enum Severity { SEVERITY_ERROR, SEVERITY_WARNING } Severity;

/* Append `piece`, in a terminal style where there are colours. */
static void styled(KilnText *text, const KilnConsole *console, const char *style, const char *piece,
                   size_t n)
{
    kiln_text_append(text, console->colour ? style : "");
    kiln_text_append_n(text, piece, n);
    kiln_text_append(text, console->colour ? "\033[0m" : "");
}

/* The message's first line, the source snippet, then the rest of the message. */
static void write_message(KilnText *text, const KilnConsole *console, const char *command,
                          Severity severity, const char *message, const KilnOrigin *origin)
{
    static const char *const words[] = { "error:", "warning:" };
    static const char *const styles[] = { "\033[1;31m", "\033[1;33m" };
    size_t prefix = kiln_origin_prefix(message, origin);
    size_t line = prefix + strcspn(message + prefix, "\n"); /* a file name may have line breaks */

    kiln_text_printf(text, "%s: ", command);
    styled(text, console, styles[severity], words[severity], strlen(words[severity]));
    kiln_text_char(text, ' ');
    if (prefix > 0)
        styled(text, console, "\033[1m", message, prefix);
    kiln_text_append_n(text, message + prefix, line - prefix);
    kiln_text_char(text, '\n');
    kiln_source_snippet_write(text, origin, console->width, console->colour);
    if (message[line] == '\n')
        kiln_text_printf(text, "%s\n", message + line + 1);
}

static void print(KilnText *text, const char *command)
{
    if (text->failed || text->data == NULL)
        fprintf(stderr, "%s: out of memory\n", command);
    else
        fputs(text->data, stderr);
    kiln_text_release(text);
}

void kiln_screen_error(const char *command, const KilnError *err)
{
    KilnConsole console = kiln_screen_console(stderr);
    KilnText text = { 0 };

    write_message(&text, &console, command, SEVERITY_ERROR, err->text, &err->origin);
    print(&text, command);
}

/* "train: 3 errors, 1 warning", when there are several. */
static void write_summary(KilnText *text, const char *command, const KilnErrors *errors)
{
    size_t count = kiln_errors_count(errors), left_out = kiln_errors_left_out(errors);
    size_t failures = kiln_errors_failures(errors);

    if (count > MOST_SHOWN)
        kiln_text_printf(text, "%s: and %zu more\n", command, count - MOST_SHOWN + left_out);
    if (failures < 2)
        return;
    kiln_text_printf(text, "%s: %zu errors", command, failures);
    const size_t warnings = count + left_out - failures;
    if (warnings > 0)
        kiln_text_printf(text, ", %zu warning%s", warnings, warnings == 1 ? "" : "s");
    kiln_text_char(text, '\n');
}

void kiln_screen_errors(const char *command, const KilnErrors *errors)
{
    KilnConsole console = kiln_screen_console(stderr);
    KilnText text = { 0 };

    for (size_t i = 0; i < kiln_errors_count(errors) && i < MOST_SHOWN; i++) {
        KilnOrigin origin = kiln_errors_origin(errors, i);

        write_message(&text, &console, command,
                      kiln_errors_is_warning(errors, i) ? SEVERITY_WARNING : SEVERITY_ERROR,
                      kiln_errors_text(errors, i), &origin);
    }
    write_summary(&text, command, errors);
    if (text.length > 0 || text.failed)
        print(&text, command);
}

int kiln_screen_exit_status(KilnStatus status)
{
    return status >= 0 ? 0 : status == KILN_E_USAGE ? 2 : 1;
}

int kiln_screen_result(const char *command, KilnStatus status, const KilnError *err)
{
    if (status < 0 && err->status < 0)
        kiln_screen_error(command, err);
    return kiln_screen_exit_status(status);
}

int kiln_screen_run_status(KilnStatus status)
{
    switch (status) {
    case KILN_E_NUMERIC:
        return 3;
    case KILN_E_IO:
        return 4;
    case KILN_E_NOMEM:
        return 5;
    default:
        return kiln_screen_exit_status(status);
    }
}

/* ---- Standard streams --------------------------------------------------------------- */

void kiln_screen_open(void)
{
    /* Opened for the other direction, so that using one still fails. */
    static const int modes[] = { O_WRONLY, O_RDONLY, O_RDONLY };

    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", modes[fd]); /* takes the lowest number that is free */
}

KilnStatus kiln_screen_write_error(KilnError *err)
{
    return kiln_error_set(err, KILN_E_IO, "cannot write standard output: %s", strerror(errno));
}

int kiln_screen_close(const char *command, int status)
{
    KilnError err = { 0 };
    int code = 0;

    errno = 0;
    if (fflush(stdout) != 0)
        code = errno;
    else if (ferror(stdout)) /* it has forgotten the reason; another write fails for the same one */
        code = write(STDOUT_FILENO, "\n", 1) < 0 ? errno : EIO;
    if (fclose(stdout) != 0 && code == 0)
        code = errno;
    if (code == 0 || status != 0) /* a status that is not 0 was reported already */
        return status;
    if (code == EPIPE)
        return 128 + SIGPIPE;
    errno = code;
    kiln_screen_write_error(&err);
    kiln_screen_error(command, &err);
    return 1;
}

/* The console over a stdio stream, signals, and the printing of errors. */
#include "cli/screen.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/parse.h"

static void write_stream(void *ctx, const char *text)
{
    FILE *stream = ctx;

    fputs(text, stream);
    fflush(stream);
}

static int terminal_width(FILE *stream)
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

KilnConsole kiln_screen_console(FILE *stream)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    bool terminal = isatty(fileno(stream)) && (term == NULL || strcmp(term, "dumb") != 0);

    return (KilnConsole) {
        .terminal = terminal,
        .colour = terminal && (no_color == NULL || no_color[0] == '\0'),
        .width = terminal ? terminal_width(stream) : 100,
        .ctx = stream,
        .write = write_stream,
    };
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

/* A signal handler has no other way to reach the run. */
static volatile int stop_requested;
static volatile sig_atomic_t signal_seen;

static void on_signal(int number)
{
    if (stop_requested)
        _exit(128 + number);
    stop_requested = 1;
    signal_seen = number;
}

const volatile int *kiln_screen_catch_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal };

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &stop_requested;
}

int kiln_screen_signal_status(void)
{
    return signal_seen != 0 ? 128 + (int)signal_seen : 0;
}

void kiln_screen_error(const char *command, const KilnError *err)
{
    fprintf(stderr, "%s: %s\n", command, err->text);
}

void kiln_screen_errors(const char *command, const KilnErrors *errors)
{
    for (size_t i = 0; i < kiln_errors_count(errors); i++)
        fprintf(stderr, "%s: %s%s\n", command, kiln_errors_is_warning(errors, i) ? "warning: " : "",
                kiln_errors_text(errors, i));
}

int kiln_screen_exit_status(KilnStatus status)
{
    return status >= 0 ? 0 : status == KILN_E_USAGE ? 2 : 1;
}

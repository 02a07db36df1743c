/* kiln top: shows the live runs of this machine, again and again. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/screen/screen.h"
#include "cli/screen/top_view.h"

enum { REFRESH_MS = 500 };

/* Append the runs that are live now. */
static KilnStatus show(KilnText *text, const KilnConsole *console, bool json, int rows,
                       KilnError *err)
{
    KilnTopRun *runs = NULL;
    size_t n = 0;
    KilnStatus status = kiln_top_collect(&runs, &n, err);

    if (status < 0)
        return status;
    if (json)
        kiln_top_json(text, runs, n);
    else
        kiln_top_draw(text, runs, n, console, rows);
    free(runs);
    return text->failed ? kiln_error_nomem(err, text->length) : KILN_OK;
}

static KilnStatus print_once(const KilnConsole *console, bool json, KilnError *err)
{
    KilnText text = { 0 };
    KilnStatus status = show(&text, console, json, 0, err);

    if (status >= 0)
        fputs(text.data, stdout);
    kiln_text_release(&text);
    return status;
}

/* ---- On a terminal ------------------------------------------------------------------------- */

static int terminal_rows(void)
{
    struct winsize size = { 0 };

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

/* Read keys one by one, without echo; false: there are no keys. */
static bool take_keys(struct termios *before)
{
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, before) != 0)
        return false;
    raw = *before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    return tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

/* Wait until the next refresh; true: the user quits. */
static bool quits(bool keys, const volatile int *stop)
{
    struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
    char key = '\0';

    if (poll(&in, keys ? 1 : 0, REFRESH_MS) > 0) {
        ssize_t n = read(STDIN_FILENO, &key, 1);

        if (n <= 0 || key == 'q' || key == 'Q' || key == '\004' || key == '\033')
            return true;
    }
    return *stop != 0;
}

/* Erase each line after its end, and the screen after the last line: nothing flickers. */
static KilnStatus redraw(KilnConsole *console, KilnError *err)
{
    KilnText text = { 0 }, screen = { 0 };

    console->width = console->measure != NULL ? console->measure(console->ctx) : console->width;
    KilnStatus status = show(&text, console, false, terminal_rows() - 2, err);
    kiln_text_append(&screen, "\033[H");
    for (const char *line = text.data; status >= 0 && line != NULL && *line != '\0';) {
        const size_t length = strcspn(line, "\n");

        kiln_text_append_n(&screen, line, length);
        kiln_text_append(&screen, "\033[K\n");
        line += length + (line[length] == '\n');
    }
    kiln_text_append(&screen, "\033[J");
    kiln_text_append(&screen, console->colour ? "\n\033[2mq: quit\033[0m" : "\nq: quit");
    if (status >= 0 && !screen.failed)
        console->write(console->ctx, screen.data);
    kiln_text_release(&screen);
    kiln_text_release(&text);
    return status;
}

static KilnStatus watch(KilnConsole *console, KilnError *err)
{
    const volatile int *stop = kiln_screen_catch_signals().stop;
    struct termios before;
    const bool keys = isatty(STDIN_FILENO) && take_keys(&before);
    KilnStatus status = KILN_OK;

    console->write(console->ctx, "\033[?1049h\033[?25l");
    do
        status = redraw(console, err);
    while (status >= 0 && !quits(keys, stop));
    console->write(console->ctx, "\033[?25h\033[?1049l");
    if (keys)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    return status;
}

int kiln_command_top(KilnArgs *args)
{
    KilnConsole console = kiln_screen_console(stdout);
    KilnError err = { 0 };

    if (args->n_words > 0) {
        kiln_error_set(&err, KILN_E_USAGE,
                       "%s: top takes no words; `kiln top --help` lists its flags", args->words[0]);
        return kiln_screen_result(args->command, err.status, &err);
    }
    KilnStatus status = args->json || args->once || !console.terminal
                            ? print_once(&console, args->json, &err)
                            : watch(&console, &err);
    return kiln_screen_result(args->command, status, &err);
}

/* Draws the progress of work outside of a run. */
#include "cli/screen/work_progress.h"

#include <string.h>

#include "base/text.h"
#include "cli/screen/screen.h"
#include "kiln/tools/clock.h"

enum { BAR_MAX = 40 };

static const double quiet_seconds = 2.0, refresh_seconds = 0.2, line_seconds = 10.0;

KilnWorkProgress kiln_work_progress_open(void)
{
    return (KilnWorkProgress) { .console = kiln_screen_console(stderr),
                                .stop = kiln_screen_catch_signals().stop };
}

static void write(const KilnWorkProgress *progress, const KilnText *text)
{
    if (!text->failed && text->data != NULL)
        progress->console.write(progress->console.ctx, text->data);
}

static void put_bar(KilnText *text, const KilnConsole *console, double share, int width)
{
    const int filled = (int)(share * width);

    kiln_text_append(text, console->colour ? " \033[36m" : " ");
    for (int i = 0; i < filled; i++)
        kiln_text_append(text, console->utf8 ? "━" : "#");
    kiln_text_append(text, console->colour ? "\033[0;2m" : "");
    for (int i = filled; i < width; i++)
        kiln_text_append(text, console->utf8 ? "─" : "-");
    kiln_text_append(text, console->colour ? "\033[0m" : "");
}

/* "  45%  12.3 M/s  0:12 left"; without a total "  12.3 M  1.2 M/s". */
static void put_numbers(KilnText *text, const KilnWorkProgress *progress, double now, int64_t done,
                        int64_t total)
{
    const double rate = (double)done / (now - progress->since);
    char number[KILN_UNIT_TEXT];

    if (total > 0)
        kiln_text_printf(text, "  %d%%", (int)(100.0 * (double)done / (double)total));
    else
        kiln_text_printf(text, "  %s", kiln_quantity_text((double)done, number));
    if (done <= 0)
        return;
    kiln_text_printf(text, "  %s/s", kiln_quantity_text(rate, number));
    if (total > 0)
        kiln_text_printf(text, "  %s left", kiln_clock_text((double)(total - done) / rate, number));
}

static void show(KilnWorkProgress *progress, double now, int64_t done, int64_t total)
{
    const KilnConsole *console = &progress->console;
    KilnText numbers = { 0 }, line = { 0 };

    put_numbers(&numbers, progress, now, done, total);
    kiln_text_printf(&line, "%s%s", console->terminal ? "\r\033[K" : "", progress->what);
    if (console->terminal) {
        const int width = console->measure != NULL ? console->measure(console->ctx)
                                                   : console->width;
        const int room = width - (int)strlen(progress->what) - (int)numbers.length - 4;

        if (total > 0 && room > 4)
            put_bar(&line, console, (double)done / (double)total, room < BAR_MAX ? room : BAR_MAX);
    }
    kiln_text_append_n(&line, numbers.data != NULL ? numbers.data : "", numbers.length);
    kiln_text_append(&line, console->terminal ? "" : "\n");
    write(progress, &line);
    kiln_text_release(&numbers);
    kiln_text_release(&line);
}

void kiln_work_progress_close(KilnWorkProgress *progress)
{
    if (progress->shown > 0.0 && progress->console.terminal)
        progress->console.write(progress->console.ctx, "\r\033[K");
    progress->what = NULL;
    progress->shown = 0.0;
}

bool kiln_work_progress_poll(void *ctx, const char *what, int64_t done, int64_t total)
{
    KilnWorkProgress *progress = ctx;
    const double pause = progress->console.terminal ? refresh_seconds : line_seconds;
    const double now = kiln_clock();

    if (progress->what == NULL || strcmp(progress->what, what) != 0) {
        kiln_work_progress_close(progress);
        progress->what = what;
        progress->since = now;
    }
    if (now - progress->since > quiet_seconds && now - progress->shown > pause &&
        (total == 0 || done < total)) {
        show(progress, now, done, total);
        progress->shown = now;
    }
    return *progress->stop != 0;
}

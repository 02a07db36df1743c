/* Prints to the console and to train.log, and redraws the status line. A log that can't be written
 * (full disk) does not stop training: it is reported once. */
#include "train/report/console.h"

#include <limits.h>
#include <string.h>
#include <time.h>

#include "base/page.h"
#include "base/utf8.h"

static void write_nothing(void *ctx, const char *text)
{
    (void)ctx;
    (void)text;
}

void kiln_output_init(KilnOutput *output, const KilnConsole *console)
{
    *output = (KilnOutput) { 0 };
    if (console != NULL)
        output->console = *console;
    if (output->console.write == NULL)
        output->console = (KilnConsole) { .width = 80, .write = write_nothing };
    (void)pthread_mutex_init(&output->lock, NULL);
}

void kiln_output_release(KilnOutput *output)
{
    if (output->console.write != NULL) {
        kiln_output_status_line(output, NULL);
        pthread_mutex_destroy(&output->lock);
    }
    if (output->log != NULL)
        fclose(output->log);
    kiln_text_release(&output->early);
    kiln_text_release(&output->status);
    kiln_text_release(&output->line);
    *output = (KilnOutput) { 0 };
}

KilnStatus kiln_output_open_log(KilnOutput *output, const char *path, KilnError *err)
{
    FILE *log = kiln_file_open(path, "a");

    if (log == NULL)
        return kiln_error_errno(err, path);
    output->log = log;
    if (output->early.length > 0 && fputs(output->early.data, log) == EOF)
        return kiln_error_errno(err, path);
    kiln_text_release(&output->early);
    return fflush(log) == 0 ? KILN_OK : kiln_error_errno(err, path);
}

static void append_time(KilnText *text)
{
    char stamp[32] = "";
    time_t now = time(NULL);
    struct tm parts;

    if (localtime_r(&now, &parts) != NULL)
        strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S ", &parts);
    kiln_text_append(text, stamp);
}

/* Write each line of `text` with the time before it. */
void kiln_output_log(KilnOutput *output, const char *text)
{
    KilnText lines = { 0 };

    for (const char *p = text; *p != '\0';) {
        size_t length = strcspn(p, "\n");

        append_time(&lines);
        kiln_text_append_n(&lines, p, length);
        kiln_text_char(&lines, '\n');
        p += length + (p[length] == '\n');
    }
    pthread_mutex_lock(&output->lock);
    if (lines.data != NULL && output->log == NULL)
        kiln_text_append(&output->early, lines.data);
    else if (lines.data != NULL && !output->log_failed)
        output->log_failed = fputs(lines.data, output->log) == EOF || fflush(output->log) != 0;
    pthread_mutex_unlock(&output->lock);
    kiln_text_release(&lines);
}

/* ---- The screen ---------------------------------------------------------------------- */

/* Columns of a line that ends at \n or \0, without escape sequences. */
static int columns_of(const char *line)
{
    int columns = 0;

    while (*line != '\0' && *line != '\n') {
        uint32_t character;
        size_t size = kiln_utf8_next(line, strlen(line), &character);

        if (character == '\033') {
            while (*line != '\0' && *line != 'm' && *line != '\n')
                line++;
            line += *line == 'm';
            continue;
        }
        columns += kiln_utf8_width(character);
        line += size;
    }
    return columns;
}

/* Rows that the status takes now: a terminal that became smaller has wrapped its lines again. */
static int status_rows(const KilnOutput *output)
{
    const int width = output->console.width > 0 ? output->console.width : 1;
    int rows = 0;

    for (const char *line = output->status.data; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        const int columns = columns_of(line);

        rows += columns > width ? (columns + width - 1) / width : 1;
    }
    return rows;
}

static void append_erasing(KilnOutput *output, KilnText *text)
{
    if (output->console.measure != NULL)
        output->console.width = output->console.measure(output->console.ctx);
    if (output->status.length == 0) {
        kiln_text_append(text, output->echoed && output->console.terminal ? "\r\033[K" : "");
        output->echoed = false;
        return;
    }
    output->echoed = false;
    const int rows = status_rows(output);
    kiln_text_char(text, '\r');
    if (rows > 1)
        kiln_text_printf(text, "\033[%dA", rows - 1);
    kiln_text_append(text, "\033[J");
}

static void write_line(KilnOutput *output)
{
    if (!output->line.failed && output->line.length > 0)
        output->console.write(output->console.ctx, output->line.data);
}

/* Append a line, wrapped between its fields, which are two spaces apart. Text that is meant to be
 * copied has no such gaps. */
static void append_wrapped(KilnText *text, const char *line, int width)
{
    for (int column = 0; *line != '\0';) {
        const char *gap = strstr(line, "  ");
        size_t size = gap != NULL ? (size_t)(gap - line) : strlen(line);
        const size_t spaces = gap != NULL ? strspn(gap, " ") : 0;

        kiln_text_append_n(text, line, size);
        column += columns_of(line) - (gap != NULL ? columns_of(gap) : 0);
        line += size + spaces;
        const char *next = strstr(line, "  ");
        const int more = columns_of(line) - (next != NULL ? columns_of(next) : 0);
        if (*line == '\0')
            break;
        if (column + (int)spaces + more > width && column > 0) {
            kiln_text_append(text, "\n  ");
            column = 2;
        } else {
            for (size_t i = 0; i < spaces; i++)
                kiln_text_char(text, ' ');
            column += (int)spaces;
        }
    }
}

/* Print lines to the screen, above the status. */
static void show(KilnOutput *output, const char *text, bool may_wrap)
{
    const bool wraps = may_wrap && output->console.terminal && output->console.width > 0;

    pthread_mutex_lock(&output->lock);
    kiln_text_clear(&output->line);
    append_erasing(output, &output->line);
    for (const char *line = text; wraps && *line != '\0';) {
        KilnText one = { 0 };
        const size_t size = strcspn(line, "\n");

        kiln_text_append_n(&one, line, size);
        append_wrapped(&output->line, one.data != NULL ? one.data : "", output->console.width);
        kiln_text_char(&output->line, '\n');
        line += size + (line[size] == '\n');
        kiln_text_release(&one);
    }
    if (!wraps)
        kiln_text_printf(&output->line, "%s\n", text);
    else if (*text == '\0')
        kiln_text_char(&output->line, '\n');
    if (output->status.length > 0)
        kiln_text_append(&output->line, output->status.data);
    write_line(output);
    pthread_mutex_unlock(&output->lock);
}

void kiln_output_vprint(KilnOutput *output, const char *format, va_list args)
{
    char text[4096];
    bool failed_before = output->log_failed;

    vsnprintf(text, sizeof(text), format, args);
    kiln_output_log(output, text);
    show(output, text, true);
    if (output->log_failed && !failed_before)
        show(output, "warning: train.log can no longer be written", true);
}

void kiln_output_print(KilnOutput *output, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    kiln_output_vprint(output, format, args);
    va_end(args);
}

void kiln_output_notice(KilnOutput *output, const char *text)
{
    pthread_mutex_lock(&output->lock);
    output->echoed = true;
    pthread_mutex_unlock(&output->lock);
    kiln_output_print(output, "%s", text);
}

void kiln_output_detail(KilnOutput *output, const char *format, ...)
{
    char text[4096];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (output->console.verbose)
        kiln_output_print(output, "%s", text);
    else
        kiln_output_log(output, text);
}

void kiln_output_styled(KilnOutput *output, const char *plain, const char *styled)
{
    kiln_output_log(output, plain);
    show(output, output->console.colour ? styled : plain, true);
}

void kiln_output_pair(KilnOutput *output, const char *left, const char *right)
{
    KilnText plain = { 0 }, styled = { 0 };

    kiln_text_printf(&plain, "%-10s %s", left, right);
    kiln_text_printf(&styled, "\033[2m%-10s\033[0m %s", left, right);
    if (plain.data != NULL && styled.data != NULL) {
        kiln_output_log(output, plain.data);
        show(output, output->console.colour ? styled.data : plain.data, false);
    }
    kiln_text_release(&plain);
    kiln_text_release(&styled);
}

void kiln_output_words(KilnOutput *output, const char *left, const char *right)
{
    enum { LEFT = 10 };
    const bool wraps = output->console.terminal && output->console.width > 0;
    KilnPage page = { .width = wraps ? output->console.width : INT_MAX };
    KilnText line = { 0 };

    kiln_text_printf(&line, "%-*s %s", LEFT, left, right);
    if (line.data != NULL)
        kiln_output_log(output, line.data);
    kiln_text_clear(&line);
    kiln_text_printf(&page.text, "%-*s ", LEFT, left);
    kiln_page_words(&page, LEFT + 1, right);
    if (page.text.data != NULL && output->console.colour)
        kiln_text_printf(&line, "\033[2m%.*s\033[0m%s", LEFT, page.text.data,
                         page.text.data + LEFT);
    if (page.text.data != NULL)
        show(output, line.length > 0 ? line.data : page.text.data, false);
    kiln_text_release(&page.text);
    kiln_text_release(&line);
}

void kiln_output_status_line(KilnOutput *output, const char *text)
{
    if (!output->console.terminal)
        return;
    pthread_mutex_lock(&output->lock);
    kiln_text_clear(&output->line);
    append_erasing(output, &output->line);
    kiln_text_clear(&output->status);
    if (text != NULL)
        kiln_text_append(&output->status, text);
    if (text != NULL && !output->status.failed)
        kiln_text_append(&output->line, text);
    write_line(output);
    pthread_mutex_unlock(&output->lock);
}

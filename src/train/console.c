/* Printing: lines go to the console and to train.log, the status line is
 * redrawn below them. A full disk must not stop training for the log's sake,
 * so failures of the log are remembered and told once. */
#include "train/console.h"

#include <string.h>
#include <time.h>

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
}

void kiln_output_release(KilnOutput *output)
{
    if (output->console.write != NULL)
        kiln_output_status_line(output, NULL);
    if (output->log != NULL)
        fclose(output->log);
    kiln_text_release(&output->early);
    kiln_text_release(&output->status);
    kiln_text_release(&output->line);
    *output = (KilnOutput) { 0 };
}

KilnStatus kiln_output_open_log(KilnOutput *output, const char *path, KilnError *err)
{
    FILE *log = fopen(path, "ae");

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

/* Every line of `text` behind the time. */
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
    if (lines.data != NULL && output->log == NULL)
        kiln_text_append(&output->early, lines.data);
    else if (lines.data != NULL && !output->log_failed)
        output->log_failed = fputs(lines.data, output->log) == EOF || fflush(output->log) != 0;
    kiln_text_release(&lines);
}

static void erase_status(KilnOutput *output)
{
    if (output->status.length > 0)
        output->console.write(output->console.ctx, "\r\033[K");
}

void kiln_output_vprint(KilnOutput *output, const char *format, va_list args)
{
    char text[4096];
    bool failed_before = output->log_failed;

    vsnprintf(text, sizeof(text), format, args);
    kiln_output_log(output, text);
    kiln_text_clear(&output->line);
    if (output->status.length > 0)
        kiln_text_append(&output->line, "\r\033[K");
    kiln_text_printf(&output->line, "%s\n", text);
    if (output->log_failed && !failed_before)
        kiln_text_append(&output->line, "warning: train.log can't be written any more\n");
    if (output->status.length > 0)
        kiln_text_append(&output->line, output->status.data);
    if (!output->line.failed)
        output->console.write(output->console.ctx, output->line.data);
}

void kiln_output_print(KilnOutput *output, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    kiln_output_vprint(output, format, args);
    va_end(args);
}

void kiln_output_status_line(KilnOutput *output, const char *text)
{
    if (!output->console.terminal)
        return;
    if (text == NULL) {
        erase_status(output);
        kiln_text_clear(&output->status);
        return;
    }
    kiln_text_clear(&output->line);
    if (output->status.length > 0)
        kiln_text_append(&output->line, "\r\033[K");
    kiln_text_append(&output->line, text);
    kiln_text_clear(&output->status);
    kiln_text_append(&output->status, text);
    if (!output->line.failed && !output->status.failed)
        output->console.write(output->console.ctx, output->line.data);
}

/* Lays out the report of a sweep: what ran, the best jobs, parameters, and what to run next. */
#include "cli/sweep/report_page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text_table.h"
#include "kiln/tools/clock.h"

enum { BEST = 10, BAR = 30, LABEL_WIDEST = 40, PARAMETERS = KILN_TABLE_COLUMNS - 4 };

static const char plain[] = "\033[0m", dim[] = "\033[2m", green[] = "\033[32m", cyan[] = "\033[36m";

static void put_styled(KilnPage *page, const char *style, const char *text)
{
    kiln_text_printf(&page->text, "%s%s%s", page->colour ? style : "", text,
                     page->colour ? plain : "");
}

/* ---- What ran -------------------------------------------------------------------------------- */

static void put_count(KilnText *text, size_t n, const char *what)
{
    if (n > 0)
        kiln_text_printf(text, ", %zu %s", n, what);
}

static void put_summary(const KilnSweepReport *report, KilnPage *page)
{
    char time[KILN_UNIT_TEXT];
    KilnText text = { 0 };

    kiln_text_printf(&text, "%s: %zu jobs: %zu ok", report->sweep.dir, report->sweep.jobs.count,
                     report->ok);
    put_count(&text, report->stopped, "stopped early");
    put_count(&text, report->forbidden, "forbidden");
    put_count(&text, report->failed, "failed");
    put_count(&text, report->running, "running");
    put_count(&text, report->waiting, "waiting");
    kiln_text_printf(&text, "; %s of jobs in all", kiln_seconds_text(report->seconds, time));
    kiln_page_words(page, 2, text.data != NULL ? text.data : "");
    kiln_page_end(page);
    kiln_text_release(&text);
}

/* The overrides that are the same in all jobs say nothing about the best one. */
static void put_best(const KilnSweepReport *report, KilnPage *page)
{
    const size_t number = report->ranked[0];
    const KilnJob *job = &report->sweep.jobs.items[number];
    char value[32];

    kiln_page_heading(page, "best");
    snprintf(value, sizeof(value), "%.6g", kiln_sweep_report_value(report, number));
    kiln_text_printf(&page->text, "  %s ", report->sweep.metric);
    put_styled(page, green, value);
    kiln_text_printf(&page->text, "  job #%zu", number);
    if (job->dir != NULL)
        kiln_text_printf(&page->text, "  %s/%s", report->sweep.dir, job->dir);
    kiln_page_end(page);
    for (size_t i = 0; i < report->n_parameters; i++) {
        const char *text = kiln_sweep_report_text(report, number, i);

        if (text == NULL)
            continue;
        kiln_text_append(&page->text, "  ");
        put_styled(page, cyan, report->parameters[i].key);
        kiln_text_printf(&page->text, "=%s\n", text);
    }
}

/* ---- The table --------------------------------------------------------------------------------
 */

/* A number as short as the others of a table; text as it is. */
static void put_value_cell(char cell[KILN_TABLE_CELL], const KilnSweepReport *report, size_t job,
                           size_t parameter)
{
    const KilnParameter *of = &report->parameters[parameter];
    const char *text = kiln_sweep_report_text(report, job, parameter);

    cell[0] = '\0';
    for (size_t i = 0; text != NULL && i < report->n_points; i++)
        if (report->points[i].job == job && of->n_values == 0) {
            snprintf(cell, KILN_TABLE_CELL, "%.4g", kiln_sweep_report_number(report, i, parameter));
            return;
        }
    if (text != NULL)
        snprintf(cell, KILN_TABLE_CELL, "%s", text);
}

static void make_cells(const KilnSweepReport *report, size_t rank, const size_t *order,
                       KilnTextTable *table, KilnTextCells cells)
{
    const size_t number = report->ranked[rank];
    char time[KILN_UNIT_TEXT];

    snprintf(cells[0], KILN_TABLE_CELL, "%zu", rank + 1);
    snprintf(cells[1], KILN_TABLE_CELL, "#%zu", number);
    snprintf(cells[2], KILN_TABLE_CELL, "%.5g", kiln_sweep_report_value(report, number));
    for (int i = 3; i + 1 < table->n; i++)
        put_value_cell(cells[i], report, number, order[i - 3]);
    snprintf(cells[table->n - 1], KILN_TABLE_CELL, "%s",
             kiln_seconds_text(report->sweep.jobs.items[number].seconds, time));
}

static void put_table(const KilnSweepReport *report, const size_t *order, KilnPage *page)
{
    const size_t shown = report->n_parameters < PARAMETERS ? report->n_parameters : PARAMETERS;
    const size_t rows = report->n_ranked < BEST ? report->n_ranked : BEST;
    KilnTextTable table = {
        .n = (int)shown + 4,
        .columns = { { .title = "rank", .rank = KILN_TABLE_KEPT, .number = true },
                     { .title = "job", .rank = KILN_TABLE_KEPT },
                     { .title = report->sweep.metric, .rank = KILN_TABLE_KEPT, .number = true } }
    };
    KilnTextCells cells;

    for (size_t i = 0; i < shown; i++)
        table.columns[3 + i] = (KilnTextColumn) { .title = report->parameters[order[i]].label,
                                                  .rank = (int)(shown - i),
                                                  .number = report->parameters[order[i]].ordered };
    table.columns[table.n - 1] = (KilnTextColumn) { .title = "time", .number = true };
    for (size_t i = 0; i < rows; i++) {
        make_cells(report, i, order, &table, cells);
        kiln_text_table_measure(&table, cells);
    }
    kiln_text_table_fit(&table, page->width);
    kiln_page_heading(page, "the best %zu of %zu", rows, report->n_ranked);
    kiln_text_table_put_titles(&table, &page->text);
    for (size_t i = 0; i < rows; i++) {
        make_cells(report, i, order, &table, cells);
        kiln_text_table_put(&table, &page->text, cells);
    }
}

/* ---- Importance -------------------------------------------------------------------------------
 */

static int width_of(const char *text)
{
    int n = 0;

    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80; /* UTF-8 characters */
    return n;
}

static void put_bar(const KilnConsole *console, KilnPage *page, double share)
{
    const int n = (int)rint(share * BAR);

    if (!console->terminal || n < 1)
        return;
    kiln_text_append(&page->text, "  ");
    kiln_text_append(&page->text, page->colour ? green : "");
    for (int i = 0; i < n && i < BAR; i++)
        kiln_text_append(&page->text, console->utf8 ? "█" : "#");
    kiln_text_append(&page->text, page->colour ? plain : "");
}

static void put_share(const KilnConsole *console, KilnPage *page, int width, const char *label,
                      double share)
{
    const int gap = width - width_of(label);

    kiln_text_printf(&page->text, "  %s%*s  %5.3f", label, gap > 0 ? gap : 0, "", share);
    put_bar(console, page, share);
    kiln_page_end(page);
}

static void pair_label(const KilnSweepReport *report, const KilnInteraction *pair, bool utf8,
                       char ret[KILN_TABLE_CELL])
{
    snprintf(ret, KILN_TABLE_CELL, "%s %s %s", report->parameters[pair->first].label,
             utf8 ? "×" : "x", report->parameters[pair->second].label);
}

static int label_width(const KilnSweepReport *report, bool utf8)
{
    int width = 0;
    char label[KILN_TABLE_CELL];

    for (size_t i = 0; i < report->n_parameters; i++)
        width = width_of(report->parameters[i].label) > width
                    ? width_of(report->parameters[i].label)
                    : width;
    for (size_t i = 0; i < report->n_interactions; i++) {
        pair_label(report, &report->interactions[i], utf8, label);
        width = width_of(label) > width ? width_of(label) : width;
    }
    return width < LABEL_WIDEST ? width : LABEL_WIDEST;
}

static void put_note(KilnPage *page, const char *text)
{
    kiln_text_append(&page->text, "  ");
    kiln_text_append(&page->text, page->colour ? dim : "");
    kiln_page_words(page, 2, text);
    kiln_text_append(&page->text, page->colour ? plain : "");
    kiln_page_end(page);
}

/* What the shares rest on. */
static void put_basis(const KilnSweepReport *report, KilnPage *page)
{
    char text[512];
    const size_t other = report->n_ranked - report->n_points;
    const double explained = fmax(report->fanova.explained, 0.0);

    snprintf(text, sizeof(text),
             "Shares of the variance over the whole space, by a model of %zu jobs that predicts "
             "%.0f %% of the variance of jobs that it has not seen%s.",
             report->n_points, 100.0 * explained,
             explained < KILN_REPORT_TRUSTED
                 ? ": take the shares as rough, more jobs make them better"
                 : "");
    put_note(page, text);
    if (other == 0)
        return;
    snprintf(text, sizeof(text),
             "%zu jobs with other parameters or values than the sweep has now are left out.",
             other);
    put_note(page, text);
}

static void put_importance(const KilnSweepReport *report, const size_t *order,
                           const KilnConsole *console, KilnPage *page)
{
    const int width = label_width(report, console->utf8);
    char label[KILN_TABLE_CELL];

    if (report->n_parameters == 0)
        return;
    kiln_page_heading(page, "importance");
    if (report->fanova.single == NULL) {
        char text[160];

        snprintf(text, sizeof(text), "needs at least %d jobs with a value of %s; there are %zu",
                 (int)KILN_REPORT_IMPORTANCE_JOBS, report->sweep.metric, report->n_points);
        put_note(page, text);
        return;
    }
    for (size_t i = 0; i < report->n_parameters; i++)
        put_share(console, page, width, report->parameters[order[i]].label,
                  report->parameters[order[i]].importance);
    for (size_t i = 0; i < report->n_interactions; i++) {
        pair_label(report, &report->interactions[i], console->utf8, label);
        put_share(console, page, width, label, report->interactions[i].importance);
    }
    put_basis(report, page);
}

/* ---- What to do next ----------------------------------------------------------------------------
 */

static void put_suggestions(const KilnSweepReport *report, KilnPage *page)
{
    if (report->n_suggestions > 0)
        kiln_page_heading(page, "suggestions");
    for (size_t i = 0; i < report->n_suggestions; i++) {
        const KilnReportSuggestion *suggestion = &report->suggestions[i];

        kiln_text_append(&page->text, "  ");
        put_styled(page, cyan, report->parameters[suggestion->parameter].label);
        kiln_text_append(&page->text, ": ");
        kiln_page_words(page, 4, suggestion->text);
        kiln_page_end(page);
    }
}

/* The purpose stands above a command, which is not wrapped: it is there to be copied. */
static void put_commands(const KilnSweepReport *report, KilnPage *page)
{
    if (report->n_commands > 0)
        kiln_page_heading(page, "next");
    for (size_t i = 0; i < report->n_commands; i++) {
        put_note(page, report->commands[i].purpose);
        kiln_page_line(page, 4, report->commands[i].line);
    }
}

void kiln_sweep_report_put_page(const KilnSweepReport *report, const KilnConsole *console,
                                KilnPage *page)
{
    KilnArena arena = { 0 };
    size_t *order = kiln_arena_alloc(&arena, (report->n_parameters + 1) * sizeof(*order));

    if (order == NULL) {
        page->text.failed = true;
        return;
    }
    kiln_sweep_report_order(report, order);
    put_summary(report, page);
    put_best(report, page);
    put_table(report, order, page);
    put_importance(report, order, console, page);
    put_suggestions(report, page);
    put_commands(report, page);
    kiln_arena_release(&arena);
}

/* Prints a planned step as a table. */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/graph/graph_view.h"

/* A column; on a narrow page the columns with the lowest rank are left out first. */
typedef struct Column {
    const char *title;
    int width, rank;
    bool number; /* aligned right */
} Column;

enum { MOST_COLUMNS = 9, CELL = 160 };

typedef struct Layout {
    Column columns[MOST_COLUMNS];
    int n;
} Layout;

static int columns_of(const char *text)
{
    int n = 0;

    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static int width_of(const Layout *layout)
{
    int sum = 0;

    for (int i = 0; i < layout->n; i++)
        if (layout->columns[i].width > 0)
            sum += layout->columns[i].width + 2;
    return sum - 2;
}

/* Leaves out columns until the rest fits. */
static void fit(Layout *layout, int width)
{
    while (width_of(layout) > width) {
        Column *lowest = NULL;

        for (int i = 0; i < layout->n; i++) {
            Column *column = &layout->columns[i];

            if (column->width > 0 && column->rank < 9 &&
                (lowest == NULL || column->rank < lowest->rank))
                lowest = column;
        }
        if (lowest == NULL)
            return;
        lowest->width = 0;
    }
}

static void put_cells(KilnPage *page, const Layout *layout, char cells[][CELL])
{
    KilnText *text = &page->text;

    for (int i = 0; i < layout->n; i++) {
        const Column *column = &layout->columns[i];
        int pad = column->width - columns_of(cells[i]);

        if (column->width == 0)
            continue;
        if (column->number)
            kiln_text_printf(text, "%*s%s  ", pad > 0 ? pad : 0, "", cells[i]);
        else
            kiln_text_printf(text, "%s%*s  ", cells[i], pad > 0 ? pad : 0, "");
    }
    while (text->length > 0 && text->data[text->length - 1] == ' ')
        text->data[--text->length] = '\0';
    kiln_page_end(page);
}

static void put_titles(KilnPage *page, const Layout *layout)
{
    char cells[MOST_COLUMNS][CELL];

    for (int i = 0; i < layout->n; i++)
        snprintf(cells[i], CELL, "%s", layout->columns[i].title);
    put_cells(page, layout, cells);
}

static void widen(Layout *layout, char cells[][CELL])
{
    for (int i = 0; i < layout->n; i++)
        if (columns_of(cells[i]) > layout->columns[i].width)
            layout->columns[i].width = columns_of(cells[i]);
}

static void widen_titles(Layout *layout)
{
    for (int i = 0; i < layout->n; i++)
        layout->columns[i].width = (int)strlen(layout->columns[i].title);
}

/* ---- Every call ----------------------------------------------------------------------- */

static void call_cells(const KilnStepView *view, size_t i, char cells[][CELL])
{
    const KilnCallReport *call = &view->calls[i];
    double seconds = kiln_call_seconds(call);
    char unit[KILN_UNIT_TEXT];

    snprintf(cells[0], CELL, "%zu", i);
    snprintf(cells[1], CELL, "%s", call->op);
    kiln_shape_text(&call->shape, cells[2], CELL);
    snprintf(cells[3], CELL, "%s%s", kiln_dtype_name(call->dtype), call->blocked ? " blocked" : "");
    snprintf(cells[4], CELL, "%s", kiln_bytes_text((double)call->bytes, unit));
    cells[5][0] = cells[6][0] = '\0';
    if (call->in_block) {
        snprintf(cells[5], CELL, "%s",
                 call->in_place ? "in place" : kiln_bytes_text((double)call->offset, unit));
        snprintf(cells[6], CELL, "%d-%d", call->first, call->last);
    }
    snprintf(cells[7], CELL, "%s", kiln_seconds_text(seconds, unit));
    snprintf(cells[8], CELL, "%.1f%%", view->seconds > 0.0 ? 100.0 * seconds / view->seconds : 0.0);
}

static bool shown(const KilnStepView *view, size_t i, KilnStepPhase only)
{
    return only == KILN_STEP_PHASES || kiln_step_phase(&view->calls[i]) == only;
}

/* Prints headings where the phase or the layer changes. */
static void put_heading(const KilnStepView *view, size_t i, long before, KilnPage *page)
{
    KilnStepPhase phase = kiln_step_phase(&view->calls[i]);
    bool same = before >= 0 && kiln_step_phase(&view->calls[before]) == phase;

    if (!same)
        kiln_page_heading(page, "%s", kiln_step_phase_name(phase));
    if (!same || view->group[before] != view->group[i]) {
        kiln_text_append(&page->text, view->groups[view->group[i]].name);
        kiln_page_end(page);
    }
}

void kiln_step_table(const KilnStepView *view, KilnStepPhase only, KilnPage *page)
{
    Layout layout = { .n = 9,
                      .columns = { { "call", 0, 4, true },
                                   { "operation", 0, 9, false },
                                   { "output", 0, 8, false },
                                   { "type", 0, 5, false },
                                   { "bytes", 0, 6, true },
                                   { "at", 0, 1, true },
                                   { "lives", 0, 2, false },
                                   { "time", 0, 9, true },
                                   { "share", 0, 7, true } } };
    char cells[MOST_COLUMNS][CELL];
    long before = -1;

    widen_titles(&layout);
    for (size_t i = 0; i < view->n_calls; i++) {
        call_cells(view, i, cells);
        if (shown(view, i, only))
            widen(&layout, cells);
    }
    fit(&layout, page->width);
    put_titles(page, &layout);
    for (size_t i = 0; i < view->n_calls; i++) {
        if (!shown(view, i, only))
            continue;
        put_heading(view, i, before, page);
        call_cells(view, i, cells);
        put_cells(page, &layout, cells);
        before = (long)i;
    }
}

/* ---- Groups ------------------------------------------------------------------------------ */

static void group_cells(const KilnStepView *view, size_t i, KilnStepPhase only, char cells[][CELL])
{
    const KilnCallGroup *group = &view->groups[i];
    double sum = 0.0;
    int calls = 0;
    char unit[KILN_UNIT_TEXT];

    snprintf(cells[0], CELL, "%s", group->name);
    for (int phase = 0; phase < KILN_STEP_PHASES; phase++) {
        bool counts = only == KILN_STEP_PHASES || only == (KilnStepPhase)phase;

        snprintf(cells[2 + phase], CELL, "%s",
                 counts && group->calls[phase] > 0 ? kiln_seconds_text(group->seconds[phase], unit)
                                                   : "");
        sum += counts ? group->seconds[phase] : 0.0;
        calls += counts ? group->calls[phase] : 0;
    }
    snprintf(cells[1], CELL, "%d", calls);
    snprintf(cells[5], CELL, "%s", calls > 0 ? kiln_seconds_text(sum, unit) : "");
    snprintf(cells[6], CELL, "%.1f%%", view->seconds > 0.0 ? 100.0 * sum / view->seconds : 0.0);
}

void kiln_step_groups_table(const KilnStepView *view, KilnStepPhase only, KilnPage *page)
{
    Layout layout = { .n = 7,
                      .columns = { { "layers", 0, 9, false },
                                   { "calls", 0, 1, true },
                                   { "forward", 0, 3, true },
                                   { "backward", 0, 4, true },
                                   { "update", 0, 2, true },
                                   { "time", 0, 9, true },
                                   { "share", 0, 5, true } } };
    char cells[MOST_COLUMNS][CELL];

    widen_titles(&layout);
    for (size_t i = 0; i < view->n_groups; i++) {
        group_cells(view, i, only, cells);
        widen(&layout, cells);
    }
    fit(&layout, page->width);
    put_titles(page, &layout);
    for (size_t i = 0; i < view->n_groups; i++) {
        group_cells(view, i, only, cells);
        if (strcmp(cells[1], "0") != 0)
            put_cells(page, &layout, cells);
    }
}

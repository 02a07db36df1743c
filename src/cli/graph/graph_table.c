/* Prints a planned step as a table. */
#include <stdio.h>
#include <string.h>

#include "base/text_table.h"
#include "base/units.h"
#include "cli/graph/graph_view.h"

enum { CELL = KILN_TABLE_CELL };

static double share(const KilnStepView *view, double seconds)
{
    return view->seconds > 0.0 ? 100.0 * seconds / view->seconds : 0.0;
}

/* ---- Every call ----------------------------------------------------------------------- */

static void call_cells(const KilnStepView *view, size_t i, KilnTextCells cells)
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
    snprintf(cells[8], CELL, "%.1f%%", share(view, seconds));
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
    if (!same || view->group[before] != view->group[i])
        kiln_page_line(page, 0, view->groups[view->group[i]].name);
}

void kiln_step_table(const KilnStepView *view, KilnStepPhase only, KilnPage *page)
{
    KilnTextTable table = { .n = 9,
                            .columns = {
                                { .title = "call", .rank = 4, .number = true },
                                { .title = "operation", .rank = KILN_TABLE_KEPT },
                                { .title = "output", .rank = 8 },
                                { .title = "type", .rank = 5 },
                                { .title = "bytes", .rank = 6, .number = true },
                                { .title = "at", .rank = 1, .number = true },
                                { .title = "lives", .rank = 2 },
                                { .title = "time", .rank = KILN_TABLE_KEPT, .number = true },
                                { .title = "share", .rank = 7, .number = true } } };
    KilnTextCells cells;
    long before = -1;

    for (size_t i = 0; i < view->n_calls; i++)
        if (shown(view, i, only)) {
            call_cells(view, i, cells);
            kiln_text_table_measure(&table, cells);
        }
    kiln_text_table_fit(&table, page->width);
    kiln_text_table_put_titles(&table, &page->text);
    for (size_t i = 0; i < view->n_calls; i++) {
        if (!shown(view, i, only))
            continue;
        put_heading(view, i, before, page);
        call_cells(view, i, cells);
        kiln_text_table_put(&table, &page->text, cells);
        before = (long)i;
    }
}

/* ---- Groups ------------------------------------------------------------------------------ */

/* False: the group has no calls of the phase. */
static bool group_cells(const KilnStepView *view, size_t i, KilnStepPhase only, KilnTextCells cells)
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
    snprintf(cells[5], CELL, "%s", kiln_seconds_text(sum, unit));
    snprintf(cells[6], CELL, "%.1f%%", share(view, sum));
    return calls > 0;
}

void kiln_step_groups_table(const KilnStepView *view, KilnStepPhase only, KilnPage *page)
{
    KilnTextTable table = { .n = 7,
                            .columns = {
                                { .title = "layers", .rank = KILN_TABLE_KEPT },
                                { .title = "calls", .rank = 1, .number = true },
                                { .title = "forward", .rank = 3, .number = true },
                                { .title = "backward", .rank = 4, .number = true },
                                { .title = "update", .rank = 2, .number = true },
                                { .title = "time", .rank = KILN_TABLE_KEPT, .number = true },
                                { .title = "share", .rank = 5, .number = true } } };
    KilnTextCells cells;

    for (size_t i = 0; i < view->n_groups; i++)
        if (group_cells(view, i, only, cells))
            kiln_text_table_measure(&table, cells);
    kiln_text_table_fit(&table, page->width);
    kiln_text_table_put_titles(&table, &page->text);
    for (size_t i = 0; i < view->n_groups; i++)
        if (group_cells(view, i, only, cells))
            kiln_text_table_put(&table, &page->text, cells);
}

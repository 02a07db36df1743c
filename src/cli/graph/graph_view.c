/* Groups the calls of a plan by layer, and prints them as a table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_table.h"
#include "cli/graph/graph_view.h"
#include "kiln/tools/clock.h"

const char *kiln_step_phase_name(KilnStepPhase phase)
{
    static const char *const names[] = { "forward", "backward", "update" };

    return names[phase];
}

KilnStepPhase kiln_step_phase(const KilnCallReport *call)
{
    return !call->backward ? KILN_STEP_FORWARD
           : call->update  ? KILN_STEP_UPDATE
                           : KILN_STEP_BACKWARD;
}

double kiln_call_seconds(const KilnCallReport *call)
{
    return call->runs > 0 ? call->seconds / (double)call->runs : 0.0;
}

/* ---- Groups --------------------------------------------------------------------------- */

/* The layer of the nearest call of the same phase that has one, before (step -1) or after (step 1)
 * call i; NULL: none. */
static const char *layer_near(const KilnStepView *view, size_t i, int step)
{
    const KilnStepPhase phase = kiln_step_phase(&view->calls[i]);

    for (long k = (long)i + step; k >= 0 && k < (long)view->n_calls; k += step)
        if (kiln_step_phase(&view->calls[k]) == phase && view->calls[k].layer[0] != '\0')
            return view->calls[k].layer;
    return NULL;
}

/* An operation between two layers belongs to the first of them, and so does its gradient, which
 * comes before that layer's. Operations after the last layer are the loss. */
static const char *layer_of(const KilnStepView *view, size_t i)
{
    const KilnStepPhase phase = kiln_step_phase(&view->calls[i]);
    const int onward = phase == KILN_STEP_FORWARD ? 1 : -1;

    if (phase == KILN_STEP_UPDATE)
        return "optimizer";
    if (view->calls[i].layer[0] != '\0')
        return view->calls[i].layer;
    const char *first = layer_near(view, i, -onward), *second = layer_near(view, i, onward);
    return second == NULL ? "loss and metrics" : first != NULL ? first : second;
}

/* The index of the group of a layer; adds it if it is new. */
static size_t group_of(KilnStepView *view, const char *layer)
{
    int64_t depth = view->depth;
    char *name = view->groups[view->n_groups].name; /* there is room for one more */
    size_t i = 0;

    snprintf(name, KILN_GROUP_NAME, "%s", layer);
    for (char *dot = name; (dot = strchr(dot, '.')) != NULL; dot++)
        if (--depth == 0) {
            *dot = '\0';
            break;
        }
    while (strcmp(view->groups[i].name, name) != 0)
        i++;
    view->n_groups += i == view->n_groups;
    return i;
}

static void sort_into_groups(KilnStepView *view)
{
    for (size_t i = 0; i < view->n_calls; i++) {
        const KilnCallReport *call = &view->calls[i];
        const size_t group = group_of(view, layer_of(view, i));

        view->group[i] = (int)group;
        view->groups[group].seconds[kiln_step_phase(call)] += kiln_call_seconds(call);
        view->groups[group].calls[kiln_step_phase(call)]++;
        view->seconds += kiln_call_seconds(call);
    }
}

bool kiln_step_view_fill(KilnStepView *view, const KilnPlan *plan)
{
    const size_t n = kiln_plan_calls(plan);

    view->plan = plan;
    view->calls = kiln_plan_report(plan);
    view->group = calloc(n + 1, sizeof(*view->group));
    view->groups = calloc(n + 1, sizeof(*view->groups));
    if (view->calls == NULL || view->group == NULL || view->groups == NULL)
        return false;
    view->n_calls = n;
    sort_into_groups(view);
    return true;
}

void kiln_step_view_release(KilnStepView *view)
{
    free(view->calls);
    free(view->group);
    free(view->groups);
    *view = (KilnStepView) { 0 };
}

/* ---- The table ------------------------------------------------------------------------- */

enum { CELL = KILN_TABLE_CELL };

static const KilnTextTable calls_table = {
    .n = 9,
    .columns = { { .title = "call", .rank = 4, .number = true },
                 { .title = "operation", .rank = KILN_TABLE_KEPT },
                 { .title = "output", .rank = 8 },
                 { .title = "type", .rank = 5 },
                 { .title = "bytes", .rank = 6, .number = true },
                 { .title = "at", .rank = 1, .number = true },
                 { .title = "lives", .rank = 2 },
                 { .title = "time", .rank = KILN_TABLE_KEPT, .number = true },
                 { .title = "share", .rank = 7, .number = true } },
};
static const KilnTextTable groups_table = {
    .n = 7,
    .columns = { { .title = "layers", .rank = KILN_TABLE_KEPT },
                 { .title = "calls", .rank = 1, .number = true },
                 { .title = "forward", .rank = 3, .number = true },
                 { .title = "backward", .rank = 4, .number = true },
                 { .title = "update", .rank = 2, .number = true },
                 { .title = "time", .rank = KILN_TABLE_KEPT, .number = true },
                 { .title = "share", .rank = 5, .number = true } },
};

static bool is_shown(const KilnStepView *view, KilnStepPhase phase)
{
    return view->only == KILN_STEP_PHASES || view->only == phase;
}

static void time_cells(const KilnStepView *view, double seconds, char (*cells)[CELL])
{
    const double share = view->seconds > 0.0 ? 100.0 * seconds / view->seconds : 0.0;
    char unit[KILN_UNIT_TEXT];

    snprintf(cells[0], CELL, "%s", kiln_seconds_text(seconds, unit));
    snprintf(cells[1], CELL, "%.1f%%", share);
}

/* False: the call is of another phase. */
static bool call_cells(const KilnStepView *view, size_t i, KilnTextCells cells)
{
    const KilnCallReport *call = &view->calls[i];
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
    time_cells(view, kiln_call_seconds(call), &cells[7]);
    return is_shown(view, kiln_step_phase(call));
}

/* False: the group has no calls of the phase. */
static bool group_cells(const KilnStepView *view, size_t i, KilnTextCells cells)
{
    const KilnCallGroup *group = &view->groups[i];
    char unit[KILN_UNIT_TEXT];
    double sum = 0.0;
    int calls = 0;

    snprintf(cells[0], CELL, "%s", group->name);
    for (int phase = 0; phase < KILN_STEP_PHASES; phase++) {
        cells[2 + phase][0] = '\0';
        if (!is_shown(view, (KilnStepPhase)phase) || group->calls[phase] == 0)
            continue;
        snprintf(cells[2 + phase], CELL, "%s", kiln_seconds_text(group->seconds[phase], unit));
        sum += group->seconds[phase];
        calls += group->calls[phase];
    }
    snprintf(cells[1], CELL, "%d", calls);
    time_cells(view, sum, &cells[5]);
    return calls > 0;
}

/* Print headings where the phase or the layer changes; `before` is the call printed before, NULL:
 * none. */
static void put_heading(const KilnStepView *view, size_t i, const size_t *before, KilnPage *page)
{
    const KilnStepPhase phase = kiln_step_phase(&view->calls[i]);
    const bool same = before != NULL && kiln_step_phase(&view->calls[*before]) == phase;

    if (!same)
        kiln_page_heading(page, "%s", kiln_step_phase_name(phase));
    if (!same || view->group[*before] != view->group[i])
        kiln_page_line(page, 0, view->groups[view->group[i]].name);
}

void kiln_step_table(const KilnStepView *view, KilnPage *page)
{
    const bool groups = view->depth > 0;
    bool (*cells_of)(const KilnStepView *, size_t, KilnTextCells) = groups ? group_cells
                                                                           : call_cells;
    KilnTextTable table = groups ? groups_table : calls_table;
    const size_t n = groups ? view->n_groups : view->n_calls;
    const size_t *before = NULL;
    KilnTextCells cells;
    size_t last;

    for (size_t i = 0; i < n; i++)
        if (cells_of(view, i, cells))
            kiln_text_table_measure(&table, cells);
    kiln_text_table_fit(&table, page->width);
    kiln_text_table_put_titles(&table, &page->text);
    for (size_t i = 0; i < n; i++) {
        if (!cells_of(view, i, cells))
            continue;
        if (!groups)
            put_heading(view, i, before, page);
        kiln_text_table_put(&table, &page->text, cells);
        last = i;
        before = &last;
    }
}

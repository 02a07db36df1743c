/* Profiles the time of a run: the timed calls of all plans by operation and by layer; and outside
 * of steps the hooks, and the times that the loop waited. */
#include "train/analysis/time_profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "graph/plan/plan_report.h"
#include "kiln/array.h"
#include "kiln/tools/clock.h"
#include "train/trainer.h"

enum { MAX_ROWS = 20, NAME = 256 }; /* of a printed table; profile.csv has all rows */

/* How calls are grouped into rows. */
enum { BY_PHASE = 1, BY_LAYER = 2, BY_OP = 4 };

typedef struct Row {
    const char *phase, *layer, *op; /* "" when rows are not grouped by it */
    double seconds, flops;
    int64_t runs;
} Row;

typedef struct Table {
    Row *rows;
    size_t n, capacity;
    double seconds;
    bool failed;
} Table;

/* ---- Summing up --------------------------------------------------------------------- */

static Row *find_row(Table *table, const Row *like)
{
    for (size_t i = 0; i < table->n; i++) {
        Row *row = &table->rows[i];

        if (strcmp(row->phase, like->phase) == 0 && strcmp(row->layer, like->layer) == 0 &&
            strcmp(row->op, like->op) == 0)
            return row;
    }
    if (!KILN_RESERVE(table->rows, table->capacity, table->n + 1)) {
        table->failed = true;
        return NULL;
    }
    table->rows[table->n] = *like;
    return &table->rows[table->n++];
}

static const char *phase_of(const KilnPlan *plan, const KilnCallReport *call)
{
    return !kiln_plan_trains(plan)          ? "evaluation"
           : call->backward && call->update ? "update"
           : call->backward                 ? "backward"
                                            : "forward";
}

static void add_plan(Table *table, const KilnPlan *plan, const KilnCallReport *calls, unsigned by)
{
    for (size_t i = 0; i < kiln_plan_calls(plan); i++) {
        const KilnCallReport *call = &calls[i];
        Row like = {
            .phase = (by & BY_PHASE) != 0 ? phase_of(plan, call) : "",
            .layer = (by & BY_LAYER) != 0 ? call->layer : "",
            .op = (by & BY_OP) != 0 ? call->op : "",
        };
        Row *row = call->runs > 0 ? find_row(table, &like) : NULL;

        if (row == NULL)
            continue;
        row->seconds += call->seconds;
        row->flops += call->flops * (double)call->runs;
        row->runs += call->runs;
        table->seconds += call->seconds;
    }
}

static int by_time(const void *a, const void *b)
{
    const Row *x = a, *y = b;

    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

/* All plans of the run, each with its calls' times. */
typedef struct Plans {
    const KilnPlan *first;
    KilnCallReport **calls;
    size_t n;
} Plans;

static KilnStatus plans_init(Plans *plans, const KilnGraph *graph, KilnError *err)
{
    *plans = (Plans) { .first = graph->plans };
    for (const KilnPlan *plan = graph->plans; plan != NULL; plan = kiln_plan_next(plan))
        plans->n++;
    plans->calls = calloc(plans->n + 1, sizeof(*plans->calls));
    if (plans->calls == NULL)
        return kiln_error_nomem(err, plans->n * sizeof(*plans->calls));
    size_t i = 0;
    for (const KilnPlan *plan = graph->plans; plan != NULL; plan = kiln_plan_next(plan), i++) {
        plans->calls[i] = kiln_plan_report(plan);
        if (plans->calls[i] == NULL)
            return kiln_error_nomem(err, kiln_plan_calls(plan) * sizeof(KilnCallReport));
    }
    return KILN_OK;
}

static void plans_release(Plans *plans)
{
    for (size_t i = 0; plans->calls != NULL && i < plans->n; i++)
        free(plans->calls[i]);
    free(plans->calls);
}

static Table sum_up(const Plans *plans, unsigned by)
{
    Table table = { 0 };
    size_t i = 0;

    for (const KilnPlan *plan = plans->first; plan != NULL; plan = kiln_plan_next(plan), i++)
        add_plan(&table, plan, plans->calls[i], by);
    if (table.n > 0)
        qsort(table.rows, table.n, sizeof(*table.rows), by_time);
    return table;
}

static void add_loop(Table *table, const char *phase, const char *what, double seconds,
                     int64_t runs)
{
    const Row like = { .phase = phase, .layer = "the loop", .op = what };
    Row *row = runs > 0 ? find_row(table, &like) : NULL;

    if (row == NULL)
        return;
    row->seconds = seconds;
    row->runs = runs;
    table->seconds += seconds;
}

/* Sum up hooks of callbacks and module, and the times that the loop waited. */
static Table sum_up_rest(const KilnTrainer *trainer)
{
    const KilnTiming *timing = &trainer->timing;
    const KilnPlanCache *cache = &trainer->graph->plan_cache;
    Table table = { 0 };

    for (size_t number = 0; number < KILN_HOOK_COUNT; number++) {
        const KilnHookList *list = &trainer->hooks.lists[number];

        for (size_t i = 0; i < list->n; i++) {
            const KilnHookCall *call = &list->calls[i];
            const Row like = {
                .phase = "hook",
                .layer = kiln_instance_path(call->instance),
                .op = kiln_hook_name(number),
            };
            Row *row = call->calls > 0 ? find_row(&table, &like) : NULL;

            if (row == NULL)
                continue;
            row->seconds += call->seconds;
            row->runs += call->calls;
            table.seconds += call->seconds;
        }
    }
    add_loop(&table, "plan", "planning steps", cache->seconds, (int64_t)cache->made);
    add_loop(&table, "data", "waiting for data", timing->waited_s, timing->steps);
    add_loop(&table, "checkpoint", "copying a checkpoint", timing->copied_s, timing->copies);
    add_loop(&table, "checkpoint", "waiting for the disk", timing->written_s, timing->copies);
    if (table.n > 0)
        qsort(table.rows, table.n, sizeof(*table.rows), by_time);
    return table;
}

/* ---- Output ------------------------------------------------------------------------------ */

/* "layer.operation", or the one that is set. */
static const char *name_of(const Row *row, char name[NAME])
{
    const bool both = row->op[0] != '\0' && row->layer[0] != '\0';

    snprintf(name, NAME, "%s%s%s", row->layer, both ? "." : "", row->op);
    return name[0] != '\0' ? name : "(no layer)";
}

static void print_table(KilnTrainer *trainer, const char *title, const Table *table)
{
    char time[KILN_UNIT_TEXT], rate[KILN_UNIT_TEXT], name[NAME];
    double rest = 0.0;
    int width = 44;

    for (size_t i = 0; i < table->n && i < MAX_ROWS; i++) {
        const int length = (int)strlen(name_of(&table->rows[i], name));

        width = length > width ? length : width;
    }
    kiln_output_print(&trainer->output, "%-*s  %9s  %8s  %6s  %9s", width, title, "calls", "time",
                      "share", "FLOP/s");
    for (size_t i = 0; i < table->n; i++) {
        const Row *row = &table->rows[i];

        if (i >= MAX_ROWS) {
            rest += row->seconds;
            continue;
        }
        kiln_output_print(
            &trainer->output, "%-*s  %9lld  %8s  %5.1f%%  %9s", width, name_of(row, name),
            (long long)row->runs, kiln_seconds_text(row->seconds, time),
            100.0 * row->seconds / table->seconds,
            row->flops > 0.0 ? kiln_quantity_text(row->flops / row->seconds, rate) : "");
    }
    if (table->n > MAX_ROWS)
        kiln_output_print(&trainer->output, "%-*s  %9s  %8s  %5.1f%%", width, "the others", "",
                          kiln_seconds_text(rest, time), 100.0 * rest / table->seconds);
}

/* Append a CSV field; names of layers and operations contain no quotes. */
static void add_text(KilnText *text, const char *field)
{
    bool quoted = strpbrk(field, ",\"\n") != NULL;

    kiln_text_printf(text, quoted ? "\"%s\"," : "%s,", field);
}

static void add_rows(KilnText *text, const Table *table)
{
    for (size_t i = 0; i < table->n; i++) {
        const Row *row = &table->rows[i];

        add_text(text, row->phase);
        add_text(text, row->layer);
        add_text(text, row->op);
        kiln_text_printf(text, "%lld,%.9f,%.6f,%.0f\n", (long long)row->runs, row->seconds,
                         table->seconds > 0.0 ? row->seconds / table->seconds : 0.0, row->flops);
    }
}

static KilnStatus write_csv(const KilnTrainer *trainer, const Table *steps, const Table *rest,
                            KilnError *err)
{
    char *path = kiln_path_join(trainer->run_dir, "profile.csv");
    KilnText text = { 0 };
    KilnStatus status;

    kiln_text_append(&text, "phase,layer,operation,calls,seconds,share,flops\n");
    add_rows(&text, steps);
    add_rows(&text, rest);
    if (path == NULL || text.failed)
        status = kiln_error_nomem(err, text.length);
    else
        status = kiln_file_write_plain(path, text.data, err);
    kiln_text_release(&text);
    free(path);
    return status;
}

static KilnStatus report(KilnTrainer *trainer, const Plans *plans, KilnError *err)
{
    Table by_op = sum_up(plans, BY_OP), by_layer = sum_up(plans, BY_LAYER);
    Table all = sum_up(plans, BY_PHASE | BY_LAYER | BY_OP), rest = sum_up_rest(trainer);
    KilnStatus status = KILN_OK;

    if (by_op.failed || by_layer.failed || all.failed || rest.failed) {
        status = kiln_error_nomem(err, all.n * sizeof(Row));
    } else if (all.n > 0) {
        print_table(trainer, "operation", &by_op);
        print_table(trainer, "layer", &by_layer);
        print_table(trainer, "outside of the steps", &rest);
        status = write_csv(trainer, &all, &rest, err);
    }
    free(by_op.rows);
    free(by_layer.rows);
    free(all.rows);
    free(rest.rows);
    return status;
}

KilnStatus kiln_profile_close(KilnTrainer *trainer, KilnError *err)
{
    Plans plans = { 0 };

    if (trainer->options.trainer->profiler == NULL)
        return KILN_OK;
    KilnStatus status = plans_init(&plans, trainer->graph, err);
    kiln_output_status_line(&trainer->output, NULL);
    if (status >= 0)
        status = report(trainer, &plans, err);
    plans_release(&plans);
    return status;
}

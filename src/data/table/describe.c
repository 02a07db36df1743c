/* What a table's data report says: its columns, what was skipped, what looks wrong. */
#include <stdlib.h>

#include "base/text.h"
#include "base/utf8.h"
#include "data/table/table_data.h"

enum { NAME_WIDTH = 24, EXAMPLES_WIDTH = 40 };

static void put_number(KilnText *text, double value)
{
    kiln_text_printf(text, "%.6g", value);
}

/* "Female, Male", cut where the line ends. */
static void put_names(KilnText *text, char *const *names, size_t n)
{
    const size_t begin = text->length;

    for (size_t i = 0; i < n; i++) {
        if (text->length - begin + strlen(names[i]) > EXAMPLES_WIDTH) {
            kiln_text_append(text, i > 0 ? ", ..." : "...");
            return;
        }
        kiln_text_printf(text, "%s%s", i > 0 ? ", " : "", names[i]);
    }
}

/* What values a column has. */
static void put_values(KilnText *text, const KilnTableData *data, size_t c)
{
    const KilnTableColumn *column = &data->plan.columns[c];
    const bool target = (int64_t)c == data->plan.target;

    if (target && data->plan.classes) {
        kiln_text_printf(text, "%zu classes: ", data->plan.n_classes);
        put_names(text, data->plan.class_names, data->plan.n_classes);
    } else if (column->kind == KILN_COLUMN_CATEGORY && column->buckets > 0) {
        kiln_text_printf(text, "hashed into %lld", (long long)column->buckets);
    } else if (column->kind == KILN_COLUMN_CATEGORY) {
        kiln_text_printf(text, "%zu: ", column->n_names);
        put_names(text, column->names, column->n_names);
    } else if (column->kind == KILN_COLUMN_NUMBER) {
        put_number(text, column->facts.low);
        kiln_text_append(text, " to ");
        put_number(text, column->facts.high);
    } else if (column->kind == KILN_COLUMN_DATE) {
        kiln_text_append(text, column->has_times ? "days and times" : "days");
    } else if (column->why != NULL) {
        kiln_text_append(text, column->why);
    } else if (column->kind == KILN_COLUMN_TEXT) {
        kiln_text_append(text,
                         data->source.tokenizer != NULL ? "part of tokens" : "no part of a sample");
    }
}

static void put_column(KilnText *text, const KilnTableData *data, size_t c)
{
    const KilnTableColumn *column = &data->plan.columns[c];
    const int width = kiln_utf8_columns(column->name, strlen(column->name));
    const bool target = (int64_t)c == data->plan.target, group = (int64_t)c == data->plan.group;
    const char *kind = target ? "target" : group ? "query" : kiln_column_kinds[column->kind].name;

    kiln_text_printf(text, "%s%*s %-8s", column->name, width < NAME_WIDTH ? NAME_WIDTH - width : 0,
                     "", kind);
    if (column->facts.missing > 0)
        kiln_text_printf(text, " %lld missing;", (long long)column->facts.missing);
    kiln_text_char(text, ' ');
    put_values(text, data, c);
}

/* Categories that the training rows lack. */
static void put_unknown(KilnText *text, const KilnTableData *data, KilnSplit split)
{
    const KilnTableRows *rows = &data->splits[split];
    const size_t n = data->plan.n_categories;
    const char *comma = "";

    for (size_t i = 0; i < n; i++) {
        int64_t count = 0;

        for (int64_t row = 0; row < rows->n; row++)
            count += rows->ids[(size_t)row * n + i] == KILN_ID_UNKNOWN;
        if (count == 0)
            continue;
        if (*comma == '\0')
            kiln_text_printf(text, "%s: values that the training rows lack are read as unknown: ",
                             kiln_split_name(split));
        kiln_text_printf(text, "%s%s %lld", comma,
                         data->plan.columns[data->plan.categories[i]].name, (long long)count);
        comma = ", ";
    }
}

static void emit(KilnText *text, void (*add)(void *ctx, const char *text), void *ctx)
{
    if (text->length > 0 && !text->failed)
        add(ctx, text->data);
    kiln_text_clear(text);
}

/* Whether the training rows were looked at for the column. */
static bool is_known(const KilnTableColumn *column)
{
    return column->facts.numbers + column->facts.texts + column->facts.missing > 0;
}

void kiln_table_data_columns(const KilnTableData *data, void (*add)(void *ctx, const char *text),
                             void *ctx)
{
    KilnText text = { 0 };

    for (size_t c = 0; c < data->plan.n_columns; c++)
        if (is_known(&data->plan.columns[c])) {
            put_column(&text, data, c);
            emit(&text, add, ctx);
        }
    kiln_text_release(&text);
}

/* ---- What was inferred ----------------------------------------------------------------------- */

/* "people.csv", or "people.csv and 2 more". */
static void put_files(KilnText *text, const KilnTextFiles *files)
{
    kiln_text_append(text, files->train[0]);
    if (files->train_count > 1)
        kiln_text_printf(text, " and %zu more", files->train_count - 1);
}

void kiln_table_data_inferred(const KilnTableData *data,
                              void (*add)(void *ctx, const KilnInferredOption *option), void *ctx)
{
    const KilnTablePlan *plan = &data->plan;
    KilnText from = { 0 };

    put_files(&from, data->source.files);
    const char *file = from.failed ? data->source.files->train[0] : from.data;
    for (size_t c = 0; c < plan->n_columns; c++) {
        const KilnTableColumn *column = &plan->columns[c];

        if (is_known(column) && !column->given && (int64_t)c != plan->target &&
            (int64_t)c != plan->group)
            add(ctx, &(KilnInferredOption) { .option = "columns",
                                             .key = column->name,
                                             .value = kiln_column_kinds[column->kind].name,
                                             .from = file });
    }
    if (plan->target >= 0 && data->source.target_type == KILN_TARGET_AUTO)
        add(ctx,
            &(KilnInferredOption) {
                .option = "target_type",
                .value = kiln_target_types[plan->classes ? KILN_TARGET_CLASSES : KILN_TARGET_NUMBER]
                             .name,
                .from = file });
    kiln_text_release(&from);
}

/* ---- What looks wrong ------------------------------------------------------------------------ */

void kiln_table_data_notes(const KilnTableData *data, void (*add)(void *ctx, const char *text),
                           void *ctx)
{
    KilnText text = { 0 };

    for (int split = KILN_VAL; split < KILN_SPLIT_COUNT; split++) {
        put_unknown(&text, data, (KilnSplit)split);
        emit(&text, add, ctx);
    }
    for (size_t i = 0; i < data->n_notes; i++)
        add(ctx, data->notes[i]);
    kiln_text_release(&text);
}

void kiln_table_data_left_out(const KilnTableData *data,
                              void (*add)(void *ctx, const KilnOmission *omission), void *ctx)
{
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        for (size_t i = 0; i < KILN_SKIP_REASONS; i++) {
            const KilnTableSkipped *skipped = &data->skipped[split][i];
            char what[32];

            snprintf(what, sizeof(what), "%s rows", kiln_split_name((KilnSplit)split));
            if (skipped->count > 0)
                add(ctx, &(KilnOmission) { .count = skipped->count,
                                           .what = what,
                                           .example = skipped->example,
                                           .reason = skipped->reason });
        }
}

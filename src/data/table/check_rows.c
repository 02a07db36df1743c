/* Rows of a table that can't be samples: found, and counted or reported. */
#include <stdlib.h>

#include "data/table/load.h"

/* What makes a row bad; any other failure is one of the run. */
static const KilnStatus bad[KILN_SKIP_REASONS] = { KILN_E_FORMAT, KILN_E_TYPE, KILN_E_MISSING,
                                                   KILN_E_KEY, KILN_E_RANGE };

KilnStatus kiln_table_skip(KilnTableData *data, KilnSplit source, const KilnError *why,
                           KilnError *err)
{
    for (size_t i = 0; i < KILN_SKIP_REASONS; i++) {
        KilnTableSkipped *skipped = &data->skipped[source][i];
        const char *colon = strstr(why->text, ": ");

        if (bad[i] != why->status)
            continue;
        if (data->source.on_error == KILN_ON_ERROR_STOP)
            return kiln_error_set(err, why->status, "%s (on_error=skip leaves such rows out)",
                                  why->text);
        if (skipped->count++ > 0)
            return KILN_OK;
        snprintf(skipped->example, sizeof(skipped->example), "%.*s",
                 colon != NULL ? (int)(colon - why->text) : 0, why->text);
        snprintf(skipped->reason, sizeof(skipped->reason), "%.*s", (int)sizeof(skipped->reason) - 1,
                 colon != NULL ? colon + 2 : why->text);
        return KILN_OK;
    }
    return kiln_error_set(err, why->status, "%s", why->text);
}

/* Why a cell can't be what its column is; KILN_OK: it can. The message lacks the place. */
static KilnStatus check_cell(const KilnTableLoad *load, size_t c, KilnCell cell, KilnError *err)
{
    const KilnTablePlan *plan = &load->data->plan;
    const KilnTableColumn *column = &plan->columns[c];
    const KilnDictionary *dictionary = &load->columns[c].dictionary;
    const bool target = (int64_t)c == plan->target, text = kiln_cell_is_text(cell);
    const KilnString value = text ? dictionary->texts[kiln_cell_code(cell)] : (KilnString) { 0 };
    const int shown = (int)(value.length < 64 ? value.length : 64);
    double parts[KILN_DATE_PARTS];

    if (target && plan->classes) {
        if (kiln_table_class(load->data, dictionary, cell) >= 0)
            return KILN_OK;
        return kiln_error_set(err, KILN_E_KEY,
                              "the class \"%.*s\" (column \"%s\") is none of the %zu of the "
                              "training rows",
                              shown, text ? value.data : "a number", column->name, plan->n_classes);
    }
    if (text && (target || column->kind == KILN_COLUMN_NUMBER))
        return kiln_error_set(err, KILN_E_TYPE, "column \"%s\" has \"%.*s\"; expected a number%s",
                              column->name, shown, value.data,
                              memchr(value.data, ',', value.length) != NULL
                                  ? " (decimal=\",\" reads 1,5 as one and a half)"
                                  : "");
    if (column->kind == KILN_COLUMN_DATE &&
        (!text ? kiln_cell_is_number(cell) : !kiln_date_read(value, parts)))
        return kiln_error_set(err, KILN_E_TYPE,
                              "column \"%s\" has %s%.*s%s; expected a date such as 2026-05-31",
                              column->name, text ? "\"" : "", text ? shown : 8,
                              text ? value.data : "a number", text ? "\"" : "");
    return KILN_OK;
}

KilnStatus kiln_table_check_list(KilnTableLoad *load, KilnSplitList *list, bool no_target,
                                 KilnError *err)
{
    const KilnCells *cells = &load->cells[list->source];
    const KilnTablePlan *plan = &load->data->plan;
    uint8_t *marks = calloc((size_t)list->n + 1, 1);
    KilnError *why = malloc(sizeof(*why));
    KilnStatus status = marks != NULL && why != NULL ? KILN_OK
                                                     : kiln_error_nomem(err, (size_t)list->n);
    char place[512];
    int64_t n = 0;

    for (size_t c = 0; c < plan->n_columns && status >= 0; c++) {
        const bool target = (int64_t)c == plan->target;
        const bool checked = plan->columns[c].kind == KILN_COLUMN_NUMBER ||
                             plan->columns[c].kind == KILN_COLUMN_DATE;

        if (cells->cells[c] == NULL || (target ? no_target : !checked) ||
            (plan->columns[c].kind == KILN_COLUMN_NUMBER && load->columns[c].dictionary.n == 0))
            continue;
        for (int64_t i = 0; i < list->n && status >= 0; i++) {
            const KilnCell cell = cells->cells[c][list->rows[i]];

            if (marks[i] || (!target && kiln_cell_is_number(cell) &&
                             plan->columns[c].kind == KILN_COLUMN_NUMBER))
                continue;
            if (check_cell(load, c, cell, why) >= 0)
                continue;
            (void)kiln_error_prefix(why, "%s: ",
                                    kiln_source_place(&load->data->sources[list->source],
                                                      cells->rows[list->rows[i]], place,
                                                      sizeof(place)));
            status = kiln_table_skip(load->data, list->source, why, err);
            marks[i] = 1;
        }
    }
    for (int64_t i = 0; i < list->n && status >= 0; i++)
        if (!marks[i])
            list->rows[n++] = list->rows[i];
    list->n = n;
    free(marks);
    free(why);
    return status;
}

KilnStatus kiln_table_check_targets(KilnTableLoad *load, KilnSplit source, KilnError *err)
{
    const KilnTablePlan *plan = &load->data->plan;
    KilnCells *cells = &load->cells[source];
    const KilnCell *target = plan->target >= 0 && cells->cells != NULL ? cells->cells[plan->target]
                                                                       : NULL;
    uint8_t *marks = target != NULL ? calloc((size_t)cells->n_rows + 1, 1) : NULL;
    KilnError why;
    char place[512];
    int64_t n = 0;
    KilnStatus status = KILN_OK;

    if (target == NULL)
        return KILN_OK;
    if (marks == NULL)
        return kiln_error_nomem(err, (size_t)cells->n_rows);
    for (int64_t i = 0; i < cells->n_rows; i++) {
        marks[i] = !kiln_cell_is_number(target[i]) && !kiln_cell_is_text(target[i]);
        n += marks[i];
    }
    if (n == cells->n_rows && source == KILN_TEST) {
        free(marks);
        return KILN_OK;
    }
    for (int64_t i = 0; i < cells->n_rows && status >= 0 && n > 0; i++)
        if (marks[i]) {
            (void)kiln_error_set(&why, KILN_E_MISSING, "%s: the target (column \"%s\") is missing",
                                 kiln_source_place(&load->data->sources[source], cells->rows[i],
                                                   place, sizeof(place)),
                                 plan->columns[plan->target].name);
            status = kiln_table_skip(load->data, source, &why, err);
        }
    if (status >= 0 && n > 0)
        kiln_cells_drop(cells, marks);
    free(marks);
    return status;
}

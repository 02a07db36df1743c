/* The columns of a table that is loaded: those of the files, and what the options say of them. */
#include <stdlib.h>

#include "base/text.h"
#include "data/table/load.h"

typedef KilnTableLoad Load;

static KilnStatus unknown_column(const Load *load, const char *option, const char *name,
                                 KilnError *err)
{
    const KilnTablePlan *plan = &load->data->plan;
    const char **names = calloc(plan->n_columns + 1, sizeof(*names));
    KilnText text = { 0 };

    for (size_t c = 0; c < plan->n_columns && names != NULL; c++)
        names[c] = plan->columns[c].name;
    kiln_text_printf(&text, "%s: no column \"%s\"", option, name);
    const char *nearest = names != NULL ? kiln_nearest(name, names, plan->n_columns) : NULL;
    if (nearest != NULL)
        kiln_text_printf(&text, " (did you mean \"%s\"?)", nearest);
    kiln_text_append(&text, "; columns:");
    for (size_t c = 0; c < plan->n_columns; c++)
        kiln_text_printf(&text, "%s %s", c > 0 ? "," : "", plan->columns[c].name);
    if (load->data->source.n_names == 0)
        kiln_text_append(&text, "; if the first row is no header, give names=[...]");
    free(names);
    return kiln_text_to_error(&text, KILN_E_KEY, err);
}

static KilnStatus find_option(const Load *load, const char *option, const char *name, int64_t *ret,
                              KilnError *err)
{
    *ret = name != NULL ? kiln_table_plan_find(&load->data->plan, name) : -1;
    return name != NULL && *ret < 0 ? unknown_column(load, option, name, err) : KILN_OK;
}

/* Hashed columns are categories, and read as texts. */
static KilnStatus find_hashed_columns(Load *load, KilnError *err)
{
    const KilnTableSource *source = &load->data->source;
    KilnTablePlan *plan = &load->data->plan;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < source->n_hash_buckets && status >= 0; i++) {
        const char *name = source->hash_buckets[i].key;
        int64_t at = -1;

        status = find_option(load, "hash_buckets", name, &at, err);
        if (status < 0)
            return status;
        KilnTableColumn *column = &plan->columns[at];
        const bool other = column->given && column->kind != KILN_COLUMN_CATEGORY;
        if (other || at == plan->target || at == plan->group)
            return kiln_error_set(err, KILN_E_RANGE,
                                  "hash_buckets: column \"%s\" is %s; only categories are hashed",
                                  name,
                                  other                ? kiln_column_kinds[column->kind].name
                                  : at == plan->target ? "the target"
                                                       : "the group");
        column->kind = KILN_COLUMN_CATEGORY;
        column->given = true;
        column->buckets = source->hash_buckets[i].value;
    }
    return status;
}

KilnStatus kiln_table_find_split_columns(Load *load, KilnError *err)
{
    const KilnTableSource *source = &load->data->source;
    KilnSplitBy *by = &load->by;
    KilnStatus status = find_option(load, "split_column", source->split_column, &by->name, err);

    if (status >= 0)
        status = find_option(load, "split_order", source->split_order, &by->order, err);
    return status < 0
               ? status
               : find_option(load, "leave_last_out", source->leave_last_out, &by->last_of, err);
}

KilnStatus kiln_table_list_columns(Load *load, KilnError *err)
{
    const KilnTableSource *source = &load->data->source;
    const KilnNames *names = &load->data->sources[KILN_TRAIN].names;
    KilnTablePlan *plan = &load->data->plan;
    KilnStatus status = KILN_OK;

    plan->columns = calloc(names->n + 1, sizeof(*plan->columns));
    if (plan->columns == NULL)
        return kiln_error_nomem(err, names->n * sizeof(*plan->columns));
    for (; plan->n_columns < names->n; plan->n_columns++) {
        KilnTableColumn *column = &plan->columns[plan->n_columns];

        if ((column->name = kiln_strdup(names->list[plan->n_columns])) == NULL)
            return kiln_error_nomem(err, strlen(names->list[plan->n_columns]));
    }
    for (size_t i = 0; i < source->n_kinds && status >= 0; i++) {
        int64_t at = -1;

        status = find_option(load, "columns", source->kinds[i].key, &at, err);
        if (status >= 0) {
            plan->columns[at].kind = (KilnColumnKind)source->kinds[i].value;
            plan->columns[at].given = true;
        }
    }
    if (status >= 0)
        status = find_option(load, "target", source->target, &plan->target, err);
    if (status >= 0)
        status = find_option(load, "group", source->group, &plan->group, err);
    if (status >= 0)
        status = find_hashed_columns(load, err);
    plan->classes = source->target_type == KILN_TARGET_CLASSES;
    plan->scaling = source->scaling;
    plan->missing = source->missing;
    return status;
}

static bool is_read(const Load *load, size_t c)
{
    const KilnTableColumn *column = &load->data->plan.columns[c];
    const int64_t at = (int64_t)c;
    const bool known = column->given || load->context->fitted != NULL;

    return at == load->data->plan.target || at == load->data->plan.group || at == load->by.name ||
           at == load->by.order || at == load->by.last_of || !known ||
           (column->kind != KILN_COLUMN_IGNORED &&
            (column->kind != KILN_COLUMN_TEXT || kiln_table_is_text(load->data, c)));
}

KilnStatus kiln_table_choose_columns(Load *load, KilnError *err)
{
    const KilnTablePlan *plan = &load->data->plan;
    const bool fitted = load->context->fitted != NULL;

    load->columns = calloc(plan->n_columns + 1, sizeof(*load->columns));
    load->wanted = calloc(plan->n_columns + 1, sizeof(*load->wanted));
    if (load->columns == NULL || load->wanted == NULL)
        return kiln_error_nomem(err, plan->n_columns * sizeof(*load->columns));
    for (size_t c = 0; c < plan->n_columns; c++) {
        const KilnTableColumn *column = &plan->columns[c];
        const int64_t at = (int64_t)c;

        load->columns[c].name = column->name;
        load->wanted[c] = is_read(load, c);
        load->columns[c].as_text =
            at == load->by.name || at == plan->group || (at == plan->target && plan->classes) ||
            (at != plan->target && (column->given || fitted) &&
             (column->kind == KILN_COLUMN_CATEGORY || kiln_table_is_text(load->data, c)));
    }
    return KILN_OK;
}

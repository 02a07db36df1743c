/* Describes a table's samples: features, their columns, and the values that a raw sample has. */
#include <stdlib.h>

#include "data/table/table_data.h"
#include "kiln/tokenizer.h"

static const char *number_name(KilnTableData *data, const KilnTableNumber *number)
{
    const char *column = data->plan.columns[number->column].name;

    if (number->part < 0)
        return column;
    return kiln_arena_printf(&data->arena, "%s.%s", column,
                             number->part == KILN_DATE_PARTS ? "missing"
                                                             : kiln_date_parts[number->part]);
}

/* "(unknown)", "(missing)" and the names of a category; NULL: it is hashed. */
static const char *const *id_names(KilnTableData *data, const KilnTableColumn *column)
{
    if (column->buckets > 0)
        return NULL;
    const char **names = kiln_arena_alloc(&data->arena,
                                          (column->n_names + KILN_ID_FIRST) * sizeof(*names));

    if (names == NULL)
        return NULL;
    names[KILN_ID_UNKNOWN] = "(unknown)";
    names[KILN_ID_MISSING] = "(missing)";
    for (size_t i = 0; i < column->n_names; i++)
        names[i + KILN_ID_FIRST] = column->names[i];
    return names;
}

static int add_feature(KilnTableData *data, KilnFeature feature)
{
    data->features[data->n_features] = feature;
    return (int)data->n_features++;
}

static void add_rows(KilnTableData *data)
{
    const KilnTablePlan *plan = &data->plan;
    KilnRowColumn *numbers = kiln_arena_alloc(&data->arena,
                                              (plan->n_numbers + 1) * sizeof(*numbers));
    KilnRowColumn *categories = kiln_arena_alloc(&data->arena,
                                                 (plan->n_categories + 1) * sizeof(*categories));

    for (size_t i = 0; i < plan->n_numbers && numbers != NULL; i++)
        numbers[i].name = number_name(data, &plan->numbers[i]);
    for (size_t i = 0; i < plan->n_categories && categories != NULL; i++) {
        const KilnTableColumn *column = &plan->columns[plan->categories[i]];

        categories[i] = (KilnRowColumn) { .name = column->name,
                                          .n_ids = kiln_table_n_ids(column),
                                          .id_names = id_names(data, column) };
    }
    if (plan->n_numbers > 0)
        data->x = add_feature(data, (KilnFeature) { .name = "x",
                                                    .content = KILN_ROW,
                                                    .dtype = KILN_F32,
                                                    .shape = KILN_SHAPE((int64_t)plan->n_numbers),
                                                    .columns = numbers });
    if (plan->n_categories > 0)
        data->ids = add_feature(data,
                                (KilnFeature) { .name = "ids",
                                                .content = KILN_ROW,
                                                .dtype = KILN_I32,
                                                .shape = KILN_SHAPE((int64_t)plan->n_categories),
                                                .columns = categories });
}

static void add_tokens(KilnTableData *data)
{
    const KilnInstance *tokenizer = data->source.tokenizer;

    if (!kiln_table_has_texts(data))
        return;
    const int64_t pad = kiln_tokenizer_special(tokenizer, KILN_TOKEN_PAD);
    data->tokens = add_feature(data, (KilnFeature) { .name = "tokens",
                                                     .content = KILN_TOKENS,
                                                     .dtype = KILN_I32,
                                                     .shape = KILN_SHAPE(data->source.max_length),
                                                     .varies = true,
                                                     .pad = pad >= 0 ? (double)pad : 0.0,
                                                     .n_ids = kiln_tokenizer_size(tokenizer) });
}

/* A field for each column that "x", "ids" and "tokens" are made of. */
static void add_fields(KilnTableData *data)
{
    const KilnTablePlan *plan = &data->plan;

    data->fields = kiln_arena_alloc(&data->arena, (plan->n_columns + 1) * sizeof(*data->fields));
    data->field_of = kiln_arena_alloc(&data->arena,
                                      (plan->n_columns + 1) * sizeof(*data->field_of));
    for (size_t c = 0; c < plan->n_columns && !data->arena.failed; c++) {
        const KilnTableColumn *column = &plan->columns[c];
        const bool used = column->kind == KILN_COLUMN_NUMBER ||
                          column->kind == KILN_COLUMN_CATEGORY ||
                          column->kind == KILN_COLUMN_DATE || kiln_table_is_text(data, c);

        data->field_of[c] = -1;
        if (!used || (int64_t)c == plan->target || (int64_t)c == plan->group)
            continue;
        data->field_of[c] = (int64_t)data->n_fields;
        data->fields[data->n_fields++] = (KilnRawField) {
            .name = column->name,
            .types = KILN_RAW_TEXT | KILN_RAW_NUMBER,
            .optional = column->has_missing,
            .help = column->kind == KILN_COLUMN_NUMBER ? "a number"
                    : column->kind == KILN_COLUMN_DATE ? "a date"
                    : column->kind == KILN_COLUMN_TEXT ? "a text"
                                                       : "a category",
        };
    }
}

KilnStatus kiln_table_features(KilnTableData *data, KilnError *err)
{
    const KilnTablePlan *plan = &data->plan;

    data->x = data->ids = data->tokens = data->target = data->query = -1;
    add_rows(data);
    add_tokens(data);
    if (plan->target >= 0)
        data->target = add_feature(data,
                                   (KilnFeature) { .name = plan->classes ? "label" : "target",
                                                   .content = KILN_LABEL,
                                                   .dtype = plan->classes ? KILN_I32 : KILN_F32 });
    if (plan->group >= 0)
        data->query = add_feature(
            data, (KilnFeature) { .name = "query", .content = KILN_LABEL, .dtype = KILN_I32 });
    add_fields(data);
    return data->arena.failed ? kiln_error_nomem(err, plan->n_columns * sizeof(KilnRawField))
                              : KILN_OK;
}

/* Tables as samples: opening, reading, saving. */
#include "data/table/table_data.h"

#include <math.h>
#include <stdlib.h>

#include "base/system/zeros.h"
#include "base/text.h"
#include "kiln/array.h"

const KilnChoice kiln_target_types[4] = {
    { "auto", KILN_TARGET_AUTO },
    { "classes", KILN_TARGET_CLASSES },
    { "number", KILN_TARGET_NUMBER },
    { 0 },
};

const KilnChoice kiln_table_scalings[4] = {
    { "none", KILN_SCALING_NONE },
    { "standard", KILN_SCALING_STANDARD },
    { "quantile", KILN_SCALING_QUANTILE },
    { 0 },
};

const KilnChoice kiln_table_missing[3] = {
    { "mean", KILN_MISSING_MEAN },
    { "nan", KILN_MISSING_NAN },
    { 0 },
};

void kiln_table_note(KilnTableData *data, const char *format, ...)
{
    KilnText text = { 0 };
    va_list args;

    va_start(args, format);
    kiln_text_vprintf(&text, format, args);
    va_end(args);
    char *note = kiln_text_take(&text);
    if (note == NULL || !KILN_RESERVE(data->notes, data->notes_capacity, data->n_notes + 1)) {
        free(note);
        return;
    }
    data->notes[data->n_notes++] = note;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static KilnStatus open_data(KilnTableData *data, const KilnDataContext *context, KilnError *err)
{
    const KilnTableSource *source = &data->source;

    if (source->decimal != NULL && strcmp(source->decimal, ".") != 0 &&
        strcmp(source->decimal, ",") != 0)
        return kiln_error_set(err, KILN_E_RANGE, "decimal: expected \".\" or \",\", got \"%s\"",
                              source->decimal);
    kiln_cell_rules_init(&data->rules, source->decimal != NULL ? source->decimal[0] : '.',
                         source->missing_values, source->n_missing_values);
    if (context->stage != KILN_STAGE_PREDICT)
        return kiln_table_load(data, context, err);
    if (context->fitted == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "the checkpoint does not say what the columns of the table are");
    KilnStatus status = kiln_table_plan_read(&data->plan, context->fitted, err);
    if (status >= 0)
        status = kiln_table_open_tokenizer(data, context->fitted, err);
    return status >= 0 ? kiln_table_features(data, err) : status;
}

KilnStatus kiln_table_data_open(const KilnTableSource *source, const KilnDataContext *context,
                                KilnTableData **ret, KilnError *err)
{
    KilnTableData *data = calloc(1, sizeof(*data));

    if (data == NULL)
        return kiln_error_nomem(err, sizeof(*data));
    data->source = *source;
    data->poll = context->poll;
    data->plan.target = data->plan.group = -1;
    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        data->splits[split].data = data;
        data->splits[split].split = (KilnSplit)split;
    }
    const KilnStatus status = open_data(data, context, err);
    if (status < 0)
        kiln_table_data_free(data);
    else
        *ret = data;
    return status;
}

void kiln_table_data_free(KilnTableData *data)
{
    if (data == NULL)
        return;
    kiln_raw_input_release(&data->input);
    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        KilnTableRows *rows = &data->splits[split];

        free(rows->rows);
        kiln_zeros_free(rows->x);
        free(rows->ids);
        free(rows->labels);
        free(rows->targets);
        free(rows->queries);
        free(rows->tokens);
        free(rows->lengths);
        kiln_table_free(rows->table);
        kiln_source_close(&data->sources[split]);
    }
    for (size_t i = 0; i < data->n_notes; i++)
        free(data->notes[i]);
    free(data->notes);
    kiln_table_plan_release(&data->plan);
    kiln_arena_release(&data->arena);
    free(data);
}

KilnStatus kiln_table_data_save(const KilnTableData *data, const char *dir, KilnError *err)
{
    const KilnStatus status = kiln_table_plan_write(&data->plan, dir, err);

    return status >= 0 ? kiln_table_save_tokenizer(data, dir, err) : status;
}

/* ---- Samples --------------------------------------------------------------------------------- */

void kiln_table_data_spec(const KilnTableData *data, KilnDataSpec *ret)
{
    *ret = (KilnDataSpec) { .features = data->features,
                            .n_features = data->n_features,
                            .n_classes = data->plan.classes ? (int64_t)data->plan.n_classes : 0,
                            .class_names = (const char *const *)data->plan.class_names };
}

static void *room(const KilnSample *sample, int feature)
{
    return feature >= 0 ? sample->data[feature] : NULL;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const KilnTableRows *rows = ctx;
    const KilnTableData *data = rows->data;
    const size_t row = (size_t)index, numbers = data->plan.n_numbers;
    const size_t categories = data->plan.n_categories;

    (void)rng;
    (void)err;
    if (room(sample, data->x) != NULL)
        memcpy(room(sample, data->x), rows->x + row * numbers, numbers * sizeof(*rows->x));
    if (room(sample, data->ids) != NULL)
        memcpy(room(sample, data->ids), rows->ids + row * categories,
               categories * sizeof(*rows->ids));
    if (room(sample, data->tokens) != NULL)
        memcpy(room(sample, data->tokens), rows->tokens + index * data->source.max_length,
               (size_t)rows->lengths[index] * sizeof(*rows->tokens));
    if (room(sample, data->target) != NULL && rows->labels != NULL)
        *(int32_t *)room(sample, data->target) = rows->labels[row];
    else if (room(sample, data->target) != NULL && rows->targets != NULL)
        *(float *)room(sample, data->target) = rows->targets[row];
    if (room(sample, data->query) != NULL)
        *(int32_t *)room(sample, data->query) = rows->queries[row];
    return KILN_OK;
}

static void lengths(void *ctx, int64_t index, int64_t *ret)
{
    const KilnTableRows *rows = ctx;

    ret[rows->data->tokens] = rows->lengths[index];
}

static int64_t label(void *ctx, int64_t index)
{
    return ((const KilnTableRows *)ctx)->labels[index];
}

static const char *name(void *ctx, int64_t index)
{
    KilnTableRows *rows = ctx;

    return kiln_source_place(&rows->data->sources[rows->source], rows->rows[index], rows->place,
                             sizeof(rows->place));
}

void kiln_table_data_dataset(KilnTableData *data, KilnSplit split, KilnDataset *ret)
{
    KilnTableRows *rows = &data->splits[split];

    if (data->target >= 0 && rows->no_target)
        rows->absent[0] = data->features[data->target].name;
    *ret = (KilnDataset) { .count = rows->n,
                           .ctx = rows,
                           .get = get,
                           .name = name,
                           .label = rows->labels != NULL ? label : NULL,
                           .lengths = data->tokens >= 0 ? lengths : NULL,
                           .absent = rows->absent };
}

KilnStatus kiln_table_data_table(KilnTableData *data, KilnSplit split, KilnTable *ret,
                                 KilnError *err)
{
    KilnTableRows *rows = &data->splits[split];
    KilnDataSpec spec;
    KilnDataset dataset;
    KilnStatus status = KILN_OK;

    kiln_table_data_spec(data, &spec);
    kiln_table_data_dataset(data, split, &dataset);
    if (rows->table == NULL)
        status = kiln_table_new(&spec, &dataset, &rows->table, err);
    if (status >= 0)
        *ret = *rows->table;
    return status;
}

/* ---- Raw samples ----------------------------------------------------------------------------- */

size_t kiln_table_data_raw_fields(const KilnTableData *data, const KilnRawField **ret)
{
    *ret = data->fields;
    return data->n_fields;
}

/* What a raw value is; type 0: it is absent. `buf` has the text of a number. */
static KilnCellValue value_of(const KilnTableData *data, const KilnTableColumn *column,
                              const KilnRawValue *raw, char buf[40])
{
    const bool category = column->kind == KILN_COLUMN_CATEGORY;

    if (raw->type == KILN_RAW_TEXT)
        return kiln_cell_value(&data->rules, (KilnString) { raw->text, strlen(raw->text) },
                               category);
    if (raw->type != KILN_RAW_NUMBER || isnan(raw->number))
        return (KilnCellValue) { .kind = KILN_VALUE_MISSING };
    if (category)
        return (KilnCellValue) { .kind = KILN_VALUE_TEXT,
                                 .text = kiln_number_name(raw->number, buf) };
    return (KilnCellValue) { .kind = KILN_VALUE_NUMBER, .number = raw->number };
}

static KilnStatus check_value(const KilnTableColumn *column, const KilnCellValue *value,
                              KilnError *err)
{
    double parts[KILN_DATE_PARTS];
    const bool good = value->kind == KILN_VALUE_MISSING || column->kind == KILN_COLUMN_CATEGORY ||
                      (column->kind == KILN_COLUMN_NUMBER && value->kind == KILN_VALUE_NUMBER &&
                       isfinite(value->number)) ||
                      (column->kind == KILN_COLUMN_DATE && value->kind == KILN_VALUE_TEXT &&
                       kiln_date_read(value->text, parts));
    const KilnString text = value->kind == KILN_VALUE_TEXT ? value->text
                                                           : (KilnString) { "a number", 8 };

    return good ? KILN_OK
                : kiln_error_set(
                      err, KILN_E_TYPE, "column \"%s\" has \"%.*s\"; expected %s", column->name,
                      (int)(text.length < 64 ? text.length : 64), text.data,
                      column->kind == KILN_COLUMN_DATE ? "a date such as 2026-05-31" : "a number");
}

KilnStatus kiln_table_data_preprocess(const KilnTableData *data, const KilnRawValue *values,
                                      KilnSample *sample, KilnError *err)
{
    const KilnTablePlan *plan = &data->plan;
    float *x = room(sample, data->x);
    int32_t *ids = room(sample, data->ids);
    KilnStatus status = KILN_OK;
    char buf[40];

    for (size_t i = 0; i < plan->n_numbers && status >= 0; i++) {
        const KilnTableNumber *number = &plan->numbers[i];
        const KilnTableColumn *column = &plan->columns[number->column];
        const KilnCellValue value = value_of(data, column, &values[data->field_of[number->column]],
                                             buf);

        status = check_value(column, &value, err);
        double x_of_row = kiln_table_part(number->part, &value);
        kiln_table_numbers(plan, i, &x_of_row, 1);
        if (status >= 0 && x != NULL)
            x[i] = (float)x_of_row;
    }
    for (size_t i = 0; i < plan->n_categories && status >= 0 && ids != NULL; i++) {
        const KilnTableColumn *column = &plan->columns[plan->categories[i]];
        const KilnCellValue value = value_of(data, column,
                                             &values[data->field_of[plan->categories[i]]], buf);

        ids[i] = value.kind == KILN_VALUE_MISSING ? KILN_ID_MISSING
                                                  : kiln_table_id(column, value.text);
    }
    return status < 0 || room(sample, data->tokens) == NULL
               ? status
               : kiln_table_encode_raw(data, values, sample, err);
}

/* Reads recorded trials from a CSV file, and infers the space from their parameters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "kiln/files/text_records.h"
#include "sweep/simulate/curves.h"

enum { LONGEST_NAME = 4096 };
static const double log_from = 100.0; /* the largest over the smallest */

/* The file, and what its columns are. */
typedef struct Reader {
    KilnCurves *curves;
    const KilnObjective *objective;
    KilnRecords *records;
    const char *const *names;
    size_t n_names;
    size_t *columns; /* all of them, for kiln_records_read */
    size_t *parameters, n_parameters;
    size_t *epochs, n_epochs; /* columns of epochs 1, 2, ... */
    size_t seconds;           /* its column; SIZE_MAX: none */
    KilnRecord record;
    const char ***texts; /* of parameters, by row and parameter */
} Reader;

/* ---- Columns --------------------------------------------------------------------------------- */

static KilnStatus sort_columns(Reader *reader, const char *path, KilnError *err)
{
    KilnArena *arena = &reader->curves->arena;

    reader->n_names = kiln_records_columns(reader->records, &reader->names);
    const size_t bytes = (reader->n_names + 1) * sizeof(size_t);
    reader->columns = kiln_arena_alloc(arena, bytes);
    reader->parameters = kiln_arena_alloc(arena, bytes);
    reader->epochs = kiln_arena_alloc(arena, bytes);
    if (arena->failed)
        return kiln_error_nomem(err, bytes);
    reader->seconds = SIZE_MAX;
    for (size_t i = 0; i < reader->n_names; i++) {
        int64_t epoch = 0;

        reader->columns[i] = i;
        if (kiln_parse_i64(reader->names[i], &epoch, NULL) >= 0) {
            if (epoch != (int64_t)reader->n_epochs + 1)
                return kiln_error_set(err, KILN_E_FORMAT,
                                      "%s: column `%s`: expected `%zu`: columns of epochs are "
                                      "named 1, 2, 3 and so on",
                                      path, reader->names[i], reader->n_epochs + 1);
            reader->epochs[reader->n_epochs++] = i;
        } else if (strcmp(reader->names[i], "seconds") == 0) {
            reader->seconds = i;
        } else {
            reader->parameters[reader->n_parameters++] = i;
        }
    }
    if (reader->n_epochs > 0 && reader->n_parameters > 0)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_FORMAT,
                          "%s: has no columns of %s: expected a row for each trial, with a column "
                          "for each of its parameters and columns 1, 2, 3, ... for the metric "
                          "after each epoch",
                          path, reader->n_epochs == 0 ? "epochs" : "parameters");
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static KilnStatus read_number(const Reader *reader, const KilnCurve *curve, size_t column,
                              double *ret, KilnError *err)
{
    const KilnString field = reader->record.fields[column];
    char text[64];

    snprintf(text, sizeof(text), "%.*s", (int)fmin((double)field.length, 63.0), field.data);
    if (kiln_parse_f64(text, ret, NULL) >= 0)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_FORMAT, "%s: column `%s`: expected a number, got `%s`",
                          curve->name, reader->names[column], text);
}

static bool is_empty(const Reader *reader, size_t column)
{
    return reader->record.fields[column].length == 0;
}

static KilnStatus read_values(const Reader *reader, KilnCurve *curve, KilnError *err)
{
    double *values = kiln_arena_alloc(&reader->curves->arena, reader->n_epochs * sizeof(*values));
    KilnStatus status = values != NULL ? KILN_OK : kiln_error_nomem(err, reader->n_epochs);

    while (status >= 0 && (size_t)curve->n_epochs < reader->n_epochs &&
           !is_empty(reader, reader->epochs[curve->n_epochs])) {
        status = read_number(reader, curve, reader->epochs[curve->n_epochs],
                             &values[curve->n_epochs], err);
        curve->n_epochs++;
    }
    curve->values = values;
    if (status >= 0 && curve->n_epochs == 0)
        status = kiln_error_set(err, KILN_E_FORMAT, "%s: no value in column `1`", curve->name);
    for (size_t i = (size_t)curve->n_epochs; i < reader->n_epochs && status >= 0; i++)
        if (!is_empty(reader, reader->epochs[i]))
            status = kiln_error_set(err, KILN_E_FORMAT, "%s: no value in column `%s`, but in `%s`",
                                    curve->name, reader->names[reader->epochs[curve->n_epochs]],
                                    reader->names[reader->epochs[i]]);
    if (status >= 0 && reader->seconds != SIZE_MAX)
        status = read_number(reader, curve, reader->seconds, &curve->seconds, err);
    if (status >= 0 && !(curve->seconds > 0.0 && isfinite(curve->seconds)))
        status = kiln_error_set(err, KILN_E_FORMAT, "%s: column `seconds`: expected more than 0",
                                curve->name);
    return status;
}

static KilnStatus read_row(Reader *reader, size_t row, KilnError *err)
{
    KilnArena *arena = &reader->curves->arena;
    char name[LONGEST_NAME];
    KilnStatus status = kiln_records_read(reader->records, (int64_t)row, reader->columns,
                                          reader->n_names, &reader->record, err);
    KilnCurve *curve = status >= 0 ? kiln_curves_add(reader->curves) : NULL;

    if (status < 0 || curve == NULL)
        return status < 0 ? status : kiln_error_nomem(err, row);
    curve->name = kiln_arena_strdup(
        arena, kiln_records_location(reader->records, (int64_t)row, name, sizeof(name)));
    reader->texts[row] = kiln_arena_alloc(arena, reader->n_parameters * sizeof(char *));
    for (size_t i = 0; i < reader->n_parameters && reader->texts[row] != NULL; i++) {
        const KilnString field = reader->record.fields[reader->parameters[i]];

        if (field.length == 0)
            return kiln_error_set(err, KILN_E_FORMAT, "%s: no value in column `%s`",
                                  curve->name != NULL ? curve->name : "",
                                  reader->names[reader->parameters[i]]);
        reader->texts[row][i] = kiln_arena_strndup(arena, field.data, field.length);
    }
    return arena->failed ? kiln_error_nomem(err, row) : read_values(reader, curve, err);
}

/* ---- The space ------------------------------------------------------------------------------- */

/* The values of a parameter as an interval; false: they are texts, or few. */
static bool infer_interval(const Reader *reader, size_t parameter, size_t n_choices, KilnAxis *axis)
{
    bool whole = true;

    axis->low = (double)INFINITY;
    axis->high = -(double)INFINITY;
    for (size_t row = 0; row < reader->curves->count; row++) {
        double number;

        if (kiln_parse_f64(reader->texts[row][parameter], &number, NULL) < 0 || !isfinite(number))
            return false;
        whole = whole && floor(number) == number && fabs(number) < 1e15;
        axis->low = fmin(axis->low, number);
        axis->high = fmax(axis->high, number);
    }
    axis->kind = whole ? KILN_AXIS_INT : KILN_AXIS_FLOAT;
    axis->log = axis->low > 0.0 && axis->high / axis->low > log_from;
    return n_choices >= KILN_FEW_NUMBERS;
}

/* The index of a parameter's text in the list of the axis, to which it is added; SIZE_MAX: memory
 * is out. */
static size_t choice_of(KilnArena *arena, KilnAxis *axis, const char **overrides, const char *text)
{
    const size_t key = strlen(axis->key) + 1;

    for (size_t i = 0; i < axis->count; i++)
        if (strcmp(overrides[i] + key, text) == 0)
            return i;
    overrides[axis->count] = kiln_arena_printf(arena, "%s=%s", axis->key, text);
    return overrides[axis->count] != NULL ? axis->count++ : SIZE_MAX;
}

static KilnStatus infer_axis(const Reader *reader, size_t parameter, KilnAxisValue *const *points,
                             KilnAxis *axis, KilnError *err)
{
    KilnArena *arena = &reader->curves->arena;
    const size_t n = reader->curves->count;
    const char **overrides = kiln_arena_alloc(arena, (n + 1) * sizeof(*overrides));

    *axis =
        (KilnAxis) { .key = kiln_arena_strdup(arena, reader->names[reader->parameters[parameter]]),
                     .leader = parameter };
    if (arena->failed)
        return kiln_error_nomem(err, n);
    for (size_t row = 0; row < n; row++)
        points[row][parameter].index = choice_of(arena, axis, overrides,
                                                 reader->texts[row][parameter]);
    if (arena->failed)
        return kiln_error_nomem(err, n);
    if (!infer_interval(reader, parameter, axis->count, axis)) {
        axis->kind = KILN_AXIS_CHOICE;
        axis->overrides = overrides;
        return KILN_OK;
    }
    axis->count = 0;
    for (size_t row = 0; row < n; row++)
        (void)!kiln_parse_f64(reader->texts[row][parameter], &points[row][parameter].number, NULL);
    return KILN_OK;
}

static KilnStatus infer_space(Reader *reader, KilnError *err)
{
    KilnCurves *curves = reader->curves;
    const size_t n = reader->n_parameters;
    const KilnAxis **list = kiln_arena_alloc(&curves->arena, n * sizeof(*list));
    KilnAxis *axes = kiln_arena_alloc(&curves->arena, n * sizeof(*axes));
    KilnAxisValue **points = kiln_arena_alloc(&curves->arena, curves->count * sizeof(*points));
    KilnStatus status = KILN_OK;

    for (size_t row = 0; row < curves->count && points != NULL; row++) {
        points[row] = kiln_arena_alloc(&curves->arena, n * sizeof(KilnAxisValue));
        curves->curves[row].point = points[row];
    }
    if (curves->arena.failed)
        return kiln_error_nomem(err, n);
    for (size_t i = 0; i < n && status >= 0; i++) {
        status = infer_axis(reader, i, points, &axes[i], err);
        list[i] = &axes[i];
    }
    curves->space = (KilnSpace) { .axes = list, .count = n };
    return status;
}

/* ---- The file -------------------------------------------------------------------------------- */

static KilnStatus read_rows(Reader *reader, const char *path, KilnError *err)
{
    const size_t n = (size_t)kiln_records_count(reader->records);
    KilnStatus status = sort_columns(reader, path, err);

    if (status >= 0 && n == 0)
        status = kiln_error_set(err, KILN_E_FORMAT, "%s: has no rows", path);
    if (status < 0)
        return status;
    reader->texts = kiln_arena_alloc(&reader->curves->arena, n * sizeof(*reader->texts));
    if (reader->texts == NULL)
        return kiln_error_nomem(err, n);
    for (size_t row = 0; row < n && status >= 0; row++)
        status = read_row(reader, row, err);
    return status >= 0 ? infer_space(reader, err) : status;
}

KilnStatus kiln_curves_read_csv(const char *path, const KilnObjective *objective, KilnCurves *ret,
                                KilnError *err)
{
    const KilnRecordsSpec spec = { .paths = &path, .n_paths = 1, .format = KILN_RECORDS_CSV };
    Reader reader = { .curves = ret, .objective = objective };
    KilnStatus status = kiln_records_open(&spec, &reader.records, err);

    ret->objective = (KilnObjective) {
        .metric = "value",
        .mode = objective->mode == KILN_MODE_AUTO ? KILN_MODE_MIN : objective->mode,
    };
    if (status >= 0)
        status = read_rows(&reader, path, err);
    kiln_record_release(&reader.record);
    kiln_records_close(reader.records);
    return status;
}

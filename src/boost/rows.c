/* From samples to the rows that trees split: columns, targets, weights and queries. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "kiln/tools/boost.h"

/* ---- Columns --------------------------------------------------------------------- */

static bool has_columns(const KilnFeature *feature)
{
    return (feature->content & (KILN_VECTOR | KILN_ROW)) != 0 && !feature->varies;
}

static bool is_category(const KilnFeature *feature, int64_t i)
{
    return feature->dtype == KILN_I32 &&
           (feature->n_ids > 0 || (feature->columns != NULL && feature->columns[i].n_ids > 0));
}

/* As tables call it (kiln_table_new). */
static char *name_of(const KilnFeature *feature, int64_t i)
{
    KilnText name = { 0 };

    if (feature->columns != NULL)
        kiln_text_append(&name, feature->columns[i].name);
    else
        kiln_text_printf(&name, "%s.%lld", feature->name, (long long)i);
    return kiln_text_take(&name);
}

static KilnStatus add_columns(KilnBoostColumns *columns, const KilnFeature *feature, KilnError *err)
{
    const int64_t n = kiln_shape_count(&feature->shape);

    columns->named = columns->named || feature->columns != NULL;
    for (int64_t i = 0; i < n; i++) {
        char *name = name_of(feature, i);

        if (name == NULL)
            return kiln_error_nomem(err, 1);
        columns->names[columns->n] = name;
        columns->categories[columns->n] = is_category(feature, i);
        columns->any_category = columns->any_category || columns->categories[columns->n];
        columns->n++;
    }
    return KILN_OK;
}

/* Texts and targets are for others; anything else is nothing that trees split. */
static KilnStatus count_columns(const KilnDataSpec *spec, int64_t *ret, KilnError *err)
{
    int64_t n = 0;

    for (size_t f = 0; f < spec->n_features; f++) {
        const KilnFeature *feature = &spec->features[f];

        if (has_columns(feature))
            n += kiln_shape_count(&feature->shape);
        else if ((feature->content & (KILN_LABEL | KILN_TEXT)) == 0)
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "trees split columns of numbers and categories (vectors and rows "
                                  "of a fixed length), but the data has \"%s\", %s%s; use a "
                                  "datamodule of tables, such as libsvm",
                                  feature->name, kiln_content_name(feature->content),
                                  feature->varies ? " of varying length" : "");
    }
    if (n == 0)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "the data has no columns to split: no vector and no row");
    *ret = n;
    return KILN_OK;
}

KilnStatus kiln_boost_columns_init(const KilnDataSpec *spec, KilnBoostColumns *ret, KilnError *err)
{
    int64_t n = 0;
    KilnStatus status = count_columns(spec, &n, err);

    *ret = (KilnBoostColumns) { 0 };
    if (status < 0)
        return status;
    ret->names = calloc((size_t)n, sizeof(*ret->names));
    ret->categories = calloc((size_t)n, sizeof(*ret->categories));
    if (ret->names == NULL || ret->categories == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*ret->names));
    for (size_t f = 0; f < spec->n_features && status >= 0; f++)
        if (has_columns(&spec->features[f]))
            status = add_columns(ret, &spec->features[f], err);
    return status;
}

void kiln_boost_columns_release(KilnBoostColumns *columns)
{
    for (int64_t i = 0; i < columns->n; i++)
        free(columns->names[i]);
    free(columns->names);
    free(columns->categories);
    *columns = (KilnBoostColumns) { 0 };
}

int64_t kiln_boost_column(const KilnBoostColumns *columns, const char *name)
{
    for (int64_t i = 0; i < columns->n; i++)
        if (strcmp(columns->names[i], name) == 0)
            return i;
    return -1;
}

/* An id below 0 is missing. */
static float number_of(KilnDType dtype, const void *values, int64_t i, bool category)
{
    if (dtype == KILN_F32)
        return ((const float *)values)[i];
    const int32_t id = ((const int32_t *)values)[i];

    return category && id < 0 ? NAN : (float)id;
}

void kiln_boost_put(const KilnFeature *feature, const void *values, float *row)
{
    const int64_t n = kiln_shape_count(&feature->shape);

    for (int64_t i = 0; i < n && has_columns(feature); i++)
        row[i] = number_of(feature->dtype, values, i, is_category(feature, i));
}

/* ---- Columns of a table -------------------------------------------------------------- */

/* The table's column of that name; `hint` is the number of the likely one, and advances. NULL:
 * there is none. */
static const KilnColumn *table_column(const KilnTable *table, const char *name, size_t *hint)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        const size_t at = (*hint + i) % table->n_columns;

        if (table->columns[at].data != NULL && strcmp(table->columns[at].name, name) == 0) {
            *hint = at + 1;
            return &table->columns[at];
        }
    }
    return NULL;
}

static KilnStatus copy_values(const KilnBoostColumns *columns, const KilnTable *table,
                              KilnBoostRows *rows, KilnError *err)
{
    size_t hint = 0;

    for (int64_t c = 0; c < columns->n; c++) {
        const KilnColumn *column = table_column(table, columns->names[c], &hint);

        if (column == NULL || (column->dtype != KILN_F32 && column->dtype != KILN_I32))
            return kiln_error_set(err, KILN_E_MISSING,
                                  "the table has no column \"%s\" of f32 or i32",
                                  columns->names[c]);
        for (int64_t row = 0; row < rows->n; row++)
            rows->values[row * rows->columns + c] = number_of(column->dtype, column->data, row,
                                                              columns->categories[c]);
    }
    return KILN_OK;
}

/* A copy of a column of one number a row; *ret stays NULL if there is none. */
static KilnStatus copy_column(const KilnTable *table, const char *name, float **ret, KilnError *err)
{
    size_t hint = 0;
    const KilnColumn *column = table_column(table, name, &hint);
    const size_t bytes = (size_t)table->n_rows * sizeof(float);

    if (column == NULL)
        return KILN_OK;
    *ret = malloc(bytes + 1);
    if (*ret == NULL)
        return kiln_error_nomem(err, bytes);
    for (int64_t row = 0; row < table->n_rows; row++) {
        const float value = number_of(column->dtype, column->data, row, false);

        if (!isfinite(value))
            return kiln_error_set(err, KILN_E_RANGE,
                                  "row %lld: its %s is %g; expected a finite number",
                                  (long long)row + 1, name, (double)value);
        (*ret)[row] = value;
    }
    return KILN_OK;
}

/* ---- Queries --------------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return x < y ? -1 : x > y ? 1 : 0;
}

/* Each query has its rows in one place. `firsts` has the id of each group. */
static KilnStatus check_queries(int32_t *firsts, int64_t n, KilnError *err)
{
    qsort(firsts, (size_t)n, sizeof(*firsts), compare_ids);
    for (int64_t i = 1; i < n; i++)
        if (firsts[i] == firsts[i - 1])
            return kiln_error_set(err, KILN_E_RANGE,
                                  "the rows of query %d are in several places; rows of a query "
                                  "must follow each other",
                                  firsts[i]);
    return KILN_OK;
}

/* Group the rows by query; a weight is the query's. */
static KilnStatus read_queries(const int32_t *queries, KilnBoostRows *rows, KilnError *err)
{
    int32_t *firsts = malloc((size_t)rows->n * sizeof(*firsts) + 1);

    rows->groups = malloc((size_t)rows->n * sizeof(*rows->groups) + 1);
    if (firsts == NULL || rows->groups == NULL) {
        free(firsts);
        return kiln_error_nomem(err, (size_t)rows->n * sizeof(*rows->groups));
    }
    for (int64_t row = 0; row < rows->n; row++) {
        if (row == 0 || queries[row] != queries[row - 1]) {
            firsts[rows->n_groups] = queries[row];
            if (rows->weights != NULL)
                rows->weights[rows->n_groups] = rows->weights[row];
            rows->groups[rows->n_groups++] = 0;
        }
        rows->groups[rows->n_groups - 1]++;
    }
    KilnStatus status = check_queries(firsts, rows->n_groups, err);
    free(firsts);
    return status;
}

/* ---- Rows ------------------------------------------------------------------------------ */

static const char *target_name(const KilnDataSpec *spec)
{
    return kiln_spec_feature(spec, "label") != NULL ? "label" : "target";
}

KilnStatus kiln_boost_rows_init(const KilnDataSpec *spec, const KilnBoostColumns *columns,
                                const KilnTable *table, KilnBoostRows *ret, KilnError *err)
{
    const size_t count = (size_t)table->n_rows * (size_t)columns->n;
    const bool ranks = kiln_spec_feature(spec, "query") != NULL;
    size_t hint = 0;

    *ret = (KilnBoostRows) { .n = table->n_rows, .columns = columns->n };
    ret->values = malloc(count * sizeof(*ret->values) + 1);
    if (ret->values == NULL)
        return kiln_error_nomem(err, count * sizeof(*ret->values));
    KilnStatus status = copy_values(columns, table, ret, err);
    if (status >= 0)
        status = copy_column(table, target_name(spec), &ret->targets, err);
    if (status >= 0)
        status = copy_column(table, "weight", &ret->weights, err);
    const KilnColumn *queries = ranks ? table_column(table, "query", &hint) : NULL;
    if (status >= 0 && queries != NULL && queries->dtype == KILN_I32)
        status = read_queries(queries->data, ret, err);
    return status;
}

void kiln_boost_rows_release(KilnBoostRows *rows)
{
    free(rows->values);
    free(rows->targets);
    free(rows->weights);
    free(rows->groups);
    *rows = (KilnBoostRows) { 0 };
}

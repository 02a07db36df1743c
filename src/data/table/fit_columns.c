/* Fits a table's columns to the training rows: names of categories and classes, means, quantiles.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/min.h"
#include "base/parse.h"
#include "base/system/machine.h"
#include "base/system/threads.h"
#include "base/text.h"
#include "data/table/table_internal.h"
#include "kiln/array.h"
#include "kiln/files/cache.h"

/* ---- Names ----------------------------------------------------------------------------------- */

KilnString kiln_number_name(double number, char buf[40])
{
    if (number == floor(number) && fabs(number) < 1e15)
        snprintf(buf, 40, "%.0f", number == 0.0 ? 0.0 : number);
    else
        (void)kiln_format_f64(number, buf, 40);
    return (KilnString) { buf, strlen(buf) };
}

KilnString kiln_cut_end(KilnString text, const char *end)
{
    const size_t n = end != NULL ? strlen(end) : 0;

    for (size_t i = 0; n > 0 && i + n <= text.length; i++)
        if (memcmp(text.data + i, end, n) == 0) {
            text.length = i;
            break;
        }
    return text;
}

/* Numbers come first, in their order; other texts in that of their bytes. */
static int compare(KilnString a, KilnString b)
{
    const size_t shorter = a.length < b.length ? a.length : b.length;
    double x, y;
    const bool first = kiln_number_is(a, '.', &x), second = kiln_number_is(b, '.', &y);

    if (first != second)
        return first ? -1 : 1;
    if (first && x != y)
        return x < y ? -1 : 1;
    const int order = shorter > 0 ? memcmp(a.data, b.data, shorter) : 0;
    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

static KilnString string_of(const char *text)
{
    return (KilnString) { text, strlen(text) };
}

static int by_name(const void *a, const void *b)
{
    return compare(string_of(*(char *const *)a), string_of(*(char *const *)b));
}

int64_t kiln_names_find(char *const *names, size_t n, KilnString text)
{
    size_t low = 0, high = n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare(string_of(names[middle]), text);

        if (order == 0)
            return (int64_t)middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

/* Names while they are collected. */
typedef struct Names {
    char **list;
    size_t n, capacity;
} Names;

static bool add_name(Names *names, KilnString text)
{
    char *copy = malloc(text.length + 1);

    if (copy == NULL || !KILN_RESERVE(names->list, names->capacity, names->n + 1)) {
        free(copy);
        return false;
    }
    if (text.length > 0)
        memcpy(copy, text.data, text.length);
    copy[text.length] = '\0';
    names->list[names->n++] = copy;
    return true;
}

/* Sort, and keep one of equal ones. */
static void sort_names(Names *names)
{
    size_t n = 0;

    if (names->n > 0)
        qsort(names->list, names->n, sizeof(*names->list), by_name);
    for (size_t i = 0; i < names->n; i++) {
        if (n > 0 && strcmp(names->list[n - 1], names->list[i]) == 0)
            free(names->list[i]);
        else
            names->list[n++] = names->list[i];
    }
    names->n = n;
}

KilnStatus kiln_fit_names(const KilnCells *cells, size_t column, const KilnDictionary *dictionary,
                          const char *end, KilnRowList rows, char ***ret, size_t *ret_n,
                          KilnError *err)
{
    bool *seen = calloc(dictionary->n + 1, sizeof(*seen));
    bool good = seen != NULL;
    double last = (double)NAN;
    Names names = { 0 };
    char buf[40];

    for (int64_t i = 0; i < rows.n && good; i++) {
        const KilnCell cell = cells->cells[column][rows.rows[i]];

        if (kiln_cell_is_text(cell) && !seen[kiln_cell_code(cell)]) {
            seen[kiln_cell_code(cell)] = true;
            good = add_name(&names, kiln_cut_end(dictionary->texts[kiln_cell_code(cell)], end));
        } else if (kiln_cell_is_number(cell) && kiln_cell_number(cell) != last) {
            last = kiln_cell_number(cell);
            good = add_name(&names, kiln_number_name(last, buf));
            if (names.n % (1 << 16) == 0)
                sort_names(&names);
        }
    }
    free(seen);
    sort_names(&names);
    if (!good) {
        for (size_t i = 0; i < names.n; i++)
            free(names.list[i]);
        free(names.list);
        return kiln_error_nomem(err, names.n * sizeof(*names.list));
    }
    *ret = names.list;
    *ret_n = names.n;
    return KILN_OK;
}

int64_t kiln_table_n_ids(const KilnTableColumn *column)
{
    return KILN_ID_FIRST + (column->buckets > 0 ? column->buckets : (int64_t)column->n_names);
}

int32_t kiln_table_id(const KilnTableColumn *column, KilnString text)
{
    if (column->buckets > 0)
        return (int32_t)(kiln_hash(text.data, text.length, 0) % (uint64_t)column->buckets) +
               KILN_ID_FIRST;
    const int64_t at = kiln_names_find(column->names, column->n_names, text);

    return at < 0 ? KILN_ID_UNKNOWN : (int32_t)at + KILN_ID_FIRST;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

double kiln_table_part(int part, const KilnCellValue *value)
{
    double parts[KILN_DATE_PARTS];

    if (part == KILN_DATE_PARTS)
        return value->kind == KILN_VALUE_MISSING ? 1.0 : 0.0;
    if (part < 0)
        return value->kind == KILN_VALUE_NUMBER ? value->number : (double)NAN;
    return value->kind == KILN_VALUE_TEXT && kiln_date_read(value->text, parts) ? parts[part]
                                                                                : (double)NAN;
}

void kiln_table_numbers(const KilnTablePlan *plan, size_t i, double *values, int64_t n)
{
    const KilnTableNumber *number = &plan->numbers[i];

    if (number->part == KILN_DATE_PARTS)
        return;
    for (int64_t row = 0; row < n && plan->missing == KILN_MISSING_MEAN; row++)
        values[row] = isnan(values[row]) ? number->fill : values[row];
    kiln_scaling_apply(number, plan->scaling, values, n);
}

static void add_number(KilnTablePlan *plan, size_t column, int part)
{
    plan->numbers[plan->n_numbers++] =
        (KilnTableNumber) { .column = column, .part = part, .deviation = 1.0 };
}

/* A number for each column of numbers, those of each date, then those that say what is missing. */
static KilnStatus list_numbers(KilnTablePlan *plan, bool indicators, KilnError *err)
{
    plan->numbers = calloc(plan->n_columns * (KILN_DATE_PARTS + 1) + 1, sizeof(*plan->numbers));
    plan->categories = calloc(plan->n_columns + 1, sizeof(*plan->categories));
    if (plan->numbers == NULL || plan->categories == NULL)
        return kiln_error_nomem(err, plan->n_columns * sizeof(*plan->numbers));
    for (size_t c = 0; c < plan->n_columns; c++) {
        const KilnTableColumn *column = &plan->columns[c];
        const int parts = column->kind != KILN_COLUMN_DATE ? 0
                          : column->has_times              ? KILN_DATE_PARTS
                                                           : KILN_DATE_HOUR;

        if ((int64_t)c == plan->target || (int64_t)c == plan->group)
            continue;
        if (column->kind == KILN_COLUMN_NUMBER)
            add_number(plan, c, -1);
        for (int part = 0; part < parts; part++)
            add_number(plan, c, part);
        if (column->kind == KILN_COLUMN_CATEGORY)
            plan->categories[plan->n_categories++] = c;
    }
    for (size_t c = 0; c < plan->n_columns && indicators; c++)
        if ((plan->columns[c].kind == KILN_COLUMN_NUMBER ||
             plan->columns[c].kind == KILN_COLUMN_DATE) &&
            plan->columns[c].has_missing && (int64_t)c != plan->target && (int64_t)c != plan->group)
            add_number(plan, c, KILN_DATE_PARTS);
    return KILN_OK;
}

/* Threads fit one number each. */
typedef struct Job {
    KilnTablePlan *plan;
    const KilnCells *cells;
    const KilnCellColumn *columns;
    KilnRowList rows;
    uint64_t seed;
    atomic_size_t next;
} Job;

typedef struct Worker {
    Job *job;
    double *values; /* [rows] */
    KilnStatus status;
    KilnError err;
} Worker;

/* The values of a number that are there; returns how many. */
static int64_t gather(const Job *job, const KilnTableNumber *number, double *ret)
{
    const KilnCell *cells = job->cells->cells[number->column];
    const KilnDictionary *dictionary = &job->columns[number->column].dictionary;
    int64_t n = 0;

    for (int64_t i = 0; i < job->rows.n; i++) {
        const KilnCell cell = cells[job->rows.rows[i]];

        if (number->part < 0 && kiln_cell_is_number(cell)) {
            ret[n++] = kiln_cell_number(cell);
        } else if (number->part >= 0 && kiln_cell_is_text(cell)) {
            const KilnCellValue value = { .kind = KILN_VALUE_TEXT,
                                          .text = dictionary->texts[kiln_cell_code(cell)] };

            ret[n] = kiln_table_part(number->part, &value);
            n += !isnan(ret[n]);
        }
    }
    return n;
}

static void *fit(void *argument)
{
    Worker *worker = argument;
    Job *job = worker->job;
    size_t i;

    while (worker->status >= 0 && (i = atomic_fetch_add(&job->next, 1)) < job->plan->n_numbers) {
        KilnTableNumber *number = &job->plan->numbers[i];

        if (number->part == KILN_DATE_PARTS)
            continue;
        const int64_t n = gather(job, number, worker->values);
        worker->status = kiln_scaling_fit(number, job->plan->scaling, worker->values, n, job->seed,
                                          i, &worker->err);
    }
    return NULL;
}

static KilnStatus fit_numbers(Job *job, KilnError *err)
{
    enum { MAX_THREADS = 16 };
    const size_t n = (size_t)kiln_min_i64(kiln_processors_here().threads, MAX_THREADS);
    Worker *workers = calloc(n, sizeof(*workers));
    KilnStatus status = workers != NULL ? KILN_OK : kiln_error_nomem(err, n * sizeof(*workers));

    for (size_t w = 0; w < n && status >= 0; w++) {
        workers[w].job = job;
        workers[w].values = malloc(((size_t)job->rows.n + 1) * sizeof(double));
        if (workers[w].values == NULL)
            status = kiln_error_nomem(err, (size_t)job->rows.n * sizeof(double));
    }
    if (status >= 0)
        kiln_run_in_threads(n, fit, workers, sizeof(*workers));
    for (size_t w = 0; w < n && workers != NULL; w++) {
        if (status >= 0 && workers[w].status < 0) {
            status = workers[w].status;
            if (err != NULL)
                *err = workers[w].err;
        }
        free(workers[w].values);
    }
    free(workers);
    return status;
}

/* The first rows decide whether dates have times. */
static bool has_times(const KilnDictionary *dictionary)
{
    double parts[KILN_DATE_PARTS];

    for (size_t i = 0; i < dictionary->n; i++)
        if (kiln_date_read(dictionary->texts[i], parts) && dictionary->texts[i].length > 10)
            return true;
    return false;
}

KilnStatus kiln_table_plan_fit(KilnTablePlan *plan, const KilnCells *cells,
                               const KilnCellColumn *columns, KilnRowList rows, bool indicators,
                               uint64_t seed, KilnError *err)
{
    Job job = { .plan = plan, .cells = cells, .columns = columns, .rows = rows, .seed = seed };
    KilnStatus status = KILN_OK;

    for (size_t c = 0; c < plan->n_columns && status >= 0; c++) {
        KilnTableColumn *column = &plan->columns[c];

        column->has_times = column->kind == KILN_COLUMN_DATE && has_times(&columns[c].dictionary);
        if (column->kind == KILN_COLUMN_CATEGORY && column->buckets == 0 &&
            (int64_t)c != plan->target)
            status = kiln_fit_names(cells, c, &columns[c].dictionary, NULL, rows, &column->names,
                                    &column->n_names, err);
    }
    if (status >= 0)
        status = list_numbers(plan, indicators, err);
    return status >= 0 && plan->n_numbers > 0 ? fit_numbers(&job, err) : status;
}

/* ---- The plan -------------------------------------------------------------------------------- */

int64_t kiln_table_plan_find(const KilnTablePlan *plan, const char *name)
{
    for (size_t c = 0; c < plan->n_columns; c++)
        if (strcmp(plan->columns[c].name, name) == 0)
            return (int64_t)c;
    return -1;
}

static void free_names(char **names, size_t n)
{
    for (size_t i = 0; i < n && names != NULL; i++)
        free(names[i]);
    free(names);
}

void kiln_table_plan_release(KilnTablePlan *plan)
{
    for (size_t c = 0; c < plan->n_columns && plan->columns != NULL; c++) {
        free(plan->columns[c].name);
        free_names(plan->columns[c].names, plan->columns[c].n_names);
    }
    for (size_t i = 0; i < plan->n_numbers && plan->numbers != NULL; i++)
        free(plan->numbers[i].quantiles);
    free_names(plan->class_names, plan->n_classes);
    free(plan->columns);
    free(plan->numbers);
    free(plan->categories);
    *plan = (KilnTablePlan) { .target = -1, .group = -1 };
}

/* Makes the samples of a split from its cells, in all threads. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/min.h"
#include "base/system/machine.h"
#include "base/system/threads.h"
#include "base/system/zeros.h"
#include "data/table/table_data.h"

enum { BLOCK = 256, MAX_THREADS = 64 };

typedef struct Job {
    KilnTableRows *rows;
    const KilnTablePlan *plan;
    const KilnCells *cells;
    KilnRowList list;
    int32_t **ids;                 /* of each category: by code of its text */
    double **dates;                /* of each number that is a part of a date: by code */
    const KilnDictionary *classes; /* of the target's texts */
    const KilnCell *target;        /* NULL: rows have none */
    atomic_int_least64_t next;
} Job;

/* ---- What texts mean ------------------------------------------------------------------------- */

static KilnStatus map_texts(Job *job, const KilnCellColumn *columns, KilnError *err)
{
    const KilnTablePlan *plan = job->plan;

    for (size_t i = 0; i < plan->n_categories; i++) {
        const KilnDictionary *dictionary = &columns[plan->categories[i]].dictionary;

        job->ids[i] = malloc((dictionary->n + 1) * sizeof(**job->ids));
        if (job->ids[i] == NULL)
            return kiln_error_nomem(err, dictionary->n * sizeof(**job->ids));
        for (size_t code = 0; code < dictionary->n; code++)
            job->ids[i][code] = kiln_table_id(&plan->columns[plan->categories[i]],
                                              dictionary->texts[code]);
    }
    for (size_t i = 0; i < plan->n_numbers; i++) {
        const KilnDictionary *dictionary = &columns[plan->numbers[i].column].dictionary;

        if (plan->numbers[i].part < 0 || plan->numbers[i].part == KILN_DATE_PARTS)
            continue;
        job->dates[i] = malloc((dictionary->n + 1) * sizeof(**job->dates));
        if (job->dates[i] == NULL)
            return kiln_error_nomem(err, dictionary->n * sizeof(**job->dates));
        for (size_t code = 0; code < dictionary->n; code++)
            job->dates[i][code] = kiln_table_part(
                plan->numbers[i].part,
                &(KilnCellValue) { .kind = KILN_VALUE_TEXT, .text = dictionary->texts[code] });
    }
    return KILN_OK;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Whether the number is missing, 0 or 1, or what a date's text becomes. */
static double part_of(const Job *job, size_t i, KilnCell cell)
{
    if (job->plan->numbers[i].part == KILN_DATE_PARTS)
        return kiln_cell_is_number(cell) || kiln_cell_is_text(cell) ? 0.0 : 1.0;
    return kiln_cell_is_text(cell) ? job->dates[i][kiln_cell_code(cell)] : (double)NAN;
}

/* Number i of rows `from` to `to`, of which there are at most BLOCK. */
static void fill_number(const Job *job, size_t i, int64_t from, int64_t to)
{
    const KilnTableNumber *number = &job->plan->numbers[i];
    const KilnCell *cells = job->cells->cells[number->column];
    const int64_t *list = job->list.rows + from;
    const size_t stride = job->plan->n_numbers;
    float *x = job->rows->x + (size_t)from * stride + i;
    double values[BLOCK];

    if (number->part < 0) /* a cell that is no number is a NaN */
        for (int64_t row = 0; row < to - from; row++)
            values[row] = kiln_cell_number(cells[list[row]]);
    else
        for (int64_t row = 0; row < to - from; row++)
            values[row] = part_of(job, i, cells[list[row]]);
    kiln_table_numbers(job->plan, i, values, to - from);
    for (int64_t row = 0; row < to - from; row++)
        x[(size_t)row * stride] = (float)values[row];
}

static int32_t id_of(const Job *job, size_t i, KilnCell cell)
{
    char buf[40];

    if (kiln_cell_is_text(cell))
        return job->ids[i][kiln_cell_code(cell)];
    if (!kiln_cell_is_number(cell))
        return KILN_ID_MISSING;
    return kiln_table_id(&job->plan->columns[job->plan->categories[i]],
                         kiln_number_name(kiln_cell_number(cell), buf));
}

/* ---- Targets --------------------------------------------------------------------------------- */

int32_t kiln_table_class(const KilnTableData *data, const KilnDictionary *dictionary, KilnCell cell)
{
    const KilnTablePlan *plan = &data->plan;
    char buf[40];
    const KilnString text = kiln_cell_is_text(cell)
                                ? kiln_cut_end(dictionary->texts[kiln_cell_code(cell)],
                                               data->source.target_end)
                                : kiln_number_name(kiln_cell_number(cell), buf);
    int64_t class = kiln_names_find(plan->class_names, plan->n_classes, text);
    double number;

    /* classes that were numbers in training */
    if (class < 0 && kiln_cell_is_text(cell) && kiln_number_is(text, '.', &number))
        class = kiln_names_find(plan->class_names, plan->n_classes, kiln_number_name(number, buf));
    return (int32_t) class;
}

static void fill_target(const Job *job, int64_t from, int64_t to)
{
    KilnTableRows *rows = job->rows;

    for (int64_t i = from; i < to; i++) {
        const KilnCell cell = job->target[job->list.rows[i]];

        if (rows->labels != NULL)
            rows->labels[i] = kiln_table_class(rows->data, job->classes, cell);
        else
            rows->targets[i] = (float)kiln_cell_number(cell);
    }
}

/* Queries are numbered in the order of their rows. */
static KilnStatus fill_queries(KilnTableRows *rows, const KilnCells *cells,
                               const KilnDictionary *dictionary, KilnRowList list, KilnError *err)
{
    const KilnCell *group = cells->cells[rows->data->plan.group];
    int32_t *numbers = malloc((dictionary->n + 1) * sizeof(*numbers)), n = 1;

    if (numbers == NULL)
        return kiln_error_nomem(err, dictionary->n * sizeof(*numbers));
    memset(numbers, -1, (dictionary->n + 1) * sizeof(*numbers));
    for (int64_t i = 0; i < list.n; i++) {
        const KilnCell cell = group[list.rows[i]];
        int32_t *number =
            &numbers[kiln_cell_is_text(cell) ? kiln_cell_code(cell) : (int32_t)dictionary->n];

        if (*number < 0)
            *number = n++;
        rows->queries[i] = *number - 1;
    }
    free(numbers);
    return KILN_OK;
}

/* ---- A split --------------------------------------------------------------------------------- */

static KilnStatus allocate(KilnTableRows *rows, int64_t n, bool has_target, KilnError *err)
{
    const KilnTablePlan *plan = &rows->data->plan;
    const size_t room = (size_t)n + 1;
    bool good;

    rows->x = kiln_zeros(room * plan->n_numbers * sizeof(*rows->x) + 1);
    rows->ids = malloc(room * plan->n_categories * sizeof(*rows->ids) + 1);
    rows->rows = malloc(room * sizeof(*rows->rows));
    good = rows->x != NULL && rows->ids != NULL && rows->rows != NULL;
    if (has_target && plan->classes)
        good = (rows->labels = malloc(room * sizeof(*rows->labels))) != NULL && good;
    else if (has_target)
        good = (rows->targets = malloc(room * sizeof(*rows->targets))) != NULL && good;
    if (plan->group >= 0)
        good = (rows->queries = malloc(room * sizeof(*rows->queries))) != NULL && good;
    return good ? KILN_OK : kiln_error_nomem(err, room * plan->n_numbers * sizeof(*rows->x));
}

static void *fill(void *argument)
{
    Job *job = *(Job *const *)argument;
    const KilnTablePlan *plan = job->plan;
    KilnTableRows *rows = job->rows;
    int64_t from;

    while ((from = atomic_fetch_add(&job->next, BLOCK)) < job->list.n) {
        const int64_t to = kiln_min_i64(from + BLOCK, job->list.n);

        for (size_t i = 0; i < plan->n_numbers; i++)
            fill_number(job, i, from, to);
        for (size_t i = 0; i < plan->n_categories; i++) {
            const KilnCell *cells = job->cells->cells[plan->categories[i]];

            for (int64_t row = from; row < to; row++)
                rows->ids[(size_t)row * plan->n_categories + i] = id_of(job, i,
                                                                        cells[job->list.rows[row]]);
        }
        if (job->target != NULL)
            fill_target(job, from, to);
        for (int64_t row = from; row < to; row++)
            rows->rows[row] = job->cells->rows[job->list.rows[row]];
    }
    return NULL;
}

static void run(Job *job)
{
    Job *shared[MAX_THREADS];
    const int64_t n = kiln_min_i64(kiln_min_i64(kiln_processors_here().threads, MAX_THREADS),
                                   job->list.n / BLOCK + 1);

    for (int64_t i = 0; i < n; i++)
        shared[i] = job;
    kiln_run_in_threads((size_t)n, fill, shared, sizeof(shared[0]));
}

KilnStatus kiln_table_fill(KilnTableRows *rows, const KilnCells *cells,
                           const KilnCellColumn *columns, KilnRowList list, KilnError *err)
{
    const KilnTablePlan *plan = &rows->data->plan;
    Job job = { .rows = rows,
                .plan = plan,
                .cells = cells,
                .list = list,
                .ids = calloc(plan->n_categories + 1, sizeof(*job.ids)),
                .dates = calloc(plan->n_numbers + 1, sizeof(*job.dates)) };
    const bool has_target = plan->target >= 0 && cells->cells[plan->target] != NULL &&
                            !rows->no_target;
    KilnStatus status = job.ids != NULL && job.dates != NULL
                            ? allocate(rows, list.n, has_target, err)
                            : kiln_error_nomem(err, plan->n_numbers * sizeof(*job.dates));

    if (status >= 0)
        status = map_texts(&job, columns, err);
    if (has_target) {
        job.classes = &columns[plan->target].dictionary;
        job.target = cells->cells[plan->target];
    }
    if (status >= 0)
        run(&job);
    if (status >= 0 && plan->group >= 0)
        status = fill_queries(rows, cells, &columns[plan->group].dictionary, list, err);
    rows->n = status >= 0 ? list.n : 0;
    for (size_t i = 0; i < plan->n_categories && job.ids != NULL; i++)
        free(job.ids[i]);
    for (size_t i = 0; i < plan->n_numbers && job.dates != NULL; i++)
        free(job.dates[i]);
    free(job.ids);
    free(job.dates);
    return status;
}

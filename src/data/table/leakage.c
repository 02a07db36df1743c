/* Looks for columns that give the target away. */
#include <math.h>
#include <stdlib.h>

#include "data/table/table_data.h"

/* Numbers that are correlated more than this are the same in other units. */
#define COPY 0.9999

/* The correlation of two columns of numbers in every n-th row; 0 if one does not vary. Rows without
 * one are passed over. */
static double correlation(const KilnCell *a, const KilnCell *b, KilnRowList rows, int64_t every)
{
    double n = 0.0, mean_a = 0.0, mean_b = 0.0, aa = 0.0, bb = 0.0, ab = 0.0;

    for (int64_t i = 0; i < rows.n; i += every) {
        const KilnCell x = a[rows.rows[i]], y = b[rows.rows[i]];

        if (!kiln_cell_is_number(x) || !kiln_cell_is_number(y))
            continue;
        n += 1.0;
        const double da = kiln_cell_number(x) - mean_a, db = kiln_cell_number(y) - mean_b;
        mean_a += da / n;
        mean_b += db / n;
        aa += da * (kiln_cell_number(x) - mean_a);
        bb += db * (kiln_cell_number(y) - mean_b);
        ab += da * (kiln_cell_number(y) - mean_b);
    }
    return n > 2.0 && aa > 0.0 && bb > 0.0 ? ab / sqrt(aa * bb) : 0.0;
}

/* Some rows tell at once that nearly all columns are no copies. */
static bool is_copy(const KilnCell *a, const KilnCell *b, KilnRowList rows)
{
    enum { SOME = 1000 };
    const int64_t every = rows.n / SOME + 1;

    return fabs(correlation(a, b, rows, every)) > COPY && fabs(correlation(a, b, rows, 1)) > COPY;
}

/* Few different numbers can stand for classes. */
enum { MOST_NUMBERS = 20 };

/* Where the class of a cell's value is kept: texts by their code, then numbers in the order in
 * which they are met, then what is missing. */
static size_t place_of(KilnCell cell, size_t n_texts, KilnCell *numbers, size_t *n_numbers)
{
    size_t i = 0;

    if (kiln_cell_is_text(cell))
        return (size_t)kiln_cell_code(cell);
    if (!kiln_cell_is_number(cell))
        return n_texts + MOST_NUMBERS;
    while (i < *n_numbers && numbers[i] != cell)
        i++;
    if (i == *n_numbers)
        numbers[(*n_numbers)++] = cell;
    return n_texts + i;
}

/* Whether each value of a column always comes with the same class, and each several times. */
static KilnStatus decides_class(const KilnTableData *data, const KilnCells *cells, size_t column,
                                const KilnCellColumn *columns, KilnRowList rows, bool *ret,
                                KilnError *err)
{
    const KilnTablePlan *plan = &data->plan;
    const KilnColumnFacts *facts = &plan->columns[column].facts;
    const size_t n_texts = columns[column].dictionary.n, n = n_texts + MOST_NUMBERS + 1;
    KilnCell numbers[MOST_NUMBERS];
    size_t n_numbers = 0;

    *ret = facts->distinct > 1 && facts->distinct * 10 <= rows.n &&
           (facts->numbers == 0 || facts->distinct <= MOST_NUMBERS);
    if (!*ret)
        return KILN_OK;
    int32_t *classes = malloc(n * sizeof(*classes));
    if (classes == NULL)
        return kiln_error_nomem(err, n * sizeof(*classes));
    memset(classes, -1, n * sizeof(*classes));
    for (int64_t i = 0; i < rows.n && *ret; i++) {
        const KilnCell cell = cells->cells[column][rows.rows[i]];
        int32_t *seen = &classes[place_of(cell, n_texts, numbers, &n_numbers)];
        const int32_t class = kiln_table_class(data, &columns[plan->target].dictionary,
                                               cells->cells[plan->target][rows.rows[i]]);

        *ret = *seen < 0 || *seen == class;
        *seen = class;
    }
    free(classes);
    return KILN_OK;
}

KilnStatus kiln_table_find_leaks(KilnTableData *data, const KilnCells *cells,
                                 const KilnCellColumn *columns, KilnRowList rows, KilnError *err)
{
    const KilnTablePlan *plan = &data->plan;
    KilnStatus status = KILN_OK;

    for (size_t c = 0; c < plan->n_columns && plan->target >= 0 && status >= 0; c++) {
        const KilnTableColumn *column = &plan->columns[c];
        bool leaks = false;

        if ((int64_t)c == plan->target ||
            (column->kind != KILN_COLUMN_NUMBER && column->kind != KILN_COLUMN_CATEGORY))
            continue;
        if (column->kind == KILN_COLUMN_NUMBER)
            leaks = is_copy(cells->cells[c], cells->cells[plan->target], rows);
        if (!leaks && plan->classes && plan->n_classes > 1)
            status = decides_class(data, cells, c, columns, rows, &leaks, err);
        if (leaks)
            kiln_table_note(data,
                            "warning: column \"%s\" alone tells the target \"%s\" in the training "
                            "rows; if it is not known beforehand: "
                            "+datamodule.columns.%s=ignored",
                            column->name, plan->columns[plan->target].name, column->name);
    }
    return status;
}

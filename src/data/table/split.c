/* Divides the rows of the training files among splits: by a column, by fractions, class by class
 * where the target is a class, or the last rows by a column. */
#include <math.h>
#include <stdlib.h>

#include "data/table/table_data.h"

static KilnStatus allocate(KilnSplitList lists[KILN_SPLIT_COUNT], int64_t n, const bool *wanted,
                           KilnError *err)
{
    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        if (!wanted[split])
            continue;
        lists[split] = (KilnSplitList) { .source = KILN_TRAIN,
                                         .rows = malloc(((size_t)n + 1) * sizeof(int64_t)) };
        if (lists[split].rows == NULL)
            return kiln_error_nomem(err, (size_t)n * sizeof(int64_t));
    }
    return KILN_OK;
}

/* Add n rows to the lists of their splits. */
static void list_rows(const uint8_t *splits, int64_t n, KilnSplitList lists[KILN_SPLIT_COUNT])
{
    for (int64_t i = 0; i < n; i++) {
        KilnSplitList *list = &lists[splits[i]];

        list->rows[list->n++] = i;
    }
}

/* ---- By a column ----------------------------------------------------------------------------- */

/* The split that a text names; -1: none. */
static int split_of(KilnString text)
{
    static const struct {
        const char *name;
        KilnSplit split;
    } names[] = { { "train", KILN_TRAIN }, { "val", KILN_VAL },        { "valid", KILN_VAL },
                  { "dev", KILN_VAL },     { "validation", KILN_VAL }, { "test", KILN_TEST } };

    for (size_t i = 0; i < KILN_COUNT(names); i++)
        if (strlen(names[i].name) == text.length &&
            memcmp(names[i].name, text.data, text.length) == 0)
            return (int)names[i].split;
    return -1;
}

static KilnStatus by_column(const KilnTableData *data, const KilnCells *cells,
                            const KilnDictionary *dictionary, int64_t column,
                            KilnSplitList lists[KILN_SPLIT_COUNT], KilnError *err)
{
    char place[512];

    for (int64_t i = 0; i < cells->n_rows; i++) {
        const KilnCell cell = cells->cells[column][i];
        const KilnString text = kiln_cell_is_text(cell) ? dictionary->texts[kiln_cell_code(cell)]
                                                        : (KilnString) { "", 0 };
        const int split = split_of(text);

        if (split < 0)
            return kiln_error_set(
                err, KILN_E_RANGE,
                "%s: column \"%s\" (split_column) has \"%.*s\"; expected train, "
                "val or test",
                kiln_source_place(&data->sources[KILN_TRAIN], cells->rows[i], place, sizeof(place)),
                data->plan.columns[column].name, (int)(text.length < 64 ? text.length : 64),
                text.data);
        if (lists[split].rows != NULL)
            lists[split].rows[lists[split].n++] = i;
    }
    return KILN_OK;
}

/* ---- By fractions ---------------------------------------------------------------------------- */

enum { MOST_STRATA = 1000 };

/* Rows of one class. */
typedef struct Strata {
    int32_t *of_row; /* [rows] */
    int64_t n;
    int64_t *counts; /* [MOST_STRATA] */
    int64_t *starts;
    int64_t *rows; /* by stratum */
} Strata;

/* Number the classes in the order in which they appear; of more than MOST_STRATA, or with `one`,
 * all rows are one stratum. */
static void number_strata(const KilnCell *cells, int64_t n, bool one, Strata *ret)
{
    KilnCell seen[MOST_STRATA];

    ret->n = 0;
    for (int64_t i = 0; i < n && !one; i++) {
        int64_t s = 0;

        while (s < ret->n && seen[s] != cells[i])
            s++;
        if (s == MOST_STRATA)
            one = true;
        else if (s == ret->n)
            seen[ret->n++] = cells[i];
        ret->of_row[i] = (int32_t)s;
    }
    if (!one)
        return;
    ret->n = 1;
    memset(ret->of_row, 0, (size_t)n * sizeof(*ret->of_row));
}

/* Sort the rows by stratum. */
static void sort_strata(Strata *strata, int64_t n)
{
    memset(strata->counts, 0, MOST_STRATA * sizeof(*strata->counts));
    for (int64_t i = 0; i < n; i++)
        strata->counts[strata->of_row[i]]++;
    strata->starts[0] = 0;
    for (int64_t s = 1; s < strata->n; s++)
        strata->starts[s] = strata->starts[s - 1] + strata->counts[s - 1];
    memset(strata->counts, 0, MOST_STRATA * sizeof(*strata->counts));
    for (int64_t i = 0; i < n; i++) {
        const int32_t s = strata->of_row[i];

        strata->rows[strata->starts[s] + strata->counts[s]++] = i;
    }
}

/* Say for each row of a stratum which split it is in; `order` has room for it. */
static KilnStatus draw(const KilnTableSource *source, const Strata *strata, int64_t s,
                       const bool *wanted, uint64_t seed, int32_t *order, uint8_t *ret,
                       KilnError *err)
{
    const int64_t n = strata->counts[s], *rows = strata->rows + strata->starts[s];
    const int64_t test = wanted[KILN_TEST] ? llround((double)n * source->test_fraction) : 0;
    const int64_t val = wanted[KILN_VAL] ? llround((double)n * source->val_fraction) : 0;
    const uint64_t own = seed + (uint64_t)s * 2;
    const int64_t held = test + val < n ? test + val : n;

    for (int64_t i = 0; i < n; i++)
        ret[rows[i]] = KILN_TRAIN;
    if (held == 0)
        return KILN_OK;
    KilnStatus status = kiln_hold_out(n, held, own, order, err);
    if (status < 0)
        return status;
    const int32_t *chosen = order + (n - held);
    int32_t *among = malloc((size_t)held * sizeof(*among));
    if (among == NULL)
        return kiln_error_nomem(err, (size_t)held * sizeof(*among));
    status = kiln_hold_out(held, test < held ? test : held, own + 1, among, err);
    for (int64_t i = 0; i < held && status >= 0; i++)
        ret[rows[chosen[among[i]]]] = i < held - test ? KILN_VAL : KILN_TEST;
    free(among);
    return status;
}

static KilnStatus by_fractions(const KilnTableData *data, const KilnCells *cells,
                               const bool *wanted, uint64_t seed,
                               KilnSplitList lists[KILN_SPLIT_COUNT], KilnError *err)
{
    const KilnTableSource *source = &data->source;
    const int64_t n = cells->n_rows;
    const bool one = data->plan.target < 0 || !data->plan.classes || !source->stratify;
    Strata strata = { .of_row = malloc(((size_t)n + 1) * sizeof(int32_t)),
                      .counts = malloc(MOST_STRATA * sizeof(int64_t)),
                      .starts = malloc(MOST_STRATA * sizeof(int64_t)),
                      .rows = malloc(((size_t)n + 1) * sizeof(int64_t)) };
    int32_t *order = malloc(((size_t)n + 1) * sizeof(*order));
    uint8_t *splits = calloc((size_t)n + 1, 1);
    KilnStatus status = strata.of_row != NULL && strata.counts != NULL && strata.starts != NULL &&
                                strata.rows != NULL && order != NULL && splits != NULL
                            ? KILN_OK
                            : kiln_error_nomem(err, (size_t)n * sizeof(int64_t));

    if (status >= 0) {
        number_strata(one ? NULL : cells->cells[data->plan.target], n, one, &strata);
        sort_strata(&strata, n);
    }
    for (int64_t s = 0; status >= 0 && s < strata.n; s++)
        status = draw(source, &strata, s, wanted, seed, order, splits, err);
    if (status >= 0)
        list_rows(splits, n, lists);
    free(strata.of_row);
    free(strata.counts);
    free(strata.starts);
    free(strata.rows);
    free(order);
    free(splits);
    return status;
}

/* ---- The last rows --------------------------------------------------------------------------- */

/* A row where it stands among all. */
typedef struct Place {
    KilnCell group; /* 0 without groups */
    double order;
    int64_t row;
} Place;

static int by_place(const void *a, const void *b)
{
    const Place *x = a, *y = b;

    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->order < y->order || x->order > y->order)
        return x->order < y->order ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* The number of a cell, or the time of a date; false: it is neither. */
static bool order_of(KilnCell cell, const KilnDictionary *dictionary, double *ret)
{
    double parts[KILN_DATE_PARTS];

    if (kiln_cell_is_number(cell)) {
        *ret = kiln_cell_number(cell);
        return true;
    }
    if (!kiln_cell_is_text(cell))
        return false;
    const KilnString text = dictionary->texts[kiln_cell_code(cell)];
    if (kiln_number_is(text, '.', ret))
        return true;
    if (!kiln_date_read(text, parts))
        return false;
    *ret = parts[KILN_DATE_TIME];
    return true;
}

/* All rows in order, group by group. */
static KilnStatus put_in_order(const KilnTableData *data, const KilnCells *cells,
                               const KilnCellColumn *columns, const KilnSplitBy *by, Place *ret,
                               KilnError *err)
{
    char place[512];

    for (int64_t i = 0; i < cells->n_rows; i++) {
        ret[i] = (Place) { .row = i };
        if (by->last_of >= 0)
            ret[i].group = cells->cells[by->last_of][i];
        if (by->order >= 0 &&
            !order_of(cells->cells[by->order][i], &columns[by->order].dictionary, &ret[i].order))
            return kiln_error_set(
                err, KILN_E_TYPE,
                "%s: column \"%s\" (split_order) has no number and no date, which every row of the "
                "training files needs",
                kiln_source_place(&data->sources[KILN_TRAIN], cells->rows[i], place, sizeof(place)),
                data->plan.columns[by->order].name);
    }
    qsort(ret, (size_t)cells->n_rows, sizeof(*ret), by_place);
    return KILN_OK;
}

/* Hold out the last of n rows: one for each split that is wanted, or the fractions of it. */
static void hold_out_last(const KilnTableSource *source, const Place *rows, int64_t n,
                          const bool *wanted, uint8_t *ret)
{
    const bool one = source->leave_last_out != NULL;
    const int64_t test = !wanted[KILN_TEST] ? 0
                         : one              ? 1
                                            : llround((double)n * source->test_fraction);
    const int64_t val = !wanted[KILN_VAL] ? 0 : one ? 1 : llround((double)n * source->val_fraction);

    for (int64_t i = 0; i < n; i++) {
        const int64_t left = n - i; /* with this row */
        const bool in_test = left <= test && (!one || n > 1);
        const bool in_val = !in_test && left <= test + val && (!one || n > test + val);

        ret[rows[i].row] = in_test ? KILN_TEST : in_val ? KILN_VAL : KILN_TRAIN;
    }
}

static KilnStatus by_order(const KilnTableData *data, const KilnCells *cells,
                           const KilnCellColumn *columns, const KilnSplitBy *by, const bool *wanted,
                           KilnSplitList lists[KILN_SPLIT_COUNT], KilnError *err)
{
    const int64_t n = cells->n_rows;
    Place *places = malloc(((size_t)n + 1) * sizeof(*places));
    uint8_t *splits = calloc((size_t)n + 1, 1);
    KilnStatus status = places != NULL && splits != NULL
                            ? put_in_order(data, cells, columns, by, places, err)
                            : kiln_error_nomem(err, (size_t)n * sizeof(*places));

    for (int64_t first = 0, next; first < n && status >= 0; first = next) {
        for (next = first + 1; next < n && places[next].group == places[first].group; next++)
            continue;
        /* rows without a group are trained on */
        if (by->last_of < 0 || kiln_cell_is_number(places[first].group) ||
            kiln_cell_is_text(places[first].group))
            hold_out_last(&data->source, places + first, next - first, wanted, splits);
    }
    if (status >= 0)
        list_rows(splits, n, lists);
    free(places);
    free(splits);
    return status;
}

KilnStatus kiln_table_split(const KilnTableData *data, const KilnCells *cells,
                            const KilnCellColumn *columns, const KilnSplitBy *by,
                            KilnSplitList lists[KILN_SPLIT_COUNT], KilnError *err)
{
    const KilnTableSource *source = &data->source;
    const bool given = by->name >= 0 || by->last_of >= 0;
    const bool wanted[] = {
        true,
        source->files->val_count == 0 && (given || source->val_fraction > 0.0),
        source->files->test_count == 0 && (given || source->test_fraction > 0.0),
    };
    KilnStatus status = allocate(lists, cells->n_rows, wanted, err);

    if (status < 0)
        return status;
    if (by->name >= 0)
        status = by_column(data, cells, &columns[by->name].dictionary, by->name, lists, err);
    else if (by->order >= 0 || by->last_of >= 0)
        status = by_order(data, cells, columns, by, wanted, lists, err);
    else
        status = by_fractions(data, cells, wanted, by->seed, lists, err);
    if (status >= 0 && lists[KILN_TRAIN].n == 0)
        status = kiln_error_set(err, KILN_E_RANGE, "%s: of %lld rows none is left to train on",
                                by->name >= 0      ? "split_column"
                                : by->last_of >= 0 ? "leave_last_out"
                                                   : "val_fraction",
                                (long long)cells->n_rows);
    return status;
}

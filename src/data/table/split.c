/* Divides the rows of the training files among splits: by a column, or by fractions, class by class
 * where the target is a class. */
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
    for (int64_t i = 0; i < n && status >= 0; i++) {
        KilnSplitList *list = &lists[splits[i]];

        list->rows[list->n++] = i;
    }
    free(strata.of_row);
    free(strata.counts);
    free(strata.starts);
    free(strata.rows);
    free(order);
    free(splits);
    return status;
}

KilnStatus kiln_table_split(const KilnTableData *data, const KilnCells *cells,
                            const KilnCellColumn *columns, int64_t split_column, uint64_t seed,
                            KilnSplitList lists[KILN_SPLIT_COUNT], KilnError *err)
{
    const KilnTableSource *source = &data->source;
    const bool column = split_column >= 0;
    const bool wanted[] = {
        true,
        source->files->val_count == 0 && (column || source->val_fraction > 0.0),
        source->files->test_count == 0 && (column || source->test_fraction > 0.0),
    };
    KilnStatus status = allocate(lists, cells->n_rows, wanted, err);

    if (status >= 0)
        status = column ? by_column(data, cells, &columns[split_column].dictionary, split_column,
                                    lists, err)
                        : by_fractions(data, cells, wanted, seed, lists, err);
    if (status >= 0 && lists[KILN_TRAIN].n == 0)
        status = kiln_error_set(err, KILN_E_RANGE, "%s: of %lld rows none is left to train on",
                                column ? "split_column" : "val_fraction", (long long)cells->n_rows);
    return status;
}

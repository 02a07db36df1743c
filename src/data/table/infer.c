/* What a column has, and what kind it is. */
#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "data/table/table_internal.h"

const KilnChoice kiln_column_kinds[6] = {
    { "number", KILN_COLUMN_NUMBER },   { "category", KILN_COLUMN_CATEGORY },
    { "date", KILN_COLUMN_DATE },       { "text", KILN_COLUMN_TEXT },
    { "ignored", KILN_COLUMN_IGNORED }, { 0 },
};

/* Different numbers are counted up to this many. */
enum { MOST_NUMBERS = 64, SET_SLOTS = 256 };

/* ---- Counting -------------------------------------------------------------------------------- */

/* The first different numbers. */
typedef struct NumberSet {
    KilnCell slots[SET_SLOTS];
    bool used[SET_SLOTS];
    int n;
} NumberSet;

static void add_number(NumberSet *set, KilnCell cell)
{
    size_t slot = (size_t)((cell * UINT64_C(0x9e3779b97f4a7c15)) >> 56) % SET_SLOTS;

    if (set->n > MOST_NUMBERS)
        return;
    while (set->used[slot] && set->slots[slot] != cell)
        slot = (slot + 1) % SET_SLOTS;
    set->n += !set->used[slot];
    set->used[slot] = true;
    set->slots[slot] = cell;
}

/* Whether whole numbers are all different. Only of those that fill a quarter of their range. */
static KilnStatus are_unique(const KilnCell *cells, KilnRowList rows, const KilnColumnFacts *facts,
                             bool *ret, KilnError *err)
{
    const double range = facts->high - facts->low + 1.0;

    *ret = facts->whole && facts->missing == 0 && facts->texts == 0 &&
           range <= 4.0 * (double)rows.n;
    if (!*ret)
        return KILN_OK;
    uint8_t *seen = calloc((size_t)range + 1, 1);
    if (seen == NULL)
        return kiln_error_nomem(err, (size_t)range);
    for (int64_t i = 0; i < rows.n && *ret; i++) {
        const size_t at = (size_t)(kiln_cell_number(cells[rows.rows[i]]) - facts->low);

        *ret = !seen[at];
        seen[at] = 1;
    }
    free(seen);
    return KILN_OK;
}

/* What the different texts are. */
static void look_at_text(KilnString text, int64_t times, KilnColumnFacts *facts)
{
    double parts[KILN_DATE_PARTS];

    if (kiln_date_read(text, parts))
        facts->dates += times;
    if (memchr(text.data, ' ', text.length) != NULL)
        facts->words += times;
}

static KilnStatus count_texts(const KilnCell *cells, const KilnDictionary *dictionary,
                              KilnRowList rows, KilnColumnFacts *facts, KilnError *err)
{
    int64_t *counts = calloc(dictionary->n + 1, sizeof(*counts));

    if (counts == NULL)
        return kiln_error_nomem(err, dictionary->n * sizeof(*counts));
    for (int64_t i = 0; i < rows.n; i++)
        if (kiln_cell_is_text(cells[rows.rows[i]]))
            counts[kiln_cell_code(cells[rows.rows[i]])]++;
    for (size_t code = 0; code < dictionary->n; code++)
        if (counts[code] > 0) {
            facts->distinct++;
            look_at_text(dictionary->texts[code], counts[code], facts);
        }
    free(counts);
    return KILN_OK;
}

KilnStatus kiln_column_facts(const KilnCells *cells, size_t column,
                             const KilnDictionary *dictionary, KilnRowList rows,
                             KilnColumnFacts *ret, KilnError *err)
{
    const KilnCell *of_column = cells->cells[column];
    KilnColumnFacts facts = { .whole = true, .low = (double)INFINITY, .high = (double)-INFINITY };
    NumberSet set = { .n = 0 };

    for (int64_t i = 0; i < rows.n; i++) {
        const KilnCell cell = of_column[rows.rows[i]];

        if (!kiln_cell_is_number(cell)) {
            facts.texts += kiln_cell_is_text(cell);
            facts.missing += !kiln_cell_is_text(cell);
            continue;
        }
        const double number = kiln_cell_number(cell);
        facts.numbers++;
        facts.low = number < facts.low ? number : facts.low;
        facts.high = number > facts.high ? number : facts.high;
        facts.whole = facts.whole && number == floor(number);
        add_number(&set, cell);
    }
    facts.distinct = set.n;
    KilnStatus status = facts.texts > 0 ? count_texts(of_column, dictionary, rows, &facts, err)
                                        : KILN_OK;
    if (status >= 0)
        status = are_unique(of_column, rows, &facts, &facts.unique, err);
    if (status >= 0)
        *ret = facts;
    return status;
}

/* ---- Kinds ----------------------------------------------------------------------------------- */

/* A table with fewer rows says too little about what is unique. */
enum { FEW_ROWS = 20, FEW_VALUES = 20 };

KilnColumnKind kiln_column_infer(const KilnColumnFacts *facts, int64_t n_rows, const char **ret_why)
{
    const int64_t present = facts->numbers + facts->texts;

    *ret_why = NULL;
    if (present == 0)
        *ret_why = "it has no values";
    else if (facts->distinct == 1 && (facts->missing == 0 || facts->texts == 0))
        *ret_why = "it has one value";
    else if (facts->unique && n_rows >= FEW_ROWS)
        *ret_why = "each row has a number of its own";
    if (*ret_why != NULL)
        return KILN_COLUMN_IGNORED;
    if (facts->dates == present)
        return KILN_COLUMN_DATE;
    if (facts->numbers >= 9 * facts->texts)
        return KILN_COLUMN_NUMBER;
    if (facts->distinct <= FEW_VALUES || facts->distinct * 2 <= present)
        return KILN_COLUMN_CATEGORY;
    if (facts->words * 2 > present)
        return KILN_COLUMN_TEXT;
    *ret_why = "nearly each row has a text of its own";
    return KILN_COLUMN_IGNORED;
}

/* The character or word error rate of a corpus: insertions, deletions and substitutions that turn
 * the sequences into their references (Levenshtein 1966), over the length of the references, as
 * torchmetrics' CharErrorRate and WordErrorRate and jiwer count them. */
#include "kiln.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHARACTERS, WORDS };

typedef struct Opts {
    int64_t unit;
} Opts;

static const KilnChoice units[] = { { "characters", CHARACTERS }, { "words", WORDS }, { NULL, 0 } };

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, unit, "characters", units,
                    "what is counted: characters (code points), or words between white space"),
    KILN_FIELD_END,
};

/* ---- Distance ---------------------------------------------------------------------------------
 */

/* The characters or words of a text; they point into it. */
typedef struct Items {
    KilnString *list;
    int64_t n;
} Items;

static KilnStatus split_text(const char *text, int64_t unit, Items *ret, KilnError *err)
{
    const size_t n = strlen(text);

    ret->list = malloc((n + 1) * sizeof(*ret->list));
    if (ret->list == NULL)
        return kiln_error_nomem(err, (n + 1) * sizeof(*ret->list));
    for (size_t i = 0; i < n;) {
        size_t bytes = 0, space = unit == WORDS ? kiln_space_at(text + i, n - i) : 0;

        if (space > 0) {
            i += space;
            continue;
        }
        if (unit == CHARACTERS)
            (void)kiln_category_at(text + i, n - i, &bytes);
        while (unit == WORDS && i + bytes < n &&
               kiln_space_at(text + i + bytes, n - i - bytes) == 0)
            bytes++;
        ret->list[ret->n++] = (KilnString) { text + i, bytes };
        i += bytes;
    }
    return KILN_OK;
}

static bool same(KilnString a, KilnString b)
{
    return a.length == b.length && memcmp(a.data, b.data, a.length) == 0;
}

/* The edit distance; `row` has room for b.n + 1 numbers. */
static int64_t distance(Items a, Items b, int64_t *row)
{
    for (int64_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (int64_t i = 0; i < a.n; i++) {
        int64_t diagonal = row[0]; /* of the row above */

        row[0] = i + 1;
        for (int64_t j = 0; j < b.n; j++) {
            const int64_t above = row[j + 1];
            const int64_t change = diagonal + !same(a.list[i], b.list[j]);
            const int64_t step = (above < row[j] ? above : row[j]) + 1;

            row[j + 1] = change < step ? change : step;
            diagonal = above;
        }
    }
    return row[b.n];
}

/* ---- The metric -------------------------------------------------------------------------------
 */

enum { ERRORS, LENGTH, COUNTS };

static KilnStatus count_pair(const Opts *opts, const char *text, const char *reference,
                             int64_t *counts, KilnError *err)
{
    Items a = { 0 }, b = { 0 };
    int64_t *row = NULL;
    KilnStatus status = split_text(text, opts->unit, &a, err);

    if (status >= 0)
        status = split_text(reference, opts->unit, &b, err);
    if (status >= 0) {
        row = malloc((size_t)(b.n + 1) * sizeof(*row));
        if (row == NULL)
            status = kiln_error_nomem(err, (size_t)(b.n + 1) * sizeof(*row));
    }
    if (row != NULL) {
        counts[ERRORS] += distance(a, b, row);
        counts[LENGTH] += b.n;
    }
    free(row);
    free(a.list);
    free(b.list);
    return status;
}

static KilnStatus update(KilnInstance *self, KilnMetricState *state, const KilnMetricRows *rows,
                         KilnError *err)
{
    int64_t *counts;
    KilnStatus status = kiln_metric_state_counts(state, "counts", COUNTS, &counts, err);

    if (status >= 0 && rows->count > 0 && rows->n_references != 1)
        return kiln_error_set(err, KILN_E_SHAPE, "an error rate needs one reference, got %lld",
                              (long long)rows->n_references);
    for (int64_t i = 0; i < rows->count && status >= 0; i++) {
        if (rows->sequences[i].text == NULL || rows->references[i].text == NULL)
            return kiln_error_set(err, KILN_E_SHAPE, "an error rate compares texts, not ids");
        status = count_pair(kiln_opts(self), rows->sequences[i].text, rows->references[i].text,
                            counts, err);
    }
    return status;
}

/* NaN where the references are empty. */
static KilnStatus compute(KilnInstance *self, KilnMetricState *state, KilnError *err)
{
    int64_t *counts;
    KilnStatus status = kiln_metric_state_counts(state, "counts", COUNTS, &counts, err);

    (void)self;
    if (status < 0)
        return status;
    const double rate = counts[LENGTH] > 0 ? (double)counts[ERRORS] / (double)counts[LENGTH]
                                           : (double)NAN;
    return kiln_metric_state_report(state, NULL, rate, err);
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_SEQUENCES,
    .mode = KILN_MODE_MIN,
    .update = update,
    .compute = compute,
};

const KilnComponent kiln_metric_error_rate = {
    .kind = KILN_KIND_METRIC,
    .name = "error_rate",
    .summary = "Character or word error rate of texts, as torchmetrics and jiwer",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_error_rate, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

/* Checks the columns of a table, for `kiln check-data`. */
#include <math.h>
#include <stdlib.h>

#include "base/min.h"
#include "data/findings.h"
#include "data/table/table_data.h"

/* A column that tells the class of so many rows, where guessing is clearly worse, gives it away. */
#define TELLS 0.98
#define BETTER_THAN_GUESSING 0.05
/* The same of the correlation with a number. */
#define CORRELATED 0.99
/* Means that are further apart, in deviations of training; shares of a category. */
#define MEANS_APART 0.5
#define SHARES_APART 0.2

enum { ENOUGH = 50 /* rows, to compare splits */, SAMPLED = 20000 /* rows, for leaks */ };

typedef struct ColumnCheck {
    const KilnTableData *data;
    const KilnPoll *poll;
    KilnFindings *findings;
} ColumnCheck;

/* ---- Columns that are left out, missing values ------------------------------------------------
 */

static void check_left_out(const ColumnCheck *check)
{
    const KilnTablePlan *plan = &check->data->plan;
    int64_t n = 0;

    for (size_t c = 0; c < plan->n_columns; c++) {
        const KilnTableColumn *column = &plan->columns[c];

        if (column->kind != KILN_COLUMN_IGNORED || column->why == NULL)
            continue;
        kiln_text_printf(&check->findings->text, "%s is left out: %s", column->name, column->why);
        kiln_findings_add(check->findings, KILN_CHECK_NOTE, "constants and ids", 1,
                          "+datamodule.columns.NAME=category or =number keeps it");
        n++;
    }
    if (n == 0) {
        kiln_text_append(&check->findings->text, "no column is constant or an id");
        kiln_findings_add(check->findings, KILN_CHECK_PASSED, "constants and ids", 0, NULL);
    }
}

static void check_missing(const ColumnCheck *check)
{
    const KilnTablePlan *plan = &check->data->plan;
    int64_t n = 0;

    for (size_t c = 0; c < plan->n_columns; c++) {
        const KilnTableColumn *column = &plan->columns[c];
        const int64_t missing = column->facts.missing;
        const double all = (double)(missing + column->facts.numbers + column->facts.texts);

        if (missing == 0 || column->kind == KILN_COLUMN_IGNORED || column->kind == KILN_COLUMN_TEXT)
            continue;
        kiln_text_printf(&check->findings->text, "%s: %.1f %% of the training rows (%lld)",
                         column->name, 100.0 * (double)missing / all, (long long)missing);
        kiln_findings_add(check->findings,
                          (double)missing * 2.0 > all ? KILN_CHECK_WARNING : KILN_CHECK_NOTE,
                          "missing values", missing,
                          "datamodule.missing_indicators=true says to the model where they were");
        n++;
    }
    if (n == 0) {
        kiln_text_append(&check->findings->text, "no value that is used is missing");
        kiln_findings_add(check->findings, KILN_CHECK_PASSED, "missing values", 0, NULL);
    }
}

/* ---- Columns that give the target away --------------------------------------------------------
 */

/* The training rows that are looked at, and how many of them are of the most frequent class. */
typedef struct Sample {
    const KilnTableRows *rows;
    int64_t n, every;
    double guessed;
} Sample;

typedef struct Pair {
    float value;
    int32_t label;
} Pair;

static int compare(const void *a, const void *b)
{
    const float x = ((const Pair *)a)->value, y = ((const Pair *)b)->value;

    return x < y ? -1 : x > y; /* NaN does not matter: it is filled or skipped */
}

static int64_t largest(const int64_t *counts, size_t n)
{
    int64_t most = 0;

    for (size_t i = 0; i < n; i++)
        most = counts[i] > most ? counts[i] : most;
    return most;
}

/* How many rows have the most frequent class of their bin of equal size. */
static KilnStatus bins_tell(const Sample *sample, size_t number, size_t n_classes, double *ret,
                            KilnError *err)
{
    enum { BINS = 1000, LEAST = 8 };
    const KilnTableRows *rows = sample->rows;
    const size_t width = rows->data->plan.n_numbers;
    const int64_t bins = kiln_min_i64(BINS, sample->n / LEAST);
    Pair *pairs = malloc(((size_t)sample->n + 1) * sizeof(*pairs));
    int64_t *counts = calloc(n_classes + 1, sizeof(*counts)), told = 0;

    if (pairs == NULL || counts == NULL) {
        free(pairs);
        free(counts);
        return kiln_error_nomem(err, (size_t)sample->n * sizeof(*pairs));
    }
    for (int64_t i = 0; i < sample->n; i++)
        pairs[i] = (Pair) { rows->x[(size_t)(i * sample->every) * width + number],
                            rows->labels[i * sample->every] };
    qsort(pairs, (size_t)sample->n, sizeof(*pairs), compare);
    for (int64_t bin = 0, begin = 0; bin < bins; bin++) {
        int64_t end = (bin + 1) * sample->n / bins;

        while (end > begin && end < sample->n && pairs[end].value == pairs[end - 1].value)
            end++; /* equal values stay together */
        memset(counts, 0, n_classes * sizeof(*counts));
        for (int64_t i = begin; i < end; i++)
            if (pairs[i].label >= 0)
                counts[pairs[i].label]++;
        told += largest(counts, n_classes);
        begin = end > begin ? end : begin;
    }
    free(pairs);
    free(counts);
    *ret = (double)told / (double)sample->n;
    return KILN_OK;
}

/* The same of the values of a category. */
static KilnStatus values_tell(const Sample *sample, size_t category, size_t n_classes, double *ret,
                              KilnError *err)
{
    const KilnTableRows *rows = sample->rows;
    const KilnTablePlan *plan = &rows->data->plan;
    const size_t n_ids = (size_t)kiln_table_n_ids(&plan->columns[plan->categories[category]]);
    int64_t *counts, told = 0;

    *ret = 0.0;
    if ((int64_t)n_ids * 10 > sample->n)
        return KILN_OK; /* values are too rare to say anything */
    counts = calloc(n_ids * n_classes + 1, sizeof(*counts));
    if (counts == NULL)
        return kiln_error_nomem(err, n_ids * n_classes * sizeof(*counts));
    for (int64_t i = 0; i < sample->n; i++) {
        const int64_t row = i * sample->every;
        const int32_t id = rows->ids[(size_t)row * plan->n_categories + category];

        if (rows->labels[row] >= 0)
            counts[(size_t)id * n_classes + (size_t)rows->labels[row]]++;
    }
    for (size_t id = 0; id < n_ids; id++)
        told += largest(counts + id * n_classes, n_classes);
    free(counts);
    *ret = (double)told / (double)sample->n;
    return KILN_OK;
}

static double correlation(const Sample *sample, size_t number)
{
    const KilnTableRows *rows = sample->rows;
    const size_t width = rows->data->plan.n_numbers;
    double n = 0.0, a = 0.0, b = 0.0, aa = 0.0, bb = 0.0, ab = 0.0;

    for (int64_t i = 0; i < sample->n; i++) {
        const int64_t row = i * sample->every;
        const double x = (double)rows->x[(size_t)row * width + number];
        const double y = (double)rows->targets[row];

        if (!isfinite(x) || !isfinite(y))
            continue;
        n += 1.0;
        const double dx = x - a, dy = y - b;
        a += dx / n;
        b += dy / n;
        aa += dx * (x - a);
        bb += dy * (y - b);
        ab += dx * (y - b);
    }
    return aa > 0.0 && bb > 0.0 ? fabs(ab / sqrt(aa * bb)) : 0.0;
}

/* Whether a run has warned of the column already. */
static bool is_noted(const KilnTableData *data, const char *name)
{
    for (size_t i = 0; i < data->n_notes; i++) {
        const char *at = strchr(data->notes[i], '"');

        if (at != NULL && strncmp(at + 1, name, strlen(name)) == 0 && at[1 + strlen(name)] == '"')
            return true;
    }
    return false;
}

static void say_leak(const ColumnCheck *check, const char *name, double share, bool classes,
                     int64_t *n)
{
    const KilnTablePlan *plan = &check->data->plan;
    const char *target = plan->columns[plan->target].name;

    if (is_noted(check->data, name))
        return;
    if (classes)
        kiln_text_printf(&check->findings->text,
                         "column %s alone tells %s of %.1f %% of the training rows", name, target,
                         100.0 * share);
    else
        kiln_text_printf(&check->findings->text, "column %s is correlated with %s: %.3f", name,
                         target, share);
    kiln_findings_add(check->findings, KILN_CHECK_WARNING, "leakage", 1,
                      "if it is not known beforehand: +datamodule.columns.NAME=ignored");
    (*n)++;
}

static KilnStatus check_class_leaks(const ColumnCheck *check, Sample *sample, int64_t *n,
                                    KilnError *err)
{
    const KilnTablePlan *plan = &check->data->plan;
    int64_t *counts = calloc(plan->n_classes + 1, sizeof(*counts));
    KilnStatus status = counts != NULL ? KILN_OK : kiln_error_nomem(err, plan->n_classes);

    for (int64_t i = 0; i < sample->n && status >= 0; i++)
        if (sample->rows->labels[i * sample->every] >= 0)
            counts[sample->rows->labels[i * sample->every]]++;
    if (status >= 0)
        sample->guessed = (double)largest(counts, plan->n_classes) / (double)sample->n;
    free(counts);
    for (size_t i = 0; i < plan->n_numbers + plan->n_categories && status >= 0; i++) {
        const bool number = i < plan->n_numbers;
        const size_t at = number ? i : i - plan->n_numbers;
        const size_t column = number ? plan->numbers[at].column : plan->categories[at];
        double share = 0.0;

        status = kiln_poll_check(check->poll, "checking columns", (int64_t)i,
                                 (int64_t)(plan->n_numbers + plan->n_categories), err);
        if (status >= 0)
            status = number ? bins_tell(sample, at, plan->n_classes, &share, err)
                            : values_tell(sample, at, plan->n_classes, &share, err);
        if (status >= 0 && share >= TELLS && share >= sample->guessed + BETTER_THAN_GUESSING)
            say_leak(check, plan->columns[column].name, share, true, n);
    }
    return status;
}

static KilnStatus check_leaks(const ColumnCheck *check, KilnError *err)
{
    enum { LEAST = 200 };
    const KilnTableData *data = check->data;
    const KilnTablePlan *plan = &data->plan;
    const KilnTableRows *rows = &data->splits[KILN_TRAIN];
    Sample sample = { .rows = rows, .every = rows->n / SAMPLED + 1 };
    int64_t n = 0;
    KilnStatus status = KILN_OK;

    if (plan->target < 0)
        return KILN_OK;
    for (size_t i = 0; i < data->n_notes; i++) {
        const char *note = data->notes[i];

        kiln_text_append(&check->findings->text,
                         note + (kiln_starts_with(note, "warning: ") ? 9 : 0));
        kiln_findings_add(check->findings, KILN_CHECK_WARNING, "leakage", 1, NULL);
        n++;
    }
    sample.n = rows->n > 0 ? (rows->n - 1) / sample.every + 1 : 0;
    if (sample.n >= LEAST && plan->classes && rows->labels != NULL && plan->n_classes > 1)
        status = check_class_leaks(check, &sample, &n, err);
    for (size_t i = 0; i < plan->n_numbers && sample.n >= LEAST && rows->targets != NULL; i++) {
        const double strength = correlation(&sample, i);

        if (strength >= CORRELATED)
            say_leak(check, plan->columns[plan->numbers[i].column].name, strength, false, &n);
    }
    if (status >= 0 && n == 0) {
        kiln_text_append(&check->findings->text, "no column gives the target away");
        kiln_findings_add(check->findings, KILN_CHECK_PASSED, "leakage", 0, NULL);
    }
    return status;
}

/* ---- Splits ---------------------------------------------------------------------------------- */

/* How often each id of a category occurs; owned by the caller. NULL: memory is out. */
static int64_t *count_ids(const KilnTableRows *rows, size_t category)
{
    const KilnTablePlan *plan = &rows->data->plan;
    const size_t n_ids = (size_t)kiln_table_n_ids(&plan->columns[plan->categories[category]]);
    int64_t *counts = calloc(n_ids, sizeof(*counts));

    for (int64_t i = 0; i < rows->n && counts != NULL; i++)
        counts[rows->ids[(size_t)i * plan->n_categories + category]]++;
    return counts;
}

static void say_unknown(const ColumnCheck *check, const KilnTableRows *rows, size_t category,
                        int64_t unknown)
{
    const KilnTablePlan *plan = &check->data->plan;

    kiln_text_printf(&check->findings->text,
                     "%lld of %lld rows of %s have a %s that no training row has",
                     (long long)unknown, (long long)rows->n, kiln_split_name(rows->split),
                     plan->columns[plan->categories[category]].name);
    kiln_findings_add(check->findings,
                      unknown * 20 >= rows->n ? KILN_CHECK_WARNING : KILN_CHECK_NOTE,
                      "values unknown to training", unknown, NULL);
}

/* Compare the values of a category with those of training. */
static KilnStatus compare_category(const ColumnCheck *check, const KilnTableRows *rows,
                                   size_t category, int64_t *n, KilnError *err)
{
    const KilnTablePlan *plan = &check->data->plan;
    const KilnTableRows *train = &check->data->splits[KILN_TRAIN];
    const KilnTableColumn *column = &plan->columns[plan->categories[category]];
    int64_t *here = count_ids(rows, category), *there = count_ids(train, category);
    double worst = SHARES_APART;
    size_t at = 0;

    if (here == NULL || there == NULL) {
        free(here);
        free(there);
        return kiln_error_nomem(err, (size_t)kiln_table_n_ids(column) * sizeof(*here));
    }
    if (here[KILN_ID_UNKNOWN] > 0) {
        say_unknown(check, rows, category, here[KILN_ID_UNKNOWN]);
        n[0]++;
    }
    for (size_t id = KILN_ID_FIRST; id < column->n_names + KILN_ID_FIRST; id++) {
        const double apart =
            fabs((double)here[id] / (double)rows->n - (double)there[id] / (double)train->n);

        if (apart > worst) {
            worst = apart;
            at = id;
        }
    }
    if (at > 0 && rows->n >= ENOUGH && train->n >= ENOUGH) {
        kiln_text_printf(&check->findings->text,
                         "%s is \"%s\" in %.0f %% of the rows of train and %.0f %% of %s",
                         column->name, column->names[at - KILN_ID_FIRST],
                         100.0 * (double)there[at] / (double)train->n,
                         100.0 * (double)here[at] / (double)rows->n, kiln_split_name(rows->split));
        kiln_findings_add(check->findings, KILN_CHECK_WARNING, "splits that differ", 1,
                          "they are not drawn alike");
        n[1]++;
    }
    free(here);
    free(there);
    return KILN_OK;
}

/* Mean and deviation of a number. */
static void moments(const KilnTableRows *rows, size_t number, double ret[2])
{
    const size_t width = rows->data->plan.n_numbers;
    double n = 0.0, mean = 0.0, squares = 0.0;

    for (int64_t i = 0; i < rows->n; i++) {
        const double x = (double)rows->x[(size_t)i * width + number];

        if (!isfinite(x))
            continue;
        n += 1.0;
        const double d = x - mean;
        mean += d / n;
        squares += d * (x - mean);
    }
    ret[0] = mean;
    ret[1] = n > 1.0 ? sqrt(squares / n) : 0.0;
}

static void compare_number(const ColumnCheck *check, const KilnTableRows *rows, size_t number,
                           int64_t *n)
{
    const KilnTablePlan *plan = &check->data->plan;
    const KilnTableRows *train = &check->data->splits[KILN_TRAIN];
    double here[2], there[2];

    if (rows->n < ENOUGH || train->n < ENOUGH)
        return;
    moments(rows, number, here);
    moments(train, number, there);
    const double apart = fabs(here[0] - there[0]) / (there[1] > 0.0 ? there[1] : 1.0);
    if (apart <= MEANS_APART)
        return;
    kiln_text_printf(
        &check->findings->text, "the mean of %s in %s is %.1f deviations from that of train",
        plan->columns[plan->numbers[number].column].name, kiln_split_name(rows->split), apart);
    kiln_findings_add(check->findings, KILN_CHECK_WARNING, "splits that differ", 1,
                      "they are not drawn alike");
    n[1]++;
}

static KilnStatus check_splits(const ColumnCheck *check, KilnError *err)
{
    const KilnTablePlan *plan = &check->data->plan;
    int64_t n[2] = { 0 }; /* of unknown values, of differences */
    bool any = false;
    KilnStatus status = KILN_OK;

    for (int split = KILN_VAL; split < KILN_SPLIT_COUNT; split++) {
        const KilnTableRows *rows = &check->data->splits[split];

        if (rows->n == 0)
            continue;
        any = true;
        for (size_t i = 0; i < plan->n_categories && status >= 0; i++)
            status = compare_category(check, rows, i, n, err);
        for (size_t i = 0; i < plan->n_numbers && status >= 0; i++)
            compare_number(check, rows, i, n);
    }
    if (status >= 0 && any && n[0] == 0 && plan->n_categories > 0) {
        kiln_text_append(&check->findings->text, "training has every value of the categories");
        kiln_findings_add(check->findings, KILN_CHECK_PASSED, "values unknown to training", 0,
                          NULL);
    }
    if (status >= 0 && any && n[1] == 0) {
        kiln_text_append(&check->findings->text,
                         "columns have about the same values in all splits");
        kiln_findings_add(check->findings, KILN_CHECK_PASSED, "splits that differ", 0, NULL);
    }
    return status;
}

KilnStatus kiln_table_data_check(const KilnTableData *data, const KilnPoll *poll,
                                 void (*add)(void *ctx, const KilnDataFinding *finding), void *ctx,
                                 KilnError *err)
{
    KilnFindings findings = { add, ctx, { 0 } };
    const ColumnCheck check = { data, poll, &findings };

    check_left_out(&check);
    check_missing(&check);
    KilnStatus status = check_leaks(&check, err);
    if (status >= 0)
        status = check_splits(&check, err);
    if (status >= 0 && findings.text.failed)
        status = kiln_error_nomem(err, 256);
    kiln_text_release(&findings.text);
    return status;
}

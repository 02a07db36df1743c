/* Shared by ranking metrics (tasks/metrics/): sorting by score, ties, one class against the rest,
 * and means over queries. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/metric.h"

static const KilnChoice averages[] = {
    { "macro", KILN_AVERAGE_MACRO },
    { "weighted", KILN_AVERAGE_WEIGHTED },
    { NULL, 0 },
};

const KilnField kiln_one_vs_rest_fields[] = {
    KILN_FIELD_ENUM(KilnClassOptions, average, "macro", averages,
                    "of more than two classes, each against the rest: macro: mean; weighted: by "
                    "how often each occurs"),
    KILN_FIELD_I64_OPT(KilnClassOptions, ignore_index, "null", -2147483648.0, 2147483647.0,
                       "rows with this label are left out"),
    KILN_FIELD_BOOL(KilnClassOptions, per_class, "false", "log each class as well"),
    KILN_FIELD_END,
};

const KilnChoice kiln_empty_queries[] = {
    { "zero", KILN_EMPTY_ZERO },
    { "one", KILN_EMPTY_ONE },
    { "skip", KILN_EMPTY_SKIP },
    { NULL, 0 },
};

/* ---- Sorted items --------------------------------------------------------------------- */

/* NaN comes last; kiln_ranked_sort is stable. */
static bool before(const KilnRanked *a, const KilnRanked *b)
{
    return a->score > b->score || (isnan(b->score) && !isnan(a->score));
}

/* Merge two sorted halves of items[0..n) through `scratch`. */
static void merge(KilnRanked *items, KilnRanked *scratch, int64_t half, int64_t n)
{
    int64_t a = 0, b = half;

    for (int64_t i = 0; i < n; i++)
        scratch[i] = b == n || (a < half && !before(&items[b], &items[a])) ? items[a++]
                                                                           : items[b++];
    memcpy(items, scratch, (size_t)n * sizeof(*items));
}

/* Insertion sort: stable, and without scratch memory. */
static void sort_few(KilnRanked *items, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        KilnRanked item = items[i];
        int64_t at = i;

        for (; at > 0 && before(&item, &items[at - 1]); at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

enum { FEW = 16 };

static void sort(KilnRanked *items, KilnRanked *scratch, int64_t n)
{
    if (n <= FEW) {
        sort_few(items, n);
        return;
    }
    sort(items, scratch, n / 2);
    sort(items + n / 2, scratch, n - n / 2);
    merge(items, scratch, n / 2, n);
}

KilnStatus kiln_ranked_sort(KilnRanked *items, int64_t n, KilnError *err)
{
    KilnRanked *scratch = n > FEW ? malloc((size_t)n * sizeof(*scratch)) : NULL;

    if (n > FEW && scratch == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*scratch));
    sort(items, scratch, n);
    free(scratch);
    return KILN_OK;
}

int64_t kiln_ranked_ties(const KilnRanked *items, int64_t n, int64_t at)
{
    int64_t end = at + 1;

    while (end < n && items[end].score == items[at].score)
        end++;
    return end - at;
}

double kiln_ranked_precision(const KilnRanked *items, int64_t n)
{
    double relevant = 0.0, found = 0.0, area = 0.0;

    for (int64_t i = 0; i < n; i++)
        relevant += items[i].target > 0.0;
    for (int64_t i = 0; i < n;) {
        int64_t ties = kiln_ranked_ties(items, n, i);
        double hits = 0.0;

        for (int64_t end = i + ties; i < end; i++)
            hits += items[i].target > 0.0;
        found += hits;
        area += hits * found / (double)i;
    }
    return relevant > 0.0 ? area / relevant : (double)NAN;
}

/* ---- Rows of the epoch -------------------------------------------------------------------- */

/* Zeros and ones, as bytes. */
static KilnStatus append_targets(KilnMetricState *state, const float *targets, int64_t n,
                                 KilnError *err)
{
    unsigned char bytes[256];
    KilnStatus status = KILN_OK;

    for (int64_t first = 0; first < n && status >= 0; first += (int64_t)sizeof(bytes)) {
        int64_t i = 0;

        for (; i < (int64_t)sizeof(bytes) && first + i < n; i++)
            bytes[i] = targets[first + i] > 0.5f;
        status = kiln_metric_state_append(state, "targets", KILN_U8, bytes, i, err);
    }
    return status;
}

KilnStatus kiln_one_vs_rest_update(KilnInstance *self, KilnMetricState *state,
                                   const KilnMetricRows *rows, KilnError *err)
{
    const KilnClassOptions *options = kiln_opts(self);
    const KilnMetricForm *form = kiln_metric_state_form(state);
    KilnStatus status = KILN_OK;

    if (rows->labels == NULL) {
        const int64_t n = rows->count * form->width;

        status = kiln_metric_state_append(state, "scores", KILN_F32, rows->scores, n, err);
        return status >= 0 ? append_targets(state, rows->targets, n, err) : status;
    }
    for (int64_t i = 0; i < rows->count && status >= 0; i++) {
        bool taken;

        status = kiln_row_counts(form, rows, i, options->ignore_index, &taken, err);
        if (status >= 0 && taken)
            status = kiln_metric_state_append(state, "scores", KILN_F32,
                                              rows->scores + i * form->width, form->width, err);
        if (status >= 0 && taken)
            status = kiln_metric_state_append(state, "labels", KILN_I32, &rows->labels[i], 1, err);
    }
    return status;
}

/* All rows of the epoch. */
typedef struct Rows {
    const float *scores;
    const int32_t *labels;
    const unsigned char
        *targets; /* [count, classes] of rows with any number of labels; else NULL */
    int64_t count, classes;
    double *probabilities; /* [count, classes]; of the former logits */
    KilnRanked *items;     /* [count] */
} Rows;

static KilnStatus open_rows(const KilnMetricState *state, Rows *ret, KilnError *err)
{
    const KilnMetricForm *form = kiln_metric_state_form(state);
    const void *scores = NULL, *labels = NULL, *targets = NULL;
    int64_t n_scores = 0, n_targets = 0;
    KilnStatus status = kiln_metric_state_list(state, "scores", KILN_F32, &scores, &n_scores, err);

    ret->classes = kiln_form_classes(form);
    if (status >= 0)
        status = kiln_metric_state_list(state, "labels", KILN_I32, &labels, &ret->count, err);
    if (status >= 0)
        status = kiln_metric_state_list(state, "targets", KILN_U8, &targets, &n_targets, err);
    if (status < 0)
        return status;
    if (n_targets > 0) {
        ret->count = n_targets / form->width;
        ret->targets = targets;
    }
    if (n_scores != ret->count * form->width)
        return kiln_error_set(err, KILN_E_FORMAT, "%lld scores for %lld rows", (long long)n_scores,
                              (long long)ret->count);
    size_t count = (size_t)ret->count;
    ret->probabilities = malloc(count * (size_t)ret->classes * sizeof(double) + 1);
    ret->items = malloc(count * sizeof(*ret->items) + 1);
    if (ret->probabilities == NULL || ret->items == NULL)
        return kiln_error_nomem(err, count * (size_t)ret->classes * sizeof(double));
    ret->labels = labels;
    for (int64_t i = 0; i < n_targets; i++)
        ret->probabilities[i] = (double)((const float *)scores)[i];
    for (int64_t i = 0; i < ret->count && ret->targets == NULL; i++)
        kiln_row_probabilities((const float *)scores + i * form->width, form->width,
                               ret->probabilities + i * ret->classes);
    return KILN_OK;
}

static void close_rows(Rows *rows)
{
    free(rows->probabilities);
    free(rows->items);
}

/* One class against the rest. */
static KilnStatus score_class(Rows *rows, int64_t class,
                              double (*score)(const KilnRanked *items, int64_t n), double *ret,
                              double *ret_actual, KilnError *err)
{
    bool defined = true;

    *ret_actual = 0.0;
    for (int64_t i = 0; i < rows->count; i++) {
        const int64_t at = i * rows->classes + class;
        const bool actual = rows->targets != NULL ? rows->targets[at] == 1
                                                  : rows->labels[i] == class;

        rows->items[i] = (KilnRanked) { .score = rows->probabilities[at], .target = actual };
        defined = defined && !isnan(rows->items[i].score);
        *ret_actual += rows->items[i].target;
    }
    KilnStatus status = kiln_ranked_sort(rows->items, rows->count, err);
    if (status >= 0)
        *ret = defined ? score(rows->items, rows->count) : (double)NAN;
    return status;
}

KilnStatus kiln_one_vs_rest_compute(KilnInstance *self, KilnMetricState *state, KilnError *err)
{
    const KilnClassOptions *options = kiln_opts(self);
    double (*score)(const KilnRanked *items,
                    int64_t n) = kiln_instance_component(self)->ops.metric->of_ranked;
    const KilnMetricForm *form = kiln_metric_state_form(state);
    Rows rows = { 0 };
    KilnStatus status = open_rows(state, &rows, err);
    bool two = rows.classes == 2 && rows.targets == NULL;
    double sum = 0.0, weights = 0.0, value = 0.0, actual = 0.0;

    for (int64_t c = two ? 1 : 0; c < rows.classes && status >= 0; c++) {
        status = score_class(&rows, c, score, &value, &actual, err);
        if (status < 0 || isnan(value))
            continue;
        double weight = options->average == KILN_AVERAGE_WEIGHTED && !two ? actual : 1.0;
        sum += weight * value;
        weights += weight;
    }
    if (status >= 0)
        status = kiln_metric_state_report(state, NULL, weights > 0.0 ? sum / weights : (double)NAN,
                                          err);
    for (int64_t c = 0; c < rows.classes && options->per_class && status >= 0; c++) {
        char number[24];

        status = score_class(&rows, c, score, &value, &actual, err);
        if (status >= 0)
            status = kiln_metric_state_report(state, kiln_form_name(form, c, number), value, err);
    }
    close_rows(&rows);
    return status;
}

int64_t kiln_one_vs_rest_memory(const KilnInstance *self, const KilnMetricForm *form, int64_t rows,
                                int64_t *ret_computing)
{
    (void)self;
    /* Sorting takes the same again. */
    *ret_computing = rows * (kiln_form_classes(form) * (int64_t)sizeof(double) +
                             2 * (int64_t)sizeof(KilnRanked));
    /* With any number of labels per row they are bytes. */
    const int64_t labels = form->width > (int64_t)sizeof(int32_t) ? form->width
                                                                  : (int64_t)sizeof(int32_t);
    return rows * (form->width * (int64_t)sizeof(float) + labels);
}

/* ---- Queries --------------------------------------------------------------------------------- */

KilnStatus kiln_queries_add(KilnMetricState *state, const KilnMetricRows *rows, int64_t empty,
                            KilnQueryValue *value, const void *context, KilnError *err)
{
    const size_t size = (size_t)rows->count * sizeof(KilnRanked);
    KilnRanked *items = malloc(size + 1);
    KilnStatus status = items != NULL ? KILN_OK : kiln_error_nomem(err, size);
    KilnMean mean;
    double found;

    if (status >= 0)
        status = kiln_mean_open(state, &mean, err);
    for (int64_t g = 0, at = 0; g < rows->n_groups && status >= 0; at += rows->group_sizes[g++]) {
        for (int64_t i = 0; i < rows->group_sizes[g]; i++)
            items[i] = (KilnRanked) { (double)rows->scores[at + i], (double)rows->targets[at + i] };
        status = value(context, items, rows->group_sizes[g], &found, err);
        if (status < 0 || (isnan(found) && empty == KILN_EMPTY_SKIP))
            continue;
        *mean.sum += isnan(found) ? empty == KILN_EMPTY_ONE : found;
        ++*mean.count;
    }
    free(items);
    return status;
}

/* Metrics against scikit-learn, torchmetrics, sacrebleu and seqeval (tests/record/metrics.py),
 * and jiwer (tests/record/error_rates.py), through the registry and the public header; identical
 * bytes for any batch size, and the same value of states that were merged. */
#include <math.h>
#include <string.h>

#include "tests/support/data/data_fixture.h"
#include "train/metrics/metric_state.h"

typedef struct ClassRows {
    const char *name;
    const float *scores;
    const int32_t *labels;
    int64_t count, width;
} ClassRows;

typedef struct ValueRows {
    const char *name;
    const float *predictions, *targets;
    int64_t count, width;
} ValueRows;

typedef struct RankingRows {
    const char *name;
    const float *scores, *relevances;
    const int64_t *sizes;
    int64_t count, groups;
} RankingRows;

typedef struct TextRows {
    const char *name;
    const char *const *texts, *const *references;
    int64_t count, n_references;
} TextRows;

typedef struct Want {
    const char *rows, *metric, *options, *part;
    double value;
} Want;

/* The error rates of characters and of words. */
typedef struct ErrorRates {
    TextRows rows;
    double characters, words;
} ErrorRates;

#include "tests/data/error_rates.h"
#include "tests/data/metrics.h"
#include "tests/data/multilabel.h"

/* ---- Building and reading -------------------------------------------------------------- */

static void build_well(const char *metric, const char *options, Built *ret)
{
    KilnError err = { 0 };

    if (build_yaml(ret, KILN_KIND_METRIC, metric, options, &err) < 0)
        fail_msg("%s {%s}: %s", metric, options, err.text);
}

static KilnMetricState *state_of(const Built *built, KilnMetricForm form)
{
    KilnMetricState *state = NULL;
    KilnError err = { 0 };

    if (kiln_metric_state_new(built->instance, &form, &state, &err) < 0)
        fail_msg("%s", err.text);
    return state;
}

/* The value of that name; it must be there. */
static double value_of(KilnMetricState *state, const char *part)
{
    const KilnMetricResult *values = NULL;
    size_t n = 0;

    assert_int_equal(kiln_metric_state_compute(state, &values, &n, NULL), KILN_OK);
    for (size_t i = 0; i < n; i++)
        if (strcmp(values[i].name, part) == 0)
            return values[i].value;
    fail_msg("there is no value \"%s\" among %zu", part, n);
    return 0.0;
}

static void update_well(KilnMetricState *state, KilnMetricRows rows)
{
    KilnError err = { 0 };

    if (kiln_metric_state_update(state, &rows, &err) < 0)
        fail_msg("%s", err.text);
}

/* Rows from `at` on, at most `most`, of whatever the state takes. */
typedef int64_t Feed(KilnMetricState *state, const void *rows, int64_t at, int64_t most);

static int64_t part_of(int64_t count, int64_t at, int64_t most)
{
    return count - at < most ? count - at : most;
}

static int64_t feed_classes(KilnMetricState *state, const void *from, int64_t at, int64_t most)
{
    const ClassRows *rows = from;
    int64_t n = part_of(rows->count, at, most);

    update_well(state, (KilnMetricRows) { .count = n,
                                          .scores = rows->scores + at * rows->width,
                                          .labels = rows->labels + at });
    return n;
}

static int64_t feed_values(KilnMetricState *state, const void *from, int64_t at, int64_t most)
{
    const ValueRows *rows = from;
    int64_t n = part_of(rows->count, at, most);

    update_well(state, (KilnMetricRows) { .count = n,
                                          .scores = rows->predictions + at * rows->width,
                                          .targets = rows->targets + at * rows->width });
    return n;
}

/* Counts in queries. */
static int64_t feed_rankings(KilnMetricState *state, const void *from, int64_t at, int64_t most)
{
    const RankingRows *rows = from;
    int64_t n = part_of(rows->groups, at, most), start = 0, count = 0;

    for (int64_t g = 0; g < at; g++)
        start += rows->sizes[g];
    for (int64_t g = at; g < at + n; g++)
        count += rows->sizes[g];
    update_well(state, (KilnMetricRows) { .count = count,
                                          .scores = rows->scores + start,
                                          .targets = rows->relevances + start,
                                          .group_sizes = rows->sizes + at,
                                          .n_groups = n });
    return n;
}

static int64_t feed_texts(KilnMetricState *state, const void *from, int64_t at, int64_t most)
{
    const TextRows *rows = from;
    int64_t n = part_of(rows->count, at, most);
    KilnSequence sequences[64] = { { 0 } }, references[128] = { { 0 } };

    assert_true(n <= 64 && n * rows->n_references <= 128);
    for (int64_t i = 0; i < n; i++)
        sequences[i].text = rows->texts[at + i];
    for (int64_t i = 0; i < n * rows->n_references; i++)
        references[i].text = rows->references[at * rows->n_references + i];
    update_well(state, (KilnMetricRows) { .count = n,
                                          .sequences = sequences,
                                          .references = references,
                                          .n_references = rows->n_references });
    return n;
}

/* The value of all rows, dealt out to three ranks whose states are merged. */
static double merged(const Built *built, KilnMetricForm form, Feed *feed, const void *rows,
                     int64_t count, const char *part)
{
    KilnMetricState *states[3];
    KilnError err = { 0 };
    size_t rank = 0;

    for (size_t i = 0; i < KILN_COUNT(states); i++)
        states[i] = state_of(built, form);
    for (int64_t at = 0; at < count; rank = (rank + 1) % KILN_COUNT(states))
        at += feed(states[rank], rows, at, 5);
    const int64_t n = kiln_metric_state_rows(states[0]) + kiln_metric_state_rows(states[1]) +
                      kiln_metric_state_rows(states[2]);
    for (size_t i = 1; i < KILN_COUNT(states); i++)
        if (kiln_metric_state_merge(states[0], states[i], &err) < 0)
            fail_msg("%s", err.text);
    assert_int_equal(kiln_metric_state_rows(states[0]), n);
    const double value = value_of(states[0], part);
    for (size_t i = 0; i < KILN_COUNT(states); i++)
        kiln_metric_state_free(states[i]);
    return value;
}

/* The value of all rows, in batches of any size. */
static double counted(const Built *built, KilnMetricForm form, Feed *feed, const void *rows,
                      int64_t count, const char *part)
{
    static const int64_t batches[] = { 1000, 1, 7, 16 };
    KilnMetricState *state = state_of(built, form);
    double first = 0.0;

    for (size_t b = 0; b < KILN_COUNT(batches); b++) {
        for (int64_t at = 0; at < count;)
            at += feed(state, rows, at, batches[b]);
        double value = value_of(state, part);
        if (b == 0)
            first = value;
        if (memcmp(&value, &first, sizeof(value)) != 0 && !(isnan(value) && isnan(first)))
            fail_msg("%s: %.17g in batches of %d, else %.17g", kiln_instance_name(built->instance),
                     value, (int)batches[b], first);
        kiln_metric_state_reset(state);
        assert_int_equal(kiln_metric_state_rows(state), 0);
    }
    kiln_metric_state_free(state);
    const double together = merged(built, form, feed, rows, count, part);
    if (!(fabs(together - first) <= 1e-12 * fabs(first)) && !(isnan(together) && isnan(first)))
        fail_msg("%s: %.17g when merged, else %.17g", kiln_instance_name(built->instance), together,
                 first);
    return first;
}

static void compare(const Want *want, double got)
{
    double off = fabs(got - want->value);

    if (isnan(want->value) ? !isnan(got) : !(off <= 1e-9 * fmax(1.0, fabs(want->value))))
        fail_msg("%s {%s} of %s%s%s: %.17g, but the reference is %.17g", want->metric,
                 want->options, want->rows, want->part[0] != '\0' ? "/" : "", want->part, got,
                 want->value);
}

/* ---- Recorded values ---------------------------------------------------------------------- */

#define FIND(list, want)                                                                           \
    size_t r = 0;                                                                                  \
    while (strcmp((list)[r].name, (want)->rows) != 0)                                              \
    assert_true(++r < KILN_COUNT(list))

static void test_classes(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(class_wants); i++) {
        const Want *want = &class_wants[i];
        FIND(class_rows, want);
        KilnMetricForm form = { .width = class_rows[r].width };
        Built built;

        build_well(want->metric, want->options, &built);
        compare(want, counted(&built, form, feed_classes, &class_rows[r], class_rows[r].count,
                              want->part));
        built_free(&built);
    }
}

static void test_values(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(value_wants); i++) {
        const Want *want = &value_wants[i];
        FIND(value_rows, want);
        KilnMetricForm form = { .width = value_rows[r].width };
        Built built;

        build_well(want->metric, want->options, &built);
        compare(want, counted(&built, form, feed_values, &value_rows[r], value_rows[r].count,
                              want->part));
        built_free(&built);
    }
}

/* Rows with any number of labels, for metrics of classes. */
static void test_multilabel(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(multilabel_wants); i++) {
        const Want *want = &multilabel_wants[i];
        FIND(multilabel_rows, want);
        KilnMetricForm form = { .width = multilabel_rows[r].width };
        Built built;

        build_well(want->metric, want->options, &built);
        compare(want, counted(&built, form, feed_values, &multilabel_rows[r],
                              multilabel_rows[r].count, want->part));
        built_free(&built);
    }
}

static void test_rankings(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(ranking_wants); i++) {
        const Want *want = &ranking_wants[i];
        FIND(ranking_rows, want);
        Built built;

        build_well(want->metric, want->options, &built);
        compare(want, counted(&built, (KilnMetricForm) { .width = 1 }, feed_rankings,
                              &ranking_rows[r], ranking_rows[r].groups, want->part));
        built_free(&built);
    }
}

static void test_texts(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(text_wants); i++) {
        const Want *want = &text_wants[i];
        FIND(text_rows, want);
        Built built;

        build_well(want->metric, want->options, &built);
        compare(want, counted(&built, (KilnMetricForm) { 0 }, feed_texts, &text_rows[r],
                              text_rows[r].count, want->part));
        built_free(&built);
    }
}

static void test_error_rates(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(error_rates); i++) {
        const TextRows *rows = &error_rates[i].rows;

        for (int words = 0; words < 2; words++) {
            const Want want = { rows->name, "error_rate", words ? "unit: words" : "", "",
                                words ? error_rates[i].words : error_rates[i].characters };
            Built built;

            build_well(want.metric, want.options, &built);
            compare(&want, counted(&built, (KilnMetricForm) { 0 }, feed_texts, rows, rows->count,
                                   want.part));
            built_free(&built);
        }
    }
}

/* ---- What no reference says ------------------------------------------------------------------ */

/* Of nothing: NaN for the metric, under the same names. */
static void test_empty(void **unused)
{
    static const struct {
        const char *name;
        int64_t width;
        const char *part;
    } all[] = {
        { "accuracy", 3, "" },
        { "precision", 3, "" },
        { "recall", 3, "" },
        { "f1", 3, "" },
        { "iou", 3, "" },
        { "dice", 3, "" },
        { "log_loss", 3, "" },
        { "perplexity", 3, "" },
        { "auroc", 3, "" },
        { "average_precision", 1, "" },
        { "mae", 2, "" },
        { "mse", 2, "" },
        { "r2", 2, "" },
        { "mean_average_precision", 1, "" },
        { "ndcg", 1, "" },
        { "bleu", 0, "" },
        { "slot_f1", 0, "recall" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(all); i++) {
        Built built;

        build_well(all[i].name, "", &built);
        KilnMetricState *state = state_of(&built, (KilnMetricForm) { .width = all[i].width });
        update_well(state, (KilnMetricRows) { 0 });
        if (!isnan(value_of(state, all[i].part)))
            fail_msg("%s of nothing is a number", all[i].name);
        kiln_metric_state_free(state);
        built_free(&built);
    }
}

static void test_names_of_classes(void **unused)
{
    static const char *const names[] = { "cat", "dog" };
    const float scores[] = { 2.0f, 1.0f, 0.0f, 1.0f, 3.0f, 1.0f };
    const int32_t labels[] = { 0, 1, 1 };
    Built built;

    (void)unused;
    build_well("recall", "per_class: true", &built);
    KilnMetricState *state =
        state_of(&built, (KilnMetricForm) { .width = 2, .names = names, .n_names = 2 });
    assert_true(isnan(value_of(state, "dog"))); /* the name is known before there is a row */
    update_well(state, (KilnMetricRows) { .count = 3, .scores = scores, .labels = labels });
    assert_true(value_of(state, "cat") == 1.0);
    assert_true(value_of(state, "dog") == 0.5);
    assert_int_equal(kiln_metric_state_rows(state), 3);
    kiln_metric_state_free(state);
    built_free(&built);
}

static void test_ignored_rows(void **unused)
{
    static const char *const metrics[] = { "accuracy",   "precision", "recall", "f1",
                                           "iou",        "log_loss",  "auroc",  "average_precision",
                                           "perplexity", "dice" };
    const ClassRows *rows = &class_rows[0];
    int32_t labels[256];
    float kept_scores[1024];
    int32_t kept_labels[256];
    int64_t kept = 0;

    (void)unused;
    assert_true(rows->count <= 256 && rows->count * rows->width <= 1024);
    for (int64_t i = 0; i < rows->count; i++) {
        labels[i] = i % 3 == 1 ? -100 : rows->labels[i];
        if (i % 3 == 1)
            continue;
        memcpy(kept_scores + kept * rows->width, rows->scores + i * rows->width,
               (size_t)rows->width * sizeof(float));
        kept_labels[kept++] = rows->labels[i];
    }
    ClassRows with = { "with", rows->scores, labels, rows->count, rows->width };
    ClassRows without = { "without", kept_scores, kept_labels, kept, rows->width };
    for (size_t i = 0; i < KILN_COUNT(metrics); i++) {
        KilnMetricForm form = { .width = rows->width };
        Built built;

        build_well(metrics[i], "ignore_index: -100", &built);
        assert_true(counted(&built, form, feed_classes, &with, with.count, "") ==
                    counted(&built, form, feed_classes, &without, without.count, ""));
        built_free(&built);
    }
}

/* NaN is the highest score, as in torch.argmax; areas are not defined. */
static void test_not_a_number(void **unused)
{
    const float scores[] = { NAN, 1.0f, 1.0f, NAN };
    const int32_t labels[] = { 1, 1 };
    const ClassRows rows = { "nan", scores, labels, 2, 2 };
    Built built;

    (void)unused;
    build_well("accuracy", "", &built);
    assert_true(counted(&built, (KilnMetricForm) { .width = 2 }, feed_classes, &rows, 2, "") ==
                0.5);
    built_free(&built);
    build_well("auroc", "", &built);
    assert_true(
        isnan(counted(&built, (KilnMetricForm) { .width = 2 }, feed_classes, &rows, 2, "")));
    built_free(&built);
}

/* Ids are words as they are: the same value as of texts that spell them. */
static void test_ids(void **unused)
{
    static const char *const tags[] = { "O", "B-PER", "I-PER", "B-LOC" };
    const int32_t predicted[] = { 1, 2, 0, 3, 3 }, truth[] = { 1, 2, 0, 3, 2 };
    const KilnSequence sequence = { .ids = predicted, .count = 5 };
    const KilnSequence reference = { .ids = truth, .count = 5 };
    const KilnSequence text = { .text = "1 2 0 3 3" }, reference_text = { .text = "1 2 0 3 2" };
    KilnMetricRows rows = {
        .count = 1, .sequences = &sequence, .references = &reference, .n_references = 1
    };
    Built built;

    (void)unused;
    build_well("slot_f1", "", &built);
    KilnMetricState *state = state_of(&built, (KilnMetricForm) { .names = tags, .n_names = 4 });
    update_well(state, rows); /* PER right; two LOC for LOC, PER */
    assert_true(fabs(value_of(state, "") - 2.0 * 2.0 / (3.0 + 3.0)) < 1e-15);
    kiln_metric_state_free(state);
    built_free(&built);

    build_well("bleu", "", &built);
    state = state_of(&built, (KilnMetricForm) { 0 });
    update_well(state, rows);
    double of_ids = value_of(state, "");
    kiln_metric_state_reset(state);
    rows.sequences = &text;
    rows.references = &reference_text;
    update_well(state, rows);
    assert_true(of_ids > 0.0 && of_ids < 100.0 && of_ids == value_of(state, ""));
    kiln_metric_state_free(state);
    built_free(&built);
}

/* ---- Refusals ----------------------------------------------------------------------- */

static void refused(const char *metric, const char *options, KilnMetricForm form,
                    KilnMetricRows rows, KilnStatus status, const char *says)
{
    KilnMetricState *state = NULL;
    KilnError err = { 0 };
    Built built;

    build_well(metric, options, &built);
    KilnStatus got = kiln_metric_state_new(built.instance, &form, &state, &err);
    if (got >= 0)
        got = kiln_metric_state_update(state, &rows, &err);
    if (got != status || strstr(err.text, says) == NULL || strncmp(err.text, "it: ", 4) != 0)
        fail_msg("%s {%s}: status %d: %s", metric, options, got, err.text);
    kiln_metric_state_free(state);
    built_free(&built);
}

static void test_refusals(void **unused)
{
    const float scores[] = { 1.0f, 2.0f, 3.0f };
    const int32_t label = 3, negative = -1, tag = 7;
    const int64_t sizes[] = { 2 };
    const KilnSequence one = { .text = "O" }, two = { .text = "O O" }, id = { &tag, 1, NULL };
    const KilnSequence none = { .count = 2 };

    (void)unused;
    refused("accuracy", "", (KilnMetricForm) { .width = 3 },
            (KilnMetricRows) { .count = 1, .scores = scores, .labels = &label }, KILN_E_RANGE,
            "label 3 is no class: there are 3");
    refused("f1", "ignore_index: -100", (KilnMetricForm) { .width = 3 },
            (KilnMetricRows) { .count = 1, .scores = scores, .labels = &negative }, KILN_E_RANGE,
            "label -1 is no class");
    refused("accuracy", "", (KilnMetricForm) { .width = 3 },
            (KilnMetricRows) { .count = 1, .scores = scores }, KILN_E_SHAPE, "needs labels");
    refused("accuracy", "top_k: 2", (KilnMetricForm) { .width = 3 },
            (KilnMetricRows) { .count = 1, .scores = scores, .targets = scores }, KILN_E_RANGE,
            "rows with several labels need top_k=1");
    refused("log_loss", "", (KilnMetricForm) { .width = 3 },
            (KilnMetricRows) { .count = 1, .scores = scores, .targets = scores }, KILN_E_SHAPE,
            "needs labels");
    refused("mse", "", (KilnMetricForm) { .width = 3 },
            (KilnMetricRows) { .count = 1, .scores = scores }, KILN_E_SHAPE, "needs targets");
    refused("accuracy", "top_k: 4", (KilnMetricForm) { .width = 3 }, (KilnMetricRows) { 0 },
            KILN_E_RANGE, "top_k=4 of 3 classes");
    refused("f1", "average: binary", (KilnMetricForm) { .width = 3 }, (KilnMetricRows) { 0 },
            KILN_E_SHAPE, "there are 3 classes");
    refused("confusion_matrix", "", (KilnMetricForm) { .width = 33 }, (KilnMetricRows) { 0 },
            KILN_E_SHAPE, "33 classes are too many");
    refused("accuracy", "", (KilnMetricForm) { .width = 0 }, (KilnMetricRows) { 0 }, KILN_E_SHAPE,
            "no scores");
    refused("ndcg", "", (KilnMetricForm) { .width = 2 }, (KilnMetricRows) { 0 }, KILN_E_SHAPE,
            "one score");
    refused(
        "ndcg", "", (KilnMetricForm) { .width = 1 },
        (KilnMetricRows) {
            .count = 3, .scores = scores, .targets = scores, .group_sizes = sizes, .n_groups = 1 },
        KILN_E_SHAPE, "groups have 2 rows of 3");
    refused(
        "slot_f1", "", (KilnMetricForm) { 0 },
        (KilnMetricRows) { .count = 1, .sequences = &one, .references = &two, .n_references = 1 },
        KILN_E_SHAPE, "1 tags and its reference 2");
    refused(
        "slot_f1", "", (KilnMetricForm) { 0 },
        (KilnMetricRows) { .count = 1, .sequences = &id, .references = &one, .n_references = 1 },
        KILN_E_RANGE, "id 7 has no name");
    refused(
        "bleu", "", (KilnMetricForm) { 0 },
        (KilnMetricRows) { .count = 1, .sequences = &none, .references = &one, .n_references = 1 },
        KILN_E_SHAPE, "neither ids nor text");
    refused("bleu", "", (KilnMetricForm) { 0 }, (KilnMetricRows) { .count = 1, .sequences = &one },
            KILN_E_SHAPE, "needs references");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),          cmocka_unit_test(test_values),
        cmocka_unit_test(test_rankings),         cmocka_unit_test(test_texts),
        cmocka_unit_test(test_error_rates),      cmocka_unit_test(test_empty),
        cmocka_unit_test(test_names_of_classes), cmocka_unit_test(test_ignored_rows),
        cmocka_unit_test(test_not_a_number),     cmocka_unit_test(test_ids),
        cmocka_unit_test(test_refusals),         cmocka_unit_test(test_multilabel),
    };

    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}

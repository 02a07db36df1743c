/* Checks a metric on made-up rows: split over calls, after a reset, with its state saved and
 * loaded, and merged with that of another process, its results stay the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "cli/checks/checks.h"
#include "kiln/metric.h"
#include "train/metrics/metric_state.h"

enum { ROWS = 24, WIDTH = 3, GROUP = 4, WORDS = 6, RESULTS = 64 };

/* Rows of every kind of input; see KilnMetricRows. */
typedef struct Rows {
    float scores[ROWS * WIDTH], targets[ROWS * WIDTH];
    int32_t labels[ROWS];
    int64_t groups[2 * ROWS];
    int32_t words[2][ROWS][WORDS];
    KilnSequence sequences[ROWS], references[ROWS];
    float detections[ROWS * KILN_DETECTION_COLUMNS], truths[ROWS * KILN_TRUTH_COLUMNS];
} Rows;

typedef struct Values {
    KilnCase *self;
    KilnInstance *metric;
    KilnMetricInput takes;
    KilnMetricForm form;
    const Rows *rows;
} Values;

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Each image has one true box, and a detection that is off by some pixels. */
static void fill_boxes(Rows *rows, int i)
{
    const float at = (float)(i % 5), off = (float)(i % 3);
    const float truth[] = { at, at, at + 10.0F, at + 12.0F, (float)(i % WIDTH), 0.0F, 120.0F };
    const float found[] = { at + off,           at,
                            at + 10.0F + off,   at + 12.0F,
                            (float)(i % WIDTH), 0.3F + (float)(i % 7) / 10.0F };

    memcpy(rows->truths + i * KILN_TRUTH_COLUMNS, truth, sizeof(truth));
    memcpy(rows->detections + i * KILN_DETECTION_COLUMNS, found, sizeof(found));
}

static void fill(Rows *rows, KilnMetricInput takes)
{
    for (int i = 0; i < ROWS * WIDTH; i++) {
        rows->scores[i] = (float)(i * 29 % 41 - 20) / 10.0F;
        rows->targets[i] = takes == KILN_METRIC_CLASSES ? (float)(i % 4 == 0)
                                                        : rows->scores[i] + (float)(i % 5) / 10.0F;
    }
    for (int i = 0; i < ROWS; i++) {
        rows->labels[i] = (i * 5 + i / 4) % WIDTH;
        rows->groups[i] = rows->groups[ROWS + i] = takes == KILN_METRIC_DETECTIONS ? 1 : GROUP;
        if (takes == KILN_METRIC_RANKINGS)
            rows->targets[i] = (float)(i * 3 % 4);
        for (int k = 0; k < WORDS; k++) {
            rows->words[0][i][k] = 1 + (i + k) % 5;
            rows->words[1][i][k] = 1 + (i + k + (k + i) % 3 / 2) % 5;
        }
        rows->sequences[i] = (KilnSequence) { .ids = rows->words[0][i], .count = WORDS };
        rows->references[i] = (KilnSequence) { .ids = rows->words[1][i], .count = WORDS };
        fill_boxes(rows, i);
    }
}

/* Texts for metrics that take no ids. */
static void make_texts(Rows *rows)
{
    static const char *const texts[] = { "the cat sat on the mat", "a cat sat on the mat",
                                         "there is a dog here",    "there was a dog",
                                         "nothing to see",         "nothing at all to see" };

    for (int i = 0; i < ROWS; i++) {
        rows->sequences[i] = (KilnSequence) { .text = texts[i % 6] };
        rows->references[i] = (KilnSequence) { .text = texts[i % 6 / 2 * 2] };
    }
}

/* Rows [from, to), multiples of GROUP. */
static KilnMetricRows part(const Values *of, int64_t from, int64_t to)
{
    const Rows *rows = of->rows;
    KilnMetricRows ret = { .count = to - from };

    switch (of->takes) {
    case KILN_METRIC_CLASSES:
        ret.scores = rows->scores + from * WIDTH;
        ret.labels = rows->labels + from;
        break;
    case KILN_METRIC_VALUES:
        ret.scores = rows->scores + from * WIDTH;
        ret.targets = rows->targets + from * WIDTH;
        break;
    case KILN_METRIC_RANKINGS:
        ret.scores = rows->scores + from;
        ret.targets = rows->targets + from;
        ret.group_sizes = rows->groups + from / GROUP;
        ret.n_groups = (to - from) / GROUP;
        break;
    case KILN_METRIC_SEQUENCES:
        ret.sequences = rows->sequences + from;
        ret.references = rows->references + from;
        ret.n_references = 1;
        break;
    case KILN_METRIC_DETECTIONS:
        ret.scores = rows->detections + from * KILN_DETECTION_COLUMNS;
        ret.targets = rows->truths + from * KILN_TRUTH_COLUMNS;
        ret.group_sizes = rows->groups;
        break;
    }
    return ret;
}

/* ---- Results --------------------------------------------------------------------------------- */

typedef struct Results {
    char names[RESULTS][64];
    double values[RESULTS];
    size_t n;
} Results;

static KilnStatus compute(KilnMetricState *state, Results *ret, KilnError *err)
{
    const KilnMetricResult *list;
    size_t n = 0;
    KilnStatus status = kiln_metric_state_compute(state, &list, &n, err);

    ret->n = status < 0 ? 0 : n < RESULTS ? n : RESULTS;
    for (size_t i = 0; i < ret->n; i++) {
        snprintf(ret->names[i], sizeof(ret->names[i]), "%s", list[i].name);
        ret->values[i] = list[i].value;
    }
    return status;
}

static bool is_near(double a, double b, double tolerance)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * fmax(1.0, fabs(a));
}

/* Compare with the results of all rows at once. */
static void compare(const Values *of, const Results *want, const Results *got, double tolerance,
                    const char *how, const char *advice)
{
    if (want->n != got->n)
        return kiln_case_fail(of->self, advice, "%s it has %zu values instead of %zu", how, got->n,
                              want->n);
    for (size_t i = 0; i < want->n; i++)
        if (strcmp(want->names[i], got->names[i]) != 0 ||
            !is_near(want->values[i], got->values[i], tolerance))
            return kiln_case_fail(of->self, advice, "%s value \"%s\" is %.12g instead of %.12g",
                                  how, want->names[i], got->values[i], want->values[i]);
}

/* ---- States ---------------------------------------------------------------------------------- */

static KilnMetricState *state_new(const Values *of)
{
    KilnMetricState *state = NULL;
    KilnError err = { 0 };

    if (kiln_metric_state_new(of->metric, &of->form, &state, &err) < 0)
        kiln_case_fail_with(of->self, &err);
    return state;
}

/* Add rows [from, to) in steps, and compute. */
static bool add(const Values *of, KilnMetricState *state, int64_t from, int64_t to, int64_t step,
                Results *ret)
{
    KilnError err = { 0 };
    KilnStatus status = KILN_OK;

    for (int64_t at = from; at < to && status >= 0; at += step) {
        const KilnMetricRows rows = part(of, at, at + step < to ? at + step : to);

        status = kiln_metric_state_update(state, &rows, &err);
    }
    if (status >= 0)
        status = compute(state, ret, &err);
    if (status < 0)
        kiln_case_fail_with(of->self, &err);
    return status >= 0;
}

/* Copy the arrays of a state, as a checkpoint does. */
static bool copy_state(const Values *of, const KilnMetricState *from, KilnMetricState *to)
{
    KilnError err = { 0 };
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < from->n_arrays && status >= 0; i++) {
        const KilnMetricStateArray *array = &from->arrays[i];
        const size_t bytes = (size_t)array->n * kiln_dtype_size(array->dtype);
        void *data = malloc(bytes + 1);

        if (data == NULL)
            return false;
        if (bytes > 0)
            memcpy(data, array->data, bytes);
        status = kiln_metric_state_restore(to, array->name, array->dtype, data, array->n, &err);
    }
    if (status < 0)
        kiln_case_fail_with(of->self, &err);
    return status >= 0;
}

/* Half of the rows, a copy of the state, the other half; and two halves that are merged. */
static void check_copies(const Values *of, const Results *all)
{
    KilnMetricState *half = state_new(of), *copy = state_new(of), *other = state_new(of);
    KilnError err = { 0 };
    Results got;

    if (half != NULL && copy != NULL && other != NULL && add(of, half, 0, ROWS / 2, ROWS, &got) &&
        copy_state(of, half, copy) && add(of, copy, ROWS / 2, ROWS, ROWS, &got)) {
        compare(of, all, &got, 0.0, "with its state saved and loaded",
                "keep everything in the state's arrays");
        if (!kiln_case_failed(of->self) && add(of, other, ROWS / 2, ROWS, ROWS, &got)) {
            if (kiln_metric_state_merge(half, other, &err) < 0 || compute(half, &got, &err) < 0)
                kiln_case_fail_with(of->self, &err);
            else
                compare(of, all, &got, 1e-9, "merged from two processes",
                        "write `merge` where counts and sums can't be added");
        }
    }
    kiln_metric_state_free(half);
    kiln_metric_state_free(copy);
    kiln_metric_state_free(other);
}

static void check_split(const Values *of, Results *all)
{
    KilnMetricState *state = state_new(of);
    Results got;

    if (state != NULL && add(of, state, 0, ROWS, ROWS, all)) {
        KilnError err = { 0 };

        if (compute(state, &got, &err) >= 0)
            compare(of, all, &got, 0.0, "computed again", "`compute` may not change the state");
        kiln_metric_state_reset(state);
        if (!kiln_case_failed(of->self) && compute(state, &got, &err) < 0)
            kiln_case_fail(of->self, "`compute` reports NaN for an empty state", "without rows: %s",
                           err.text);
        kiln_metric_state_reset(state);
        if (!kiln_case_failed(of->self) && add(of, state, 0, ROWS, GROUP, &got))
            compare(of, all, &got, 0.0, "with its rows in six calls, after a reset,",
                    "add numbers one by one: kiln_mean, or counts");
    }
    kiln_metric_state_free(state);
}

void kiln_contract_values(KilnCase *self)
{
    static Rows rows; /* in a child process */
    const KilnMetricInput takes = self->component->ops.metric->takes;
    KilnCaseInstance built;
    KilnError err = { 0 };
    Results all = { .n = 0 };

    if (!kiln_case_open(self, &built))
        return;
    Values of = { .self = self, .metric = built.instance, .takes = takes, .rows = &rows };
    static const char *const names[] = { "O", "B-a", "I-a", "B-b", "I-b", "I-c" };
    if (takes == KILN_METRIC_SEQUENCES || takes == KILN_METRIC_DETECTIONS) {
        of.form.names = names;
        of.form.n_names = takes == KILN_METRIC_DETECTIONS ? WIDTH : KILN_COUNT(names);
    }
    of.form.width = takes == KILN_METRIC_RANKINGS ? 1 : takes == KILN_METRIC_SEQUENCES ? 0 : WIDTH;
    fill(&rows, takes);
    KilnMetricState *state = NULL;
    if (kiln_metric_state_new(of.metric, &of.form, &state, &err) < 0) {
        kiln_case_skip(self, "", "it refuses rows of %d scores: %s", WIDTH, err.text);
        return kiln_case_close(&built);
    }
    const KilnMetricRows some = part(&of, 0, ROWS);
    if (takes == KILN_METRIC_SEQUENCES && kiln_metric_state_update(state, &some, &err) < 0)
        make_texts(&rows);
    kiln_metric_state_free(state);
    check_split(&of, &all);
    if (!kiln_case_failed(self))
        check_copies(&of, &all);
    kiln_case_pass(self, "%zu value%s of %d rows: in parts, after a reset, saved, merged", all.n,
                   all.n == 1 ? "" : "s", ROWS);
    kiln_case_close(&built);
}

/* Checks classes, labels, tags and the classes of masks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/tools/text.h"
#include "train/check/checked_sets.h"

/* A feature of labels. */
typedef struct Labels {
    const KilnFeature *feature;
    size_t f;
    const char *const *names; /* NULL: none */
    const char *what;         /* "samples", "words", "pixels" */
    bool per_sample;          /* the counts are of samples */
} Labels;

static const char *name_of(const Labels *labels, int64_t id, char buf[32])
{
    if (labels->names != NULL)
        return labels->names[id];
    snprintf(buf, 32, "%lld", (long long)id);
    return buf;
}

static Labels labels_of(const KilnDataSpec *spec, size_t f)
{
    const KilnFeature *feature = &spec->features[f];
    Labels labels = { .feature = feature, .f = f, .what = "samples", .per_sample = true };
    const bool is_mask = feature->shape.rank == 2;

    (void)kiln_spec_ids(spec, feature, &labels.names);
    if (feature == kiln_spec_labels(spec) || is_mask)
        labels.names = spec->class_names;
    if (is_mask || feature->varies) {
        labels.what = is_mask ? "pixels" : "words";
        labels.per_sample = false;
    }
    return labels;
}

static const int64_t *counts_of(const KilnCheckedSets *sets, size_t s, const Labels *labels)
{
    return sets->list[s].features[labels->f].ids;
}

static int64_t sum_of(const int64_t *counts, int64_t n)
{
    int64_t sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += counts[i];
    return sum;
}

/* Append a name, if there are not many yet. */
static void put_name(KilnText *text, const char *name, int64_t n)
{
    enum { LISTED = 6 };

    if (n < LISTED)
        kiln_text_printf(text, "%s%s", n > 0 ? ", " : "", name);
    else if (n == LISTED)
        kiln_text_append(text, ", ...");
}

/* ---- The checks ------------------------------------------------------------------------------ */

static void check_unseen(KilnCheckedSets *sets, const Labels *labels, int64_t n)
{
    const int64_t *train = counts_of(sets, 0, labels);
    bool any = false;

    for (size_t s = 1; s < sets->n; s++) {
        const int64_t *counts = counts_of(sets, s, labels);
        KilnText names = { 0 };
        int64_t unseen = 0, listed = 0;
        char buf[32];

        for (int64_t id = 0; id < n && counts != NULL; id++)
            if (counts[id] > 0 && train[id] == 0) {
                put_name(&names, name_of(labels, id, buf), listed++);
                unseen += counts[id];
            }
        if (unseen > 0)
            kiln_data_report_add(
                sets->report, labels->per_sample ? KILN_CHECK_ERROR : KILN_CHECK_WARNING,
                "classes unknown to training", unseen,
                "they can't be learned; add training samples or leave them out",
                "%lld of %lld %s of %s have classes (\"%s\") that no training "
                "sample has: %s",
                (long long)unseen, (long long)sum_of(counts, n), labels->what, sets->list[s].name,
                labels->feature->name, names.data != NULL ? names.data : "");
        any = any || unseen > 0;
        kiln_text_release(&names);
    }
    if (!any && sets->n > 1)
        kiln_data_report_add(sets->report, KILN_CHECK_PASSED, "classes unknown to training", 0,
                             NULL, "training has every class (\"%s\") of the other splits",
                             labels->feature->name);
}

/* A class that datamodules add for those that training lacks. */
static bool stands_for_unknown(const Labels *labels, int64_t id)
{
    return labels->names != NULL && strcmp(labels->names[id], "<unknown>") == 0;
}

static void check_few(KilnCheckedSets *sets, const Labels *labels, int64_t n)
{
    enum { FEW = 10 };
    const int64_t *train = counts_of(sets, 0, labels);
    KilnText names = { 0 };
    int64_t few = 0;

    for (int64_t id = 0; id < n; id++)
        if (train[id] < FEW && !stands_for_unknown(labels, id)) {
            KilnText name = { 0 };
            char buf[32];

            kiln_text_printf(&name, "%s (%lld)", name_of(labels, id, buf), (long long)train[id]);
            put_name(&names, name.data != NULL ? name.data : "", few++);
            kiln_text_release(&name);
        }
    if (few > 0)
        kiln_data_report_add(sets->report, KILN_CHECK_WARNING, "samples of each class", few,
                             "get more of them, or merge classes",
                             "%lld of %lld classes have fewer than %d training samples: %s",
                             (long long)few, (long long)n, FEW,
                             names.data != NULL ? names.data : "");
    else
        kiln_data_report_add(sets->report, KILN_CHECK_PASSED, "samples of each class", 0, NULL,
                             "each of %lld classes has at least %d training samples", (long long)n,
                             FEW);
    kiln_text_release(&names);
}

static void check_balance(KilnCheckedSets *sets, const Labels *labels, int64_t n)
{
    enum { UNEQUAL = 10 };
    const int64_t *train = counts_of(sets, 0, labels);
    int64_t least = -1, most = 0;
    char a[32], b[32];

    for (int64_t id = 0; id < n; id++) {
        most = train[id] > train[most] ? id : most;
        if (train[id] > 0 && (least < 0 || train[id] < train[least]))
            least = id;
    }
    if (least < 0)
        return;
    const double times = (double)train[most] / (double)train[least];
    if (times >= UNEQUAL)
        kiln_data_report_add(sets->report, KILN_CHECK_WARNING, "balance of classes", train[least],
                             "task.loss.balanced=true weights them, datamodule.sampler=balanced "
                             "draws them equally often; read val/f1, not the accuracy",
                             "%s has %lld training samples, %s has %lld: %.0f times as many",
                             name_of(labels, least, a), (long long)train[least],
                             name_of(labels, most, b), (long long)train[most], times);
    else
        kiln_data_report_add(sets->report, KILN_CHECK_PASSED, "balance of classes", 0, NULL,
                             "the largest class is %.1f times the smallest", times);
}

/* Shares that differ by more than chance would explain. */
static void check_shares(KilnCheckedSets *sets, const Labels *labels, int64_t n)
{
    enum { ENOUGH = 50 };
    const int64_t *train = counts_of(sets, 0, labels);
    const double all = (double)sum_of(train, n);
    bool any = false;

    for (size_t s = 1; s < sets->n; s++) {
        const int64_t *counts = counts_of(sets, s, labels);
        const double of_set = counts != NULL ? (double)sum_of(counts, n) : 0.0;
        double worst = 0.1;
        int64_t at = -1;
        char buf[32];

        for (int64_t id = 0; id < n && of_set >= ENOUGH && all >= ENOUGH; id++) {
            const double difference = (double)counts[id] / of_set - (double)train[id] / all;

            if (difference > worst || -difference > worst) {
                worst = difference > 0.0 ? difference : -difference;
                at = id;
            }
        }
        if (at < 0)
            continue;
        any = true;
        kiln_data_report_add(
            sets->report, KILN_CHECK_WARNING, "shares of classes", 1,
            "the splits are not drawn alike; its measurements say less about new data",
            "%s is %.0f %% of train and %.0f %% of %s", name_of(labels, at, buf),
            100.0 * (double)train[at] / all, 100.0 * (double)counts[at] / of_set,
            sets->list[s].name);
    }
    if (!any && sets->n > 1)
        kiln_data_report_add(sets->report, KILN_CHECK_PASSED, "shares of classes", 0, NULL,
                             "classes have about the same shares in all splits");
}

/* Where only some samples were read, count the classes of all, if the datamodule knows them without
 * reading. */
static KilnStatus count_all(KilnCheckedSets *sets, const Labels *labels, int64_t n, bool *ret_all,
                            KilnError *err)
{
    KilnStatus status = KILN_OK;

    *ret_all = true;
    for (size_t s = 0; s < sets->n && status >= 0; s++) {
        const KilnSetRead *set = &sets->list[s];
        const KilnDataset *dataset = &set->dataset;
        int64_t *counts = set->features[labels->f].ids;

        if (set->looked == dataset->count)
            continue;
        if (dataset->label == NULL || labels->feature != kiln_spec_label(sets->check->spec)) {
            *ret_all = false;
            continue;
        }
        memset(counts, 0, (size_t)n * sizeof(*counts));
        for (int64_t i = 0; i < dataset->count && status >= 0; i++) {
            const int64_t label = dataset->label(dataset->ctx, i);

            if (label >= 0 && label < n)
                counts[label]++;
            status = kiln_poll_check(sets->check->poll, "counting classes", i, dataset->count, err);
        }
    }
    return status;
}

KilnStatus kiln_check_labels(KilnCheckedSets *sets, KilnError *err)
{
    const KilnDataSpec *spec = sets->check->spec;
    KilnStatus status = KILN_OK;

    for (size_t f = 0; f < spec->n_features; f++) {
        const KilnFeature *feature = &spec->features[f];
        const Labels labels = labels_of(spec, f);
        const int64_t n = sets->list[0].features[f].n_ids;

        if (feature->content != KILN_LABEL || counts_of(sets, 0, &labels) == NULL ||
            sum_of(counts_of(sets, 0, &labels), n) == 0)
            continue;
        bool all = true;
        status = count_all(sets, &labels, n, &all, err);
        if (status < 0)
            return status;
        if (all)
            check_unseen(sets, &labels, n);
        if (all && labels.per_sample) {
            check_few(sets, &labels, n);
            check_balance(sets, &labels, n);
        }
        if (labels.per_sample)
            check_shares(sets, &labels, n);
    }
    return status;
}

/* Finds equal samples by the hashes of their features. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/check/checked_sets.h"

enum { SETS = KILN_SPLIT_COUNT * KILN_MAX_SETS };

/* What is equal. */
typedef struct Equal {
    int64_t repeated[SETS];              /* samples of a set beyond the first of each kind */
    int64_t shared[SETS][SETS];          /* samples of set a that set b has, too; b < a */
    int64_t labels;                      /* samples whose equals have other labels */
    KilnSampleKey pair[SETS][2];         /* an example of repeated ones */
    KilnSampleKey across[SETS][SETS][2]; /* of shared ones */
    KilnSampleKey contrary[2];           /* of other labels */
} Equal;

static int compare(const void *a, const void *b)
{
    const KilnSampleKey *x = a, *y = b;

    if (x->input != y->input)
        return x->input < y->input ? -1 : 1;
    if (x->set != y->set)
        return x->set < y->set ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Keep the example whose first sample comes first; `n` were there before. */
static void keep(const KilnSampleKey *first, const KilnSampleKey *second, int64_t n,
                 KilnSampleKey example[2])
{
    if (n > 0 && (first->set > example[0].set ||
                  (first->set == example[0].set && first->index >= example[0].index)))
        return;
    example[0] = *first;
    example[1] = *second;
}

/* Count a run of equal samples, which is sorted by set and index. */
static void count_run(const KilnSampleKey *keys, size_t n, Equal *equal)
{
    const KilnSampleKey *first[SETS] = { NULL };
    bool contrary = false;

    for (size_t i = 0; i < n; i++) {
        const int set = keys[i].set;

        if (first[set] != NULL)
            keep(first[set], &keys[i], equal->repeated[set]++, equal->pair[set]);
        if (first[set] == NULL)
            first[set] = &keys[i];
        for (int b = 0; b < set; b++)
            if (first[b] != NULL)
                keep(&keys[i], first[b], equal->shared[set][b]++, equal->across[set][b]);
        if (keys[i].labels != keys[0].labels && !contrary) {
            contrary = true;
            keep(&keys[0], &keys[i], equal->labels, equal->contrary);
        }
    }
    equal->labels += contrary ? (int64_t)n : 0;
}

static KilnStatus count_equal(const KilnCheckedSets *sets, Equal *equal, KilnError *err)
{
    size_t total = 0, n = 0;

    for (size_t s = 0; s < sets->n; s++)
        total += (size_t)sets->list[s].n_keys;
    KilnSampleKey *keys = malloc((total + 1) * sizeof(*keys));
    if (keys == NULL)
        return kiln_error_nomem(err, total * sizeof(*keys));
    for (size_t s = 0; s < sets->n; s++) {
        if (sets->list[s].n_keys > 0)
            memcpy(keys + n, sets->list[s].keys, (size_t)sets->list[s].n_keys * sizeof(*keys));
        n += (size_t)sets->list[s].n_keys;
    }
    if (n > 0)
        qsort(keys, n, sizeof(*keys), compare);
    for (size_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && keys[end].input == keys[begin].input;)
            end++;
        if (end - begin > 1)
            count_run(keys + begin, end - begin, equal);
    }
    free(keys);
    return KILN_OK;
}

/* ---- What is said ---------------------------------------------------------------------------- */

/* "train/cat/1.png and val/cat/7.png". */
typedef struct Example {
    char text[1100];
} Example;

static Example example_of(const KilnCheckedSets *sets, const KilnSampleKey pair[2])
{
    char first[512], second[512];
    Example example;

    (void)kiln_set_read_name(&sets->list[pair[0].set], pair[0].index, first, sizeof(first));
    (void)kiln_set_read_name(&sets->list[pair[1].set], pair[1].index, second, sizeof(second));
    snprintf(example.text, sizeof(example.text), "%s and %s", first, second);
    return example;
}

/* Rows of few columns are equal by chance; images and texts are not. */
static bool are_rows(const KilnDataSpec *spec)
{
    for (size_t f = 0; f < spec->n_features; f++)
        if (spec->features[f].content != KILN_ROW && spec->features[f].content != KILN_VECTOR &&
            spec->features[f].content != KILN_LABEL && spec->features[f].content != KILN_TEXT)
            return false;
    return true;
}

static void say_shared(KilnCheckedSets *sets, const Equal *equal, size_t a, size_t b, bool *ret_any)
{
    const int64_t n = equal->shared[a][b], looked = sets->list[a].looked;
    const bool rows = are_rows(sets->check->spec);
    const KilnCheckLevel level = n * 20 >= looked && !rows    ? KILN_CHECK_ERROR
                                 : n * 100 >= looked || !rows ? KILN_CHECK_WARNING
                                                              : KILN_CHECK_NOTE;

    if (n == 0)
        return;
    *ret_any = true;
    kiln_data_report_add(sets->report, level, "overlap of splits", n,
                         "what was trained on measures nothing; remove the copies from one of them",
                         "%lld of %lld samples of %s are in %s, too, such as %s", (long long)n,
                         (long long)looked, sets->list[a].name, sets->list[b].name,
                         example_of(sets, equal->across[a][b]).text);
}

static void say_repeated(KilnCheckedSets *sets, const Equal *equal, size_t s, bool *ret_any)
{
    const int64_t n = equal->repeated[s], looked = sets->list[s].looked;
    const bool many = n * (are_rows(sets->check->spec) ? 10 : 100) >= looked;

    if (n == 0)
        return;
    *ret_any = true;
    kiln_data_report_add(sets->report, many ? KILN_CHECK_WARNING : KILN_CHECK_NOTE, "duplicates", n,
                         NULL, "%lld of %lld samples of %s repeat another one, such as %s",
                         (long long)n, (long long)looked, sets->list[s].name,
                         example_of(sets, equal->pair[s]).text);
}

static void say_equal(KilnCheckedSets *sets, const Equal *equal)
{
    bool shares = false, repeats = false;

    for (size_t a = 1; a < sets->n; a++)
        for (size_t b = 0; b < a; b++)
            say_shared(sets, equal, a, b, &shares);
    for (size_t s = 0; s < sets->n; s++)
        say_repeated(sets, equal, s, &repeats);
    if (!shares && sets->n > 1)
        kiln_data_report_add(sets->report, KILN_CHECK_PASSED, "overlap of splits", 0, NULL,
                             "no sample that was read is in two sets");
    if (!repeats)
        kiln_data_report_add(sets->report, KILN_CHECK_PASSED, "duplicates", 0, NULL,
                             "all samples of a set that were read differ");
    if (equal->labels > 0)
        kiln_data_report_add(
            sets->report, sets->check->spec->n_classes > 0 ? KILN_CHECK_WARNING : KILN_CHECK_NOTE,
            "contrary labels", equal->labels, "no model can tell them apart; look at their labels",
            "%lld samples have equals with other labels, such as %s", (long long)equal->labels,
            example_of(sets, equal->contrary).text);
    else
        kiln_data_report_add(sets->report, KILN_CHECK_PASSED, "contrary labels", 0, NULL,
                             "equal samples have equal labels");
}

KilnStatus kiln_check_overlap(KilnCheckedSets *sets, KilnError *err)
{
    Equal *equal = calloc(1, sizeof(*equal));
    int64_t keys = 0;
    KilnStatus status = equal != NULL ? count_equal(sets, equal, err)
                                      : kiln_error_nomem(err, sizeof(*equal));

    for (size_t s = 0; s < sets->n; s++)
        keys += sets->list[s].n_keys;
    if (status >= 0 && sets->train_differs)
        kiln_data_report_add(sets->report, KILN_CHECK_NOTE, "overlap of splits", 0,
                             "`kiln check-data` reads them as validation does",
                             "training samples are augmented, so they are not compared here");
    if (status >= 0 && keys > 0)
        say_equal(sets, equal);
    free(equal);
    return status;
}

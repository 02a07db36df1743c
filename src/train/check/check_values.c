/* Checks the values of samples: whether they can be read, NaN, empty ones, lengths, constants. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "kiln/tokenizer.h"
#include "kiln/tools/text.h"
#include "train/check/checked_sets.h"

static void check_broken(KilnCheckedSets *sets)
{
    int64_t broken = 0;

    for (size_t s = 0; s < sets->n; s++) {
        const KilnSetRead *set = &sets->list[s];

        broken += set->broken;
        if (set->broken > 0)
            kiln_data_report_add(sets->report, KILN_CHECK_ERROR, "samples that can't be read",
                                 set->broken,
                                 "repair or remove them; datamodule.on_error=skip, where "
                                 "there is such an option, leaves them out",
                                 "%lld of %lld samples of %s: %s%s%s", (long long)set->broken,
                                 (long long)set->looked, set->name, set->why[0],
                                 set->broken > 1 ? "; " : "", set->broken > 1 ? set->why[1] : "");
    }
    if (broken == 0)
        kiln_data_report_add(sets->report, KILN_CHECK_PASSED, "samples that can't be read", 0, NULL,
                             "all samples were read");
}

static void check_numbers(KilnCheckedSets *sets, size_t f, bool *ret_any)
{
    const KilnFeature *feature = &sets->check->spec->features[f];
    char name[512];

    for (size_t s = 0; s < sets->n; s++) {
        const KilnFeatureRead *read = &sets->list[s].features[f];

        if (read->first_bad < 0)
            continue;
        *ret_any = true;
        kiln_data_report_add(
            sets->report, KILN_CHECK_ERROR, "NaN and infinity", read->nan + read->inf,
            "one of them makes the loss NaN",
            "%lld samples of %s have NaN and %lld have infinity in \"%s\", such as %s",
            (long long)read->nan, sets->list[s].name, (long long)read->inf, feature->name,
            kiln_set_read_name(&sets->list[s], read->first_bad, name, sizeof(name)));
    }
}

/* In rows and vectors NaN stands for a missing value; sets *any if there is one. */
static void check_missing(KilnCheckedSets *sets, size_t f, bool *any)
{
    for (size_t s = 0; s < sets->n; s++) {
        const int64_t n = sets->list[s].features[f].nan;

        *any |= n > 0;
        if (n > 0)
            kiln_data_report_add(sets->report, KILN_CHECK_NOTE, "missing numbers", n,
                                 "trees read them, networks do not",
                                 "%lld of %lld samples of %s lack numbers (NaN)", (long long)n,
                                 (long long)sets->list[s].looked, sets->list[s].name);
    }
}

static void check_flat(KilnCheckedSets *sets, size_t f)
{
    bool any = false;
    char name[512];

    for (size_t s = 0; s < sets->n; s++) {
        const KilnFeatureRead *read = &sets->list[s].features[f];

        if (read->flat == 0)
            continue;
        any = true;
        kiln_data_report_add(
            sets->report, KILN_CHECK_WARNING, "images of one colour", read->flat, "look at them",
            "%lld of %lld images of %s have nothing on them, such as %s", (long long)read->flat,
            (long long)sets->list[s].looked, sets->list[s].name,
            kiln_set_read_name(&sets->list[s], read->first_flat, name, sizeof(name)));
    }
    if (!any)
        kiln_data_report_add(sets->report, KILN_CHECK_PASSED, "images of one colour", 0, NULL,
                             "all images have something on them");
}

/* The length that a share of the samples does not exceed. */
static int64_t quantile(const KilnFeature *feature, const KilnFeatureRead *read, int64_t n,
                        double share)
{
    int64_t seen = 0, length = 0;

    for (; read->lengths != NULL && length <= feature->shape.dim[0]; length++) {
        seen += read->lengths[length];
        if ((double)seen >= share * (double)n)
            break;
    }
    return length;
}

/* Features of words, their tags and so on have the same lengths, which are said once. */
static bool said_before(const KilnSetRead *set, size_t f)
{
    for (size_t k = 0; k < f; k++)
        if (set->features[k].longest > 0 && set->features[k].total == set->features[f].total)
            return true;
    return false;
}

/* Whether so many samples have the greatest length possible, compared with those a little shorter,
 * that they must have been cut. */
static bool piles_up(const KilnFeature *feature, const KilnFeatureRead *read, int64_t n)
{
    const int64_t most = feature->shape.dim[0];

    return read->at_most * 50 >= n && read->at_most > 1 && read->shortest < read->longest &&
           (read->lengths == NULL || read->at_most > 3 * read->lengths[most - 1]);
}

static void check_lengths(KilnCheckedSets *sets, size_t f)
{
    const KilnFeature *feature = &sets->check->spec->features[f];

    for (size_t s = 0; s < sets->n; s++) {
        const KilnSetRead *set = &sets->list[s];
        const KilnFeatureRead *read = &set->features[f];
        const int64_t n = set->looked - set->broken;
        char name[512];

        if (read->longest == 0 || n == 0 || said_before(set, f))
            continue;
        if (read->shortest < read->longest)
            kiln_data_report_add(sets->report, KILN_CHECK_NOTE, "lengths", 0, NULL,
                                 "%s of %s: %lld to %lld, %.1f on average, 95 %% up to %lld",
                                 feature->name, set->name, (long long)read->shortest,
                                 (long long)read->longest, (double)read->total / (double)n,
                                 (long long)quantile(feature, read, n, 0.95));
        if (piles_up(feature, read, n))
            kiln_data_report_add(
                sets->report, KILN_CHECK_WARNING, "truncated samples", read->at_most,
                "datamodule.max_length, where there is such an option, keeps more",
                "%lld of %lld samples of %s have the greatest length possible (%lld), "
                "so they are probably cut",
                (long long)read->at_most, (long long)n, set->name,
                (long long)feature->shape.dim[0]);
        if (read->empty > 0)
            kiln_data_report_add(sets->report, KILN_CHECK_WARNING, "empty samples", read->empty,
                                 NULL, "%lld samples of %s have nothing in \"%s\", such as %s",
                                 (long long)read->empty, set->name, feature->name,
                                 kiln_set_read_name(set, read->first_empty, name, sizeof(name)));
    }
}

/* Columns of rows and vectors that have one value in training. */
static void check_constants(KilnCheckedSets *sets, size_t f)
{
    enum { LISTED = 6 };
    const KilnFeature *feature = &sets->check->spec->features[f];
    const KilnFeatureRead *read = &sets->list[0].features[f];
    KilnText names = { 0 };
    int64_t n = 0;

    for (int64_t c = 0; c < feature->shape.dim[0]; c++) {
        if (read->low[c] < read->high[c])
            continue;
        if (n < LISTED && feature->columns != NULL)
            kiln_text_printf(&names, "%s%s", n > 0 ? ", " : "", feature->columns[c].name);
        else if (n < LISTED)
            kiln_text_printf(&names, "%s%s[%lld]", n > 0 ? ", " : "", feature->name, (long long)c);
        n++;
    }
    if (n > 0)
        kiln_data_report_add(sets->report, KILN_CHECK_NOTE, "constant columns", n,
                             "they can't help; leave them out",
                             "%lld of %lld columns of \"%s\" have one value in training: %s%s",
                             (long long)n, (long long)feature->shape.dim[0], feature->name,
                             names.data != NULL ? names.data : "", n > LISTED ? ", ..." : "");
    else
        kiln_data_report_add(sets->report, KILN_CHECK_PASSED, "constant columns", 0, NULL,
                             "every column of \"%s\" varies", feature->name);
    kiln_text_release(&names);
}

/* Tokens that the vocabulary lacks. */
static void check_unknown(KilnCheckedSets *sets, size_t f)
{
    KilnInstance *datamodule = sets->check->datamodule;
    const KilnDataModuleOps *ops = kiln_instance_component(datamodule)->ops.datamodule;
    const KilnInstance *tokenizer = ops->tokenizer != NULL ? ops->tokenizer(datamodule) : NULL;
    const int64_t unknown = tokenizer != NULL ? kiln_tokenizer_special(tokenizer, KILN_TOKEN_UNK)
                                              : -1;
    bool any = false, looked = false;

    for (size_t s = 0; s < sets->n; s++) {
        const KilnFeatureRead *read = &sets->list[s].features[f];
        int64_t all = 0;

        for (int64_t id = 0; id < read->n_ids; id++)
            all += read->ids[id];
        if (unknown < 0 || unknown >= read->n_ids || all == 0)
            continue;
        looked = true;
        const double share = (double)read->ids[unknown] / (double)all;
        if (share < 0.1)
            continue;
        any = true;
        kiln_data_report_add(sets->report, KILN_CHECK_WARNING, "unknown tokens", read->ids[unknown],
                             "a tokenizer of pieces (bpe, unigram, characters) knows all words",
                             "%.0f %% of the tokens of %s are not in the vocabulary", 100.0 * share,
                             sets->list[s].name);
    }
    if (looked && !any)
        kiln_data_report_add(sets->report, KILN_CHECK_PASSED, "unknown tokens", 0, NULL,
                             "nine of ten tokens or more are in the vocabulary, in all splits");
}

KilnStatus kiln_check_values(KilnCheckedSets *sets, KilnError *err)
{
    const KilnDataSpec *spec = sets->check->spec;
    bool any = false, numbers = false;

    (void)err;
    check_broken(sets);
    for (size_t f = 0; f < spec->n_features; f++) {
        const KilnFeature *feature = &spec->features[f];

        if (feature->content == KILN_TEXT)
            continue;
        if (feature->dtype == KILN_F32) {
            numbers = true;
            check_numbers(sets, f, &any);
        }
        if (feature->content == KILN_IMAGE)
            check_flat(sets, f);
        if (feature->varies)
            check_lengths(sets, f);
        if (sets->list[0].features[f].low != NULL && sets->list[0].looked > 1) {
            check_missing(sets, f, &any);
            if (sets->list[0].looked == sets->list[0].dataset.count)
                check_constants(sets, f);
        }
        if (strcmp(feature->name, "tokens") == 0)
            check_unknown(sets, f);
    }
    if (numbers && !any)
        kiln_data_report_add(sets->report, KILN_CHECK_PASSED, "NaN and infinity", 0, NULL,
                             "all numbers are finite");
    return KILN_OK;
}

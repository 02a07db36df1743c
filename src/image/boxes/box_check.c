/* Looks for mistakes in images with boxes, for `kiln check-data`. */
#include <stdlib.h>
#include <string.h>

#include "data/findings.h"
#include "kiln/images/box_data.h"
#include "kiln/metric.h"

enum { FEW = 10, LISTED = 6, CLASS = 4 /* column of a box */ };

typedef struct BoxCheck {
    const KilnBoxState *state;
    const KilnBoxSet *set; /* of this split */
    const char *split;
    int64_t *counts[KILN_SPLIT_COUNT]; /* boxes of each class */
    KilnFindings findings;
} BoxCheck;

/* ---- Boxes ----------------------------------------------------------------------------------- */

static void check_number(BoxCheck *check)
{
    const KilnBoxSet *set = check->set;
    int64_t empty = 0, first = 0;

    for (int64_t i = set->count - 1; i >= 0; i--)
        if (set->starts[i + 1] == set->starts[i]) {
            empty++;
            first = i;
        }
    kiln_text_printf(&check->findings.text, "%s: %lld boxes on %lld images, at most %lld on one",
                     check->split, (long long)set->starts[set->count], (long long)set->count,
                     (long long)set->most);
    if (empty > 0)
        kiln_text_printf(&check->findings.text,
                         "; %lld images have none and count as background, such as %s",
                         (long long)empty, set->paths[first]);
    kiln_findings_add(
        &check->findings, empty * 2 > set->count ? KILN_CHECK_WARNING : KILN_CHECK_NOTE, "boxes",
        set->count,
        empty * 2 > set->count ? "is there a text or an annotation for each image?" : NULL);
}

static void check_cut(BoxCheck *check)
{
    const KilnBoxSet *set = check->set;

    if (set->cut_boxes > 0)
        kiln_text_printf(&check->findings.text,
                         "%lld boxes of %s reach out of their images, such as %s",
                         (long long)set->cut_boxes, check->split, set->cut_example);
    else
        kiln_text_printf(&check->findings.text, "all boxes of %s are inside their images",
                         check->split);
    kiln_findings_add(
        &check->findings, KILN_CHECK_WARNING, "boxes outside of images", set->cut_boxes,
        "they are cut at the image; look whether they fit what they are drawn around");
}

static int compare_rows(const void *a, const void *b)
{
    const float *left = a, *right = b;

    for (int i = 0; i <= CLASS; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

/* How many boxes of an image are there before, with the same class. */
static int64_t count_copies(const KilnBoxSet *set, int64_t image, float *room)
{
    const int64_t first = set->starts[image], n = set->starts[image + 1] - first;
    const size_t row = KILN_TRUTH_COLUMNS * sizeof(float);
    int64_t copies = 0;

    memcpy(room, set->boxes + first * KILN_TRUTH_COLUMNS, (size_t)n * row);
    qsort(room, (size_t)n, row, compare_rows);
    for (int64_t i = 1; i < n; i++)
        copies += compare_rows(room + (i - 1) * KILN_TRUTH_COLUMNS,
                               room + i * KILN_TRUTH_COLUMNS) == 0;
    return copies;
}

static KilnStatus check_copies(BoxCheck *check, KilnError *err)
{
    const KilnBoxSet *set = check->set;
    const size_t bytes = (size_t)(set->most + 1) * KILN_TRUTH_COLUMNS * sizeof(float);
    float *room = malloc(bytes);
    int64_t copies = set->copies;
    const char *example = set->copy_example;

    if (room == NULL)
        return kiln_error_nomem(err, bytes);
    for (int64_t i = 0; i < set->count; i++) {
        const int64_t more = count_copies(set, i, room);

        if (more > 0 && copies == 0)
            example = set->paths[i];
        copies += more;
    }
    free(room);
    if (copies > 0)
        kiln_text_printf(&check->findings.text,
                         "%lld boxes of %s are there twice, such as one of %s", (long long)copies,
                         check->split, example);
    else
        kiln_text_printf(&check->findings.text, "no box of %s is there twice", check->split);
    kiln_findings_add(&check->findings, KILN_CHECK_WARNING, "boxes that are there twice", copies,
                      "metrics count the second one as missed; remove it");
    return KILN_OK;
}

/* ---- Classes --------------------------------------------------------------------------------- */

static KilnStatus count_classes(BoxCheck *check, KilnSplit split, KilnError *err)
{
    const KilnBoxSet *set = &check->state->sets[split];
    int64_t *counts = calloc((size_t)check->state->n_classes + 1, sizeof(*counts));

    if (counts == NULL)
        return kiln_error_nomem(err, (size_t)check->state->n_classes * sizeof(*counts));
    for (int64_t i = 0; set->count > 0 && i < set->starts[set->count]; i++)
        counts[(int64_t)set->boxes[i * KILN_TRUTH_COLUMNS + CLASS]]++;
    check->counts[split] = counts;
    return KILN_OK;
}

/* Append a class and its boxes, if there are not many yet. */
static void put_class(KilnText *text, const char *name, int64_t count, int64_t n)
{
    if (n < LISTED)
        kiln_text_printf(text, "%s%s (%lld)", n > 0 ? ", " : "", name, (long long)count);
    else if (n == LISTED)
        kiln_text_append(text, ", ...");
}

static void check_few(BoxCheck *check)
{
    const int64_t *train = check->counts[KILN_TRAIN], n = check->state->n_classes;
    KilnText names = { 0 };
    int64_t few = 0;

    for (int64_t i = 0; i < n; i++)
        if (train[i] < FEW)
            put_class(&names, check->state->class_names[i], train[i], few++);
    if (few > 0)
        kiln_text_printf(
            &check->findings.text, "%lld of %lld classes have fewer than %d training boxes: %s",
            (long long)few, (long long)n, (int)FEW, names.data != NULL ? names.data : "");
    else
        kiln_text_printf(&check->findings.text,
                         "each of %lld classes has at least %d training boxes", (long long)n,
                         (int)FEW);
    kiln_text_release(&names);
    kiln_findings_add(&check->findings, KILN_CHECK_WARNING, "boxes of each class", few,
                      "get more of them, or merge classes; a class without any is never found");
}

static void check_unseen(BoxCheck *check, KilnSplit split)
{
    const int64_t *train = check->counts[KILN_TRAIN], *counts = check->counts[split];
    KilnText names = { 0 };
    int64_t unseen = 0, listed = 0;

    for (int64_t i = 0; i < check->state->n_classes; i++)
        if (counts[i] > 0 && train[i] == 0) {
            put_class(&names, check->state->class_names[i], counts[i], listed++);
            unseen += counts[i];
        }
    if (unseen > 0)
        kiln_text_printf(&check->findings.text,
                         "%lld boxes of %s have classes that no training box has: %s",
                         (long long)unseen, check->split, names.data != NULL ? names.data : "");
    else
        kiln_text_printf(&check->findings.text, "training has boxes of every class of %s",
                         check->split);
    kiln_text_release(&names);
    kiln_findings_add(&check->findings, KILN_CHECK_ERROR, "classes unknown to training", unseen,
                      "they can't be learned; add training images with them, or leave them out");
}

/* ---- All ------------------------------------------------------------------------------------- */

static void get_image(void *ctx, int64_t i, KilnRawValue *ret)
{
    char *path = ((const KilnBoxSet *)ctx)->paths[i];

    *ret = (KilnRawValue) { .name = path, .type = KILN_RAW_PATH, .text = path };
}

static KilnStatus check_split(BoxCheck *check, KilnSplit split, const KilnPoll *poll,
                              KilnError *err)
{
    KilnBoxSet *set = (KilnBoxSet *)&check->state->sets[split];
    const KilnImageSource images = { .count = set->count, .ctx = set, .get = get_image };
    KilnStatus status = count_classes(check, split, err);

    if (status < 0 || set->count == 0)
        return status;
    check->set = set;
    check->split = kiln_split_name(split);
    check_number(check);
    check_cut(check);
    status = check_copies(check, err);
    if (status >= 0 && split == KILN_TRAIN)
        check_few(check);
    else if (status >= 0)
        check_unseen(check, split);
    return status >= 0 ? kiln_image_source_check(&images, check->split, poll, check->findings.add,
                                                 check->findings.ctx, err)
                       : status;
}

KilnStatus kiln_box_check(KilnInstance *self, const KilnPoll *poll,
                          void (*add)(void *ctx, const KilnDataFinding *finding), void *ctx,
                          KilnError *err)
{
    BoxCheck check = { .state = kiln_state(self), .findings = { add, ctx, { 0 } } };
    KilnStatus status = KILN_OK;

    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++)
        status = check_split(&check, (KilnSplit)split, poll, err);
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        free(check.counts[split]);
    if (status >= 0 && check.findings.text.failed)
        status = kiln_error_nomem(err, 0);
    kiln_text_release(&check.findings.text);
    return status;
}

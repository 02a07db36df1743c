/* Looks for mistakes in lists of text lines, for `kiln check-data`. */
#include <stdlib.h>

#include "data/findings.h"
#include "kiln/images/line_images.h"

enum {
    FEW = 10, /* training lines with a character */
    LISTED = 20,
    STEP = 4 /* columns of an image that a network such as crnn reads as one */
};

typedef struct LineCheck {
    const KilnLineImages *lines;
    const KilnLineTexts *texts; /* of this split */
    const char *split;
    int64_t *counts[KILN_SPLIT_COUNT]; /* how often each character occurs */
    int64_t longest, tight, first_tight;
    KilnFindings findings;
} LineCheck;

static KilnStatus count(LineCheck *check, KilnSplit split, const KilnPoll *poll, KilnError *err)
{
    const KilnLineTexts *texts = check->texts;
    int64_t *counts = calloc(check->lines->characters.n + 1, sizeof(*counts));
    KilnStatus status = KILN_OK;

    if (counts == NULL)
        return kiln_error_nomem(err, check->lines->characters.n * sizeof(*counts));
    check->counts[split] = counts;
    check->longest = check->tight = 0;
    for (int64_t i = 0; i < texts->count && status >= 0; i++) {
        int64_t width = 0, n = 0;
        KilnString rest = texts->get(texts->ctx, i, &width), character;

        status = kiln_poll_check(poll, "reading texts", i, texts->count, err);
        for (; kiln_line_images_next(&rest, &character); n++) {
            const int64_t id = kiln_name_list_find(&check->lines->characters, character);

            if (id >= 0)
                counts[id]++;
        }
        check->longest = n > check->longest ? n : check->longest;
        if (n * STEP > width && check->tight++ == 0)
            check->first_tight = i;
    }
    return status;
}

static void check_length(LineCheck *check)
{
    const KilnLineTexts *texts = check->texts;
    const long long rows = check->lines->height;

    if (check->tight > 0)
        kiln_text_printf(&check->findings.text,
                         "%lld of %lld lines of %s have more characters than a quarter of their "
                         "width in pixels, such as %s",
                         (long long)check->tight, (long long)texts->count, check->split,
                         texts->name(texts->ctx, check->first_tight));
    else
        kiln_text_printf(&check->findings.text,
                         "all lines of %s are wide enough for their texts of up to %lld characters",
                         check->split, (long long)check->longest);
    KilnText advice = { 0 };
    kiln_text_printf(&advice,
                     "crnn can't read them: it gives a character for each %d columns at most; "
                     "datamodule.height=%lld makes lines wider",
                     (int)STEP, 2 * rows);
    kiln_findings_add(&check->findings, KILN_CHECK_WARNING, "long texts", check->tight,
                      advice.data);
    check->findings.text.failed = check->findings.text.failed || advice.failed;
    kiln_text_release(&advice);
}

/* Characters, each in quotes, as far as there are not many yet. */
static void put_character(LineCheck *check, KilnText *text, size_t id, int64_t n)
{
    if (n < LISTED)
        kiln_text_printf(text, "%s\"%s\"", n > 0 ? " " : "", check->lines->characters.names[id]);
    else if (n == LISTED)
        kiln_text_append(text, " ...");
}

static void check_few(LineCheck *check)
{
    const size_t n = check->lines->characters.n;
    KilnText names = { 0 };
    int64_t few = 0;

    for (size_t id = 0; id < n; id++)
        if (check->counts[KILN_TRAIN][id] < FEW)
            put_character(check, &names, id, few++);
    if (few > 0)
        kiln_text_printf(&check->findings.text,
                         "%lld of %zu characters occur fewer than %d times in training: %s",
                         (long long)few, n, (int)FEW, names.data != NULL ? names.data : "");
    else
        kiln_text_printf(&check->findings.text,
                         "each of %zu characters occurs at least %d times in training", n,
                         (int)FEW);
    kiln_text_release(&names);
    kiln_findings_add(&check->findings, KILN_CHECK_WARNING, "characters", few,
                      "they are hardly learned: get more lines with them; are they typing errors?");
}

static void check_unseen(LineCheck *check, KilnSplit split)
{
    KilnText names = { 0 };
    int64_t unseen = 0;

    for (size_t id = 0; id < check->lines->characters.n; id++)
        if (check->counts[split][id] > 0 && check->counts[KILN_TRAIN][id] == 0)
            put_character(check, &names, id, unseen++);
    if (unseen > 0)
        kiln_text_printf(&check->findings.text, "%lld characters of %s are in no training line: %s",
                         (long long)unseen, check->split, names.data != NULL ? names.data : "");
    else
        kiln_text_printf(&check->findings.text, "training lines have every character of %s",
                         check->split);
    kiln_text_release(&names);
    kiln_findings_add(&check->findings, KILN_CHECK_ERROR, "characters unknown to training", unseen,
                      "they can't be learned; add training lines with them, or leave them out");
}

KilnStatus kiln_line_images_check_data(const KilnLineImages *lines,
                                       const KilnLineTexts texts[KILN_SPLIT_COUNT],
                                       const KilnPoll *poll,
                                       void (*add)(void *ctx, const KilnDataFinding *finding),
                                       void *ctx, KilnError *err)
{
    LineCheck check = { .lines = lines, .findings = { add, ctx, { 0 } } };
    KilnStatus status = KILN_OK;

    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++) {
        check.texts = &texts[split];
        check.split = kiln_split_name((KilnSplit)split);
        status = count(&check, (KilnSplit)split, poll, err);
        if (status < 0 || texts[split].count == 0)
            continue;
        check_length(&check);
        if (split == KILN_TRAIN)
            check_few(&check);
        else
            check_unseen(&check, (KilnSplit)split);
    }
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        free(check.counts[split]);
    if (status >= 0 && check.findings.text.failed)
        status = kiln_error_nomem(err, 0);
    kiln_text_release(&check.findings.text);
    return status;
}

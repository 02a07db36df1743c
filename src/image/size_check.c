/* Checks the sizes and colours of image files, for `kiln check-data`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/findings.h"
#include "kiln/image.h"

enum { LOOKED = 5000 };

/* One image. */
typedef struct Size {
    int64_t index, height, width;
    bool grey;
} Size;

typedef struct SizeCheck {
    const KilnImageSource *source;
    const char *what;
    KilnFindings findings;
    Size *sizes; /* in the order of their area */
    int64_t n, n_grey, n_bad;
    char bad[1024];
} SizeCheck;

static const char *name_of(const SizeCheck *check, int64_t i)
{
    KilnRawValue value = { 0 };

    check->source->get(check->source->ctx, i, &value);
    return value.type == KILN_RAW_PATH ? value.text : value.name != NULL ? value.name : "an image";
}

static int compare(const void *a, const void *b)
{
    const Size *x = a, *y = b;
    const double p = (double)x->height * (double)x->width, q = (double)y->height * (double)y->width;

    return p != q ? (p < q ? -1 : 1) : x->index < y->index ? -1 : x->index > y->index;
}

static KilnStatus read_sizes(SizeCheck *check, const KilnPoll *poll, KilnError *err)
{
    const KilnImageSource *source = check->source;
    const int64_t every = source->count / LOOKED + 1;

    check->sizes = malloc((LOOKED + 2) * sizeof(*check->sizes));
    if (check->sizes == NULL)
        return kiln_error_nomem(err, LOOKED * sizeof(*check->sizes));
    for (int64_t i = 0; i < source->count; i += every) {
        KilnRawValue value = { 0 };
        KilnError why = { 0 };
        int64_t size[3];

        if (kiln_poll_check(poll, "reading sizes of images", i, source->count, err) < 0)
            return KILN_E_INTERRUPTED;
        source->get(source->ctx, i, &value);
        const KilnStatus status = value.type == KILN_RAW_PATH
                                      ? kiln_image_size(value.text, 0, size, &why)
                                      : kiln_image_size_bytes(value.data, value.bytes, value.name,
                                                              0, size, &why);
        if (status < 0) {
            if (check->n_bad++ == 0)
                snprintf(check->bad, sizeof(check->bad), "%.*s", 1000, why.text);
            continue;
        }
        check->sizes[check->n++] = (Size) { i, size[0], size[1], size[2] == 1 };
        check->n_grey += size[2] == 1;
    }
    qsort(check->sizes, (size_t)check->n, sizeof(*check->sizes), compare);
    return KILN_OK;
}

static void check_bad(SizeCheck *check)
{
    if (check->n_bad == 0)
        return;
    kiln_text_printf(&check->findings.text, "%lld of %lld files of %s: %s", (long long)check->n_bad,
                     (long long)(check->n_bad + check->n), check->what, check->bad);
    kiln_findings_add(&check->findings, KILN_CHECK_ERROR, "image files", check->n_bad,
                      "datamodule.on_error=skip leaves them "
                      "out");
}

static void check_sizes(SizeCheck *check)
{
    const Size *least = &check->sizes[0], *middle = &check->sizes[check->n / 2];
    const Size *most = &check->sizes[check->n - 1];
    int64_t tiny = 0;

    while (tiny < check->n && check->sizes[tiny].height * 4 < middle->height &&
           check->sizes[tiny].width * 4 < middle->width)
        tiny++;
    kiln_text_printf(&check->findings.text,
                     "%s: %lldx%lld to %lldx%lld pixels (height x width), half of them "
                     "up to %lldx%lld",
                     check->what, (long long)least->height, (long long)least->width,
                     (long long)most->height, (long long)most->width, (long long)middle->height,
                     (long long)middle->width);
    kiln_findings_add(&check->findings, KILN_CHECK_NOTE, "sizes of images", check->n, NULL);
    if (tiny == 0)
        return;
    kiln_text_printf(&check->findings.text,
                     "%lld images of %s are less than a quarter as high and wide as "
                     "most, such as %s",
                     (long long)tiny, check->what, name_of(check, least->index));
    kiln_findings_add(&check->findings, KILN_CHECK_WARNING, "sizes of images", tiny,
                      "look at them");
}

/* Whether proportions differ much from those of the middle image. */
static void check_proportions(SizeCheck *check)
{
    const Size *middle = &check->sizes[check->n / 2];
    const double usual = (double)middle->width / (double)middle->height;
    int64_t n = 0, first = 0;

    for (int64_t i = 0; i < check->n; i++) {
        const double ratio = (double)check->sizes[i].width / (double)check->sizes[i].height / usual;

        if (ratio > 0.4 && ratio < 2.5)
            continue;
        if (n++ == 0)
            first = check->sizes[i].index;
    }
    if (n > 0)
        kiln_text_printf(&check->findings.text,
                         "%lld of %lld images of %s have other proportions than most, "
                         "such as %s",
                         (long long)n, (long long)check->n, check->what, name_of(check, first));
    else
        kiln_text_printf(&check->findings.text, "images of %s have similar proportions",
                         check->what);
    kiln_findings_add(
        &check->findings, n > 0 ? KILN_CHECK_WARNING : KILN_CHECK_PASSED, "proportions of images",
        n,
        n > 0 ? "scaling to one size distorts them; a crop (docs/images.md), or of boxes "
                "datamodule.letterbox, does not"
              : NULL);
}

static void check_colours(SizeCheck *check)
{
    const bool mixed = check->n_grey > 0 && check->n_grey < check->n;

    if (mixed)
        kiln_text_printf(&check->findings.text,
                         "%lld of %lld images of %s are grey, the others have colours",
                         (long long)check->n_grey, (long long)check->n, check->what);
    else
        kiln_text_printf(&check->findings.text, "all images of %s are %s", check->what,
                         check->n_grey > 0 ? "grey" : "in colour");
    kiln_findings_add(&check->findings, mixed ? KILN_CHECK_WARNING : KILN_CHECK_PASSED,
                      "grey and colour", mixed ? check->n_grey : 0,
                      mixed ? "if all images of a class are grey, that gives the class away; "
                              "datamodule.channels=1 makes all grey"
                            : NULL);
}

KilnStatus kiln_image_source_check(const KilnImageSource *source, const char *what,
                                   const KilnPoll *poll,
                                   void (*add)(void *ctx, const KilnDataFinding *finding),
                                   void *ctx, KilnError *err)
{
    SizeCheck check = { .source = source, .what = what, .findings = { add, ctx, { 0 } } };
    KilnStatus status = read_sizes(&check, poll, err);

    if (status >= 0)
        check_bad(&check);
    if (status >= 0 && check.n > 0) {
        check_sizes(&check);
        check_proportions(&check);
        check_colours(&check);
    }
    kiln_text_release(&check.findings.text);
    free(check.sizes);
    return status;
}

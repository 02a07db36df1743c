/* Statistics of the training images, for transforms that need them: computed, saved, read. */
#include "image/image_reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/call.h"
#include "base/system/file.h"
#include "base/text.h"

static const char file_name[] = "image_statistics.txt";

static bool needs(KilnInstance *transform)
{
    const KilnTransformOps *ops = kiln_instance_component(transform)->ops.transform;

    return ops->needs_statistics != NULL && ops->needs_statistics(transform);
}

/* Give them to the transform, and keep them. */
static KilnStatus give(KilnImageReader *reader, const KilnImageStatistics *statistics,
                       KilnError *err)
{
    KilnInstance *transform = reader->form.transforms[statistics->transform];
    const KilnTransformOps *ops = kiln_instance_component(transform)->ops.transform;

    if (reader->n_statistics == KILN_IMAGE_MAX_STATISTICS)
        return kiln_error_set(err, KILN_E_RANGE, "more than %d transforms need statistics",
                              KILN_IMAGE_MAX_STATISTICS);
    reader->statistics[reader->n_statistics++] = *statistics;
    return KILN_CALLED(transform, "set_statistics",
                       ops->set_statistics(transform, statistics->mean, statistics->std,
                                           reader->form.channels, err),
                       err);
}

/* ---- Computing ------------------------------------------------------------------------------- */

typedef struct Sums {
    double sum[4], squares[4], pixels;
} Sums;

static void add_image(Sums *sums, const KilnImage *image)
{
    const int64_t pixels = image->height * image->width, channels = image->channels;

    for (int64_t c = 0; c < channels && c < 4; c++)
        for (int64_t i = 0; i < pixels; i++) {
            const double value = (double)image->data[i * channels + c];

            sums->sum[c] += value;
            sums->squares[c] += value * value;
        }
    sums->pixels += (double)pixels;
}

/* Of the images as they come to transform `number`. */
static KilnStatus compute(const KilnImageReader *reader, size_t number,
                          const KilnImageSource *source, const int32_t *order, int64_t n,
                          const KilnPoll *poll, KilnImageStatistics *ret, KilnError *err)
{
    enum { LOOKED_AT = 10000 };
    KilnImageForm form = reader->form;
    KilnImageScratch scratch = { 0 };
    KilnStatus status = KILN_OK;
    Sums sums = { 0 };

    form.n_transforms = number;
    for (int64_t k = 0; k < n && status >= 0; k += n / (LOOKED_AT + 1) + 1) {
        KilnRawValue raw = { 0 };
        KilnRng unused;

        status = kiln_poll_check(poll, "computing statistics of images", k, n, err);
        if (status < 0)
            break;
        source->get(source->ctx, order != NULL ? order[k] : k, &raw);
        kiln_rng_init(&unused, 0, KILN_RNG_AUGMENT, 0, (uint64_t)k);
        const KilnImageFile file = { .path = raw.type == KILN_RAW_PATH ? raw.text : raw.name,
                                     .raw = &raw };
        status = kiln_image_prepare(&form, &file, &scratch, &unused, err);
        if (status >= 0)
            add_image(&sums, &scratch.image);
        status = status == KILN_E_SKIP ? KILN_OK : status;
    }
    kiln_image_release(&scratch.image);
    kiln_image_release(&scratch.spare);
    if (status >= 0 && sums.pixels == 0.0)
        status = kiln_error_set(err, KILN_E_FORMAT, "no image to compute statistics of");
    *ret = (KilnImageStatistics) { .transform = number };
    for (int c = 0; c < 4 && status >= 0; c++) {
        ret->mean[c] = sums.sum[c] / sums.pixels;
        ret->std[c] = sqrt(fmax(sums.squares[c] / sums.pixels - ret->mean[c] * ret->mean[c], 0.0));
    }
    return status;
}

KilnStatus kiln_image_reader_fit(KilnImageReader *reader, const KilnImageSource *source,
                                 const int32_t *order, int64_t n, const KilnPoll *poll,
                                 KilnError *err)
{
    KilnStatus status = KILN_OK;

    reader->n_statistics = 0;
    for (size_t i = 0; i < reader->form.n_transforms && status >= 0; i++) {
        KilnImageStatistics found;

        if (!needs(reader->form.transforms[i]))
            continue;
        status = compute(reader, i, source, order, n, poll, &found, err);
        if (status >= 0)
            status = give(reader, &found, err);
    }
    return status;
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* A line for each transform: its number, the means, the deviations. */
KilnStatus kiln_image_reader_save(const KilnImageReader *reader, const char *dir, KilnError *err)
{
    char *path = kiln_path_join(dir, file_name);
    KilnText text = { 0 };
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < reader->n_statistics; i++) {
        const KilnImageStatistics *one = &reader->statistics[i];

        kiln_text_printf(&text, "%zu", one->transform);
        for (int64_t c = 0; c < 2 * reader->form.channels; c++)
            kiln_text_printf(&text, " %.17g",
                             c < reader->form.channels ? one->mean[c]
                                                       : one->std[c - reader->form.channels]);
        kiln_text_char(&text, '\n');
    }
    if (path == NULL || text.failed)
        status = kiln_error_nomem(err, text.length);
    else if (reader->n_statistics > 0)
        status = kiln_file_write(path, text.data, text.length, err);
    kiln_text_release(&text);
    free(path);
    return status;
}

/* The line of transform `number`, from *text on. */
static bool read_line(char **text, size_t number, int64_t channels, KilnImageStatistics *ret)
{
    char *end = *text;
    const bool right = strtoull(*text, &end, 10) == number && end != *text;

    *ret = (KilnImageStatistics) { .transform = number };
    for (int64_t c = 0; c < 2 * channels && right; c++) {
        const char *before = end;
        const double value = strtod(before, &end);

        if (end == before || !isfinite(value))
            return false;
        *(c < channels ? &ret->mean[c] : &ret->std[c - channels]) = value;
    }
    *text = end;
    return right;
}

KilnStatus kiln_image_reader_open(KilnImageReader *reader, const char *dir, KilnError *err)
{
    char *path = kiln_path_join(dir, file_name), *data = NULL, *rest = NULL;
    size_t size = 0;
    KilnStatus status = path != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(file_name));

    reader->n_statistics = 0;
    for (size_t i = 0; i < reader->form.n_transforms && status >= 0; i++) {
        KilnImageStatistics found;

        if (!needs(reader->form.transforms[i]))
            continue;
        if (data == NULL) {
            status = kiln_file_read(path, 1 << 16, &data, &size, err);
            rest = data;
        }
        if (status >= 0 && !read_line(&rest, i, reader->form.channels, &found))
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: damaged: expected the means and deviations of transform "
                                    "%zu",
                                    path, i);
        if (status >= 0)
            status = give(reader, &found, err);
    }
    free(data);
    free(path);
    return status;
}

/* Which size the samples of an image reader have, and how much memory reading one needs. */
#include "base/call.h"
#include "image/image_reader.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- The shape of a sample -------------------------------------------------------------- */

/* What the transforms make of an image of that size; -1: any. */
static KilnStatus transformed_shape(const KilnImageForm *form, int64_t size[3], KilnError *err)
{
    for (size_t i = 0; i < form->n_transforms; i++) {
        KilnInstance *transform = form->transforms[i];
        const KilnTransformOps *ops = kiln_instance_component(transform)->ops.transform;
        KilnStatus status = ops->shape != NULL ? KILN_CALLED(transform, "shape",
                                                             ops->shape(transform, size, err), err)
                                               : KILN_OK;

        if (status < 0)
            return status;
    }
    return KILN_OK;
}

static const char *name_of(const KilnRawValue *image)
{
    return image->type == KILN_RAW_PATH ? image->text : image->name;
}

static KilnStatus size_of(const KilnRawValue *image, const KilnImageForm *form, int64_t ret[3],
                          KilnError *err)
{
    return image->type == KILN_RAW_PATH
               ? kiln_image_size(image->text, form->max_pixels, ret, err)
               : kiln_image_size_bytes(image->data, image->bytes, image->name, form->max_pixels,
                                       ret, err);
}

/* All images have the size of *first, which goes to `size` (NULL: there was none yet). Files that
 * can't be read are left for read when they are to be skipped. */
static KilnStatus same_size(const KilnImageForm *form, const KilnImageSource *images,
                            const KilnPoll *poll, char **first, int64_t size[3], KilnError *err)
{
    for (int64_t k = 0; k < images->count; k++) {
        KilnRawValue image = { 0 };
        int64_t found[3];

        if (kiln_poll_check(poll, "reading the sizes of images", k, images->count, err) < 0)
            return KILN_E_INTERRUPTED;
        images->get(images->ctx, k, &image);
        KilnStatus status = size_of(&image, form, found, err);

        if (status < 0 && form->skips)
            continue;
        if (status < 0)
            return status;
        if (*first == NULL) {
            *first = strdup(name_of(&image));
            if (*first == NULL)
                return kiln_error_nomem(err, strlen(name_of(&image)));
            size[0] = found[0];
            size[1] = found[1];
        }
        if (found[0] != size[0] || found[1] != size[1])
            return kiln_error_set(
                err, KILN_E_SHAPE,
                "%s is %lld x %lld but %s is %lld x %lld: without datamodule.size all images "
                "must have one size; try datamodule.size=[%lld,%lld]",
                name_of(&image), (long long)found[0], (long long)found[1], *first,
                (long long)size[0], (long long)size[1], (long long)size[0], (long long)size[1]);
    }
    return KILN_OK;
}

static KilnStatus common_size(const KilnImageForm *form, const KilnImageSource *sources, size_t n,
                              const KilnPoll *poll, int64_t size[3], KilnError *err)
{
    char *first = NULL;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < n && status >= 0; i++)
        status = same_size(form, &sources[i], poll, &first, size, err);
    if (status >= 0 && first == NULL) {
        KilnRawValue image = { 0 };

        sources[0].get(sources[0].ctx, 0, &image);
        status = kiln_error_set(err, KILN_E_FORMAT, "%s and all other images can't be read",
                                name_of(&image));
    }
    free(first);
    return status;
}

/* Where the transforms lead to one size from any, the first file still shows
 * whether they suit the data at all. */
static KilnStatus check_first(const KilnImageForm *form, const KilnImageSource *source,
                              KilnError *err)
{
    KilnRawValue image = { 0 };
    int64_t size[3];

    source->get(source->ctx, 0, &image);
    KilnStatus status = size_of(&image, form, size, err);
    if (status < 0)
        return form->skips ? KILN_OK : status;
    size[2] = form->channels;
    status = transformed_shape(form, size, err);
    if (status < 0)
        kiln_error_prefix(err, "%s: ", name_of(&image));
    return status;
}

KilnStatus kiln_image_reader_shape_of(const KilnImageReader *reader, const KilnImageSource *sources,
                                      size_t n, const KilnPoll *poll, int64_t ret_decoded[3],
                                      int64_t ret_shape[3], KilnError *err)
{
    const KilnImageForm *form = &reader->form;
    const bool scaled = form->height > 0;
    int64_t decoded[3] = { form->height, form->width, form->channels }, shape[3];

    memcpy(shape, decoded, sizeof(shape));
    KilnStatus status = transformed_shape(form, shape, err);
    const bool known = shape[0] > 0 && shape[1] > 0;

    if (status >= 0 && known && !scaled)
        status = check_first(form, &sources[0], err);
    if (status >= 0 && !known) {
        status = common_size(form, sources, n, poll, decoded, err);
        memcpy(shape, decoded, sizeof(shape));
        if (status >= 0)
            status = transformed_shape(form, shape, err);
    }
    if (status < 0)
        return status;
    memcpy(ret_decoded, decoded, sizeof(decoded));
    memcpy(ret_shape, shape, sizeof(shape));
    return KILN_OK;
}

/* ---- Memory ----------------------------------------------------------------------------- */

/* While a file of `bytes` and that size is read: its bytes, its image, a second one for transforms,
 * rows; those of a PNG of few pixels are inflated at once. */
static int64_t bytes_of(const KilnImageForm *form, int64_t bytes, const int64_t size[3])
{
    enum { LIBRARY = 1 << 18, SAMPLES = 4 /* of a pixel */, AT_ONCE = 1 << 24 };
    const int64_t inflated = size[0] * (size[1] * size[2] + 1);
    const int64_t pixels = form->height > 0 ? form->height * form->width : size[0] * size[1];
    const int64_t images = form->n_transforms > 0 ? 2 : 1;

    return bytes + (inflated <= AT_ONCE ? bytes + inflated : 0) +
           images * pixels * form->channels * (int64_t)sizeof(float) + LIBRARY +
           3 * size[1] * SAMPLES * (int64_t)sizeof(float);
}

int64_t kiln_image_reader_memory_of(const KilnImageReader *reader, const KilnImageSource *sources,
                                    size_t n)
{
    enum { LOOKED_AT = 1024 };
    int64_t images = 0, most = 0;

    for (size_t i = 0; i < n; i++)
        images += sources[i].count;
    for (size_t i = 0; i < n; i++)
        for (int64_t k = 0; k < sources[i].count; k += images / LOOKED_AT + 1) {
            KilnRawValue image = { 0 };
            struct stat st = { 0 };
            int64_t size[3];

            sources[i].get(sources[i].ctx, k, &image);
            if (image.type == KILN_RAW_PATH && stat(image.text, &st) != 0)
                continue;
            if (size_of(&image, &reader->form, size, NULL) < 0)
                continue;
            const int64_t bytes = bytes_of(&reader->form, (int64_t)st.st_size, size);
            most = bytes > most ? bytes : most;
        }
    return most;
}

/* ---- Sets ------------------------------------------------------------------------------- */

static void get_path(void *ctx, int64_t i, KilnRawValue *ret)
{
    const KilnImageSet *set = ctx;

    *ret = (KilnRawValue) { .type = KILN_RAW_PATH, .text = set->paths[i] };
}

/* Sources of the sets; NULL: memory is out. */
static KilnImageSource *sources_of(const KilnImageSet *const sets[], size_t n)
{
    KilnImageSource *sources = calloc(n + 1, sizeof(*sources));

    for (size_t i = 0; i < n && sources != NULL; i++)
        sources[i] =
            (KilnImageSource) { .count = sets[i]->count, .ctx = (void *)sets[i], .get = get_path };
    return sources;
}

KilnStatus kiln_image_reader_shape(const KilnImageReader *reader, const KilnImageSet *const sets[],
                                   size_t n, const KilnPoll *poll, int64_t ret_decoded[3],
                                   int64_t ret_shape[3], KilnError *err)
{
    KilnImageSource *sources = sources_of(sets, n);
    KilnStatus status = sources != NULL ? kiln_image_reader_shape_of(reader, sources, n, poll,
                                                                     ret_decoded, ret_shape, err)
                                        : kiln_error_nomem(err, n * sizeof(*sources));

    free(sources);
    return status;
}

int64_t kiln_image_reader_memory(const KilnImageReader *reader, const KilnImageSet *const sets[],
                                 size_t n)
{
    KilnImageSource *sources = sources_of(sets, n);
    const int64_t bytes = sources != NULL ? kiln_image_reader_memory_of(reader, sources, n) : 0;

    free(sources);
    return bytes;
}

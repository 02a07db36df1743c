/* Image files as samples: decoding, scaling and transforming one. */
#include "base/call.h"
#include "image/image_reader.h"
#include "image/read.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

KilnStatus kiln_image_reader_new(const KilnImageForm *form, KilnImageReader **ret, KilnError *err)
{
    KilnImageReader *self = calloc(1, sizeof(*self));

    if (self == NULL || pthread_mutex_init(&self->lock, NULL) != 0) {
        free(self);
        return kiln_error_nomem(err, sizeof(*self));
    }
    self->form = *form;
    *ret = self;
    return KILN_OK;
}

void kiln_image_reader_free(KilnImageReader *self)
{
    if (self == NULL)
        return;
    while (self->unused != NULL) {
        KilnImageScratch *next = self->unused->next;

        kiln_image_release(&self->unused->image);
        kiln_image_release(&self->unused->spare);
        free(self->unused);
        self->unused = next;
    }
    pthread_mutex_destroy(&self->lock);
    free(self);
}

/* ---- A sample --------------------------------------------------------------------------- */

static KilnImageScratch *take_scratch(KilnImageReader *self)
{
    pthread_mutex_lock(&self->lock);
    KilnImageScratch *scratch = self->unused;
    if (scratch != NULL)
        self->unused = scratch->next;
    pthread_mutex_unlock(&self->lock);
    return scratch != NULL ? scratch : calloc(1, sizeof(*scratch));
}

static void give_scratch(KilnImageReader *self, KilnImageScratch *scratch)
{
    pthread_mutex_lock(&self->lock);
    scratch->next = self->unused;
    self->unused = scratch;
    pthread_mutex_unlock(&self->lock);
}

/* A transform that takes a part of the image. */
typedef struct Cut {
    KilnInstance *transform;
    KilnRng *rng;
    bool training;
    KilnStatus status; /* of the transform */
} Cut;

KilnStatus kiln_image_window_of(KilnInstance *transform, const int64_t size[3], KilnRng *rng,
                                bool training, KilnImageWindow *ret, KilnError *err)
{
    const KilnTransformOps *ops = kiln_instance_component(transform)->ops.transform;

    *ret = (KilnImageWindow) { 0 };
    KilnStatus status = KILN_CALLED(transform, "window",
                                    ops->window(transform, size, rng, training, ret, err), err);
    const bool inside = ret->top >= 0 && ret->left >= 0 && ret->height >= 1 && ret->width >= 1 &&
                        ret->height <= size[0] - ret->top && ret->width <= size[1] - ret->left;
    if (status >= 0 && (!inside || ret->to_height < 1 || ret->to_width < 1))
        status = kiln_error_set(
            err, KILN_E_INTERNAL, "%s: the window is not in the image of %lld x %lld",
            kiln_instance_path(transform), (long long)size[0], (long long)size[1]);
    return status;
}

static KilnStatus cut_window(void *ctx, const int64_t size[3], KilnImageWindow *ret, KilnError *err)
{
    Cut *cut = ctx;

    cut->status = kiln_image_window_of(cut->transform, size, cut->rng, cut->training, ret, err);
    return cut->status;
}

/* Read and scale the image of `raw`. With `cut`, only what the first transform takes. */
static KilnStatus decode(const KilnImageForm *form, const KilnRawValue *raw, Cut *cut,
                         KilnImageScratch *scratch, KilnError *err)
{
    const KilnPngForm as = { .channels = form->channels,
                             .height = form->height,
                             .width = form->width,
                             .max_pixels = form->max_pixels };
    const KilnImageSelect select = { .window = cut_window, .ctx = cut };
    KilnStatus status = cut != NULL ? kiln_image_read_part(raw, &as, &select, &scratch->image, err)
                                    : kiln_image_read_raw(raw, &as, &scratch->image, err);

    if (cut != NULL && cut->status < 0) {
        kiln_error_prefix(err, "%s: ", raw->text != NULL ? raw->text : raw->name);
        return cut->status;
    }
    return status >= 0 || status == KILN_E_NOMEM || !form->skips ? status : KILN_E_SKIP;
}

/* The same through the cache. */
static KilnStatus decode_cached(const KilnImageForm *form, const KilnImageFile *file,
                                const KilnRawValue *raw, uint64_t source, KilnImageScratch *scratch,
                                KilnError *err)
{
    const int64_t *size = file->decoded;
    KilnImage *image = &scratch->image;
    KilnStatus status = kiln_image_resize_buffer(image, size[0], size[1], size[2], err);

    if (status < 0 || kiln_cache_get(file->cache, file->entry, source, image->data))
        return status;
    status = decode(form, raw, NULL, scratch, err);
    if (status >= 0 && image->height == size[0] && image->width == size[1] &&
        image->channels == size[2])
        kiln_cache_put(file->cache, file->entry, source, image->data);
    return status;
}

/* Whether the first transform says what to decode. */
static bool cuts_first(const KilnImageForm *form, const KilnRawValue *raw)
{
    return form->n_transforms > 0 && form->height <= 0 && raw->type != KILN_RAW_ARRAY &&
           kiln_instance_component(form->transforms[0])->ops.transform->window != NULL;
}

/* The image of `file`, and how many transforms have been applied to it: none or the first. */
static KilnStatus decode_file(const KilnImageForm *form, const KilnImageFile *file,
                              KilnImageScratch *scratch, KilnRng *rng, size_t *ret_applied,
                              KilnError *err)
{
    const KilnRawValue path = { .name = file->path, .type = KILN_RAW_PATH, .text = file->path };
    const KilnRawValue *raw = file->raw != NULL ? file->raw : &path;
    uint64_t source;

    *ret_applied = 0;
    if (file->raw == NULL && file->cache != NULL && kiln_file_identity(file->path, &source))
        return decode_cached(form, file, raw, source, scratch, err);
    if (!cuts_first(form, raw))
        return decode(form, raw, NULL, scratch, err);
    Cut cut = { .transform = form->transforms[0], .rng = rng, .training = file->training };
    *ret_applied = 1;
    return decode(form, raw, &cut, scratch, err);
}

/* Take a part of scratch->image. */
static KilnStatus cut_image(KilnInstance *transform, KilnImageScratch *scratch, KilnRng *rng,
                            bool training, KilnError *err)
{
    const KilnImage image = scratch->image;
    const int64_t size[3] = { image.height, image.width, image.channels };
    KilnImageWindow window;
    KilnStatus status = kiln_image_window_of(transform, size, rng, training, &window, err);

    if (status >= 0)
        status = kiln_image_scale_part(&image, &window, &scratch->spare, err);
    if (status < 0)
        return status;
    scratch->image = scratch->spare;
    scratch->spare = image;
    return KILN_OK;
}

/* Transform scratch->image, from transform `first` on. */
static KilnStatus transform(const KilnImageForm *form, const KilnImageFile *file, size_t first,
                            KilnImageScratch *scratch, KilnRng *rng, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = first; i < form->n_transforms && status >= 0; i++) {
        KilnInstance *one = form->transforms[i];
        const KilnTransformOps *ops = kiln_instance_component(one)->ops.transform;

        if (ops->window != NULL)
            status = cut_image(one, scratch, rng, file->training, err);
        else
            status = KILN_CALLED(
                one, "apply",
                ops->apply(one, &scratch->image, &scratch->spare, rng, file->training, err), err);
    }
    if (status < 0)
        kiln_error_prefix(err, "%s: ", file->path);
    return status;
}

KilnStatus kiln_image_prepare(const KilnImageForm *form, const KilnImageFile *file,
                              KilnImageScratch *scratch, KilnRng *rng, KilnError *err)
{
    size_t applied;
    KilnStatus status = decode_file(form, file, scratch, rng, &applied, err);

    return status >= 0 ? transform(form, file, applied, scratch, rng, err) : status;
}

static KilnStatus load(const KilnImageForm *form, const KilnImageFile *file,
                       KilnImageScratch *scratch, KilnRng *rng, float *to, KilnError *err)
{
    const KilnImage *image = &scratch->image;
    const int64_t *shape = file->shape;
    KilnStatus status = kiln_image_prepare(form, file, scratch, rng, err);

    if (status < 0)
        return status;
    if (image->height != shape[0] || image->width != shape[1] || image->channels != shape[2])
        return kiln_error_set(err, KILN_E_SHAPE,
                              "%s: %lld x %lld x %lld after the transforms, expected %lld x %lld x "
                              "%lld; datamodule.size brings all images to one size",
                              file->path, (long long)image->height, (long long)image->width,
                              (long long)image->channels, (long long)shape[0], (long long)shape[1],
                              (long long)shape[2]);
    memcpy(to, image->data, (size_t)(image->height * image->width * image->channels) * sizeof(*to));
    return KILN_OK;
}

KilnStatus kiln_image_reader_read(KilnImageReader *self, const KilnImageFile *file, KilnRng *rng,
                                  float *to, KilnError *err)
{
    KilnImageScratch *scratch = take_scratch(self);

    if (scratch == NULL)
        return kiln_error_nomem(err, sizeof(*scratch));
    KilnStatus status = load(&self->form, file, scratch, rng, to, err);
    if (status == KILN_E_SKIP && err != NULL)
        err->status = status;
    give_scratch(self, scratch);
    return status;
}

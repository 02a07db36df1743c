/* Crops every image: at a random position in training, in the centre otherwise. */
#include "kiln.h"

#include <string.h>

typedef struct Opts {
    KilnSize size;
    int64_t padding;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_IMAGE_SIZE(Opts, size, NULL, 1, 16384, "[height, width], or one number for both"),
    KILN_FIELD_I64(Opts, padding, "0", 0, 4096, "black pixels to pad on each side first"),
    KILN_FIELD_END,
};

/* The window must lie within the padded image. */
static KilnStatus check_room(KilnInstance *self, int64_t height, int64_t width, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    int64_t wanted_h = opts->size.height, wanted_w = opts->size.width;

    if (height + 2 * opts->padding >= wanted_h && width + 2 * opts->padding >= wanted_w)
        return KILN_OK;
    return kiln_error_set(
        err, KILN_E_SHAPE,
        "%s: an image of %lld x %lld with padding %lld is smaller than the window "
        "of %lld x %lld; put a resize before the crop, or use a smaller size",
        kiln_instance_path(self), (long long)height, (long long)width, (long long)opts->padding,
        (long long)wanted_h, (long long)wanted_w);
}

/* Copy the window whose corner is at (top, left) of the image; black outside. */
static void cut(const KilnImage *image, int64_t top, int64_t left, KilnImage *to)
{
    int64_t c = image->channels;
    int64_t low = left < 0 ? -left : 0;
    int64_t high = left + to->width > image->width ? image->width - left : to->width;

    for (int64_t y = 0; y < to->height; y++) {
        float *row = to->data + y * to->width * c;

        memset(row, 0, (size_t)(to->width * c) * sizeof(*row));
        if (top + y >= 0 && top + y < image->height && high > low)
            memcpy(row + low * c, image->data + ((top + y) * image->width + left + low) * c,
                   (size_t)((high - low) * c) * sizeof(*row));
    }
}

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    int64_t height = opts->size.height, width = opts->size.width;
    KilnImage before;
    KilnStatus status = check_room(self, image->height, image->width, err);

    if (status >= 0)
        status = kiln_image_resize_buffer(scratch, height, width, image->channels, err);
    if (status < 0)
        return status;
    int64_t room_y = image->height + 2 * opts->padding - height;
    int64_t room_x = image->width + 2 * opts->padding - width;
    int64_t top = training ? kiln_rng_below(rng, (uint32_t)room_y + 1) : room_y / 2;
    int64_t left = training ? kiln_rng_below(rng, (uint32_t)room_x + 1) : room_x / 2;
    cut(image, top - opts->padding, left - opts->padding, scratch);
    before = *image;
    *image = *scratch;
    *scratch = before;
    return KILN_OK;
}

static KilnStatus shape(KilnInstance *self, int64_t size[3], KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    if (size[0] > 0 && size[1] > 0) {
        KilnStatus status = check_room(self, size[0], size[1], err);

        if (status < 0)
            return status;
    }
    size[0] = opts->size.height;
    size[1] = opts->size.width;
    return KILN_OK;
}

static const KilnTransformOps ops = { .apply = apply, .shape = shape };

const KilnComponent kiln_transform_crop = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "crop",
    .summary = "Crop: at a random position in training, in the centre otherwise",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.transform = &ops,
};

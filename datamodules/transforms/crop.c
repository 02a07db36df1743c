/* Crops every image: at a random position in training, in the centre otherwise. */
#include "kiln.h"

#include <string.h>

typedef struct Opts {
    KilnSize size;
    int64_t padding, padding_mode;
} Opts;

enum { ZEROS, EDGE, REFLECT };
static const KilnChoice padding_modes[] = {
    { "zeros", ZEROS }, { "edge", EDGE }, { "reflect", REFLECT }, { NULL, 0 }
};

static const KilnField fields[] = {
    KILN_FIELD_IMAGE_SIZE(Opts, size, NULL, 1, 16384, "[height, width], or one number for both"),
    KILN_FIELD_I64(Opts, padding, "0", 0, 4096, "pixels to pad on each side first"),
    KILN_FIELD_ENUM(Opts, padding_mode, "zeros", padding_modes,
                    "with black, the pixels of the edge, or the image mirrored at it"),
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

/* The row or column of the image, of n, that is at `i` of the padded one; -1: black. */
static int64_t source_of(int64_t i, int64_t n, int64_t mode)
{
    if (i >= 0 && i < n)
        return i;
    if (mode == ZEROS)
        return -1;
    if (mode == EDGE)
        return i < 0 ? 0 : n - 1;
    while (i < 0 || i >= n) /* the padding may be wider than the image */
        i = n == 1 ? 0 : i < 0 ? -i : 2 * n - 2 - i;
    return i;
}

/* Copy the window whose corner is at (top, left) of the image. */
static void cut(const KilnImage *image, int64_t top, int64_t left, int64_t mode, KilnImage *to)
{
    const int64_t c = image->channels;
    const size_t pixel = (size_t)c * sizeof(*to->data);

    for (int64_t y = 0; y < to->height; y++) {
        const int64_t row = source_of(top + y, image->height, mode);
        float *at = to->data + y * to->width * c;

        memset(at, 0, (size_t)to->width * pixel);
        for (int64_t x = 0; x < to->width && row >= 0; x++) {
            const int64_t column = source_of(left + x, image->width, mode);

            if (column >= 0)
                memcpy(at + x * c, image->data + (row * image->width + column) * c, pixel);
        }
    }
}

/* The window's corner in the image. */
static void draw_corner(const Opts *opts, int64_t height, int64_t width, KilnRng *rng,
                        bool training, int64_t *ret_top, int64_t *ret_left)
{
    const int64_t room_y = height + 2 * opts->padding - opts->size.height;
    const int64_t room_x = width + 2 * opts->padding - opts->size.width;
    const int64_t top = training ? kiln_rng_below(rng, (uint32_t)room_y + 1) : room_y / 2;
    const int64_t left = training ? kiln_rng_below(rng, (uint32_t)room_x + 1) : room_x / 2;

    *ret_top = top - opts->padding;
    *ret_left = left - opts->padding;
}

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    int64_t top, left;
    KilnImage before;
    KilnStatus status = check_room(self, image->height, image->width, err);

    if (status >= 0)
        status = kiln_image_resize_buffer(scratch, opts->size.height, opts->size.width,
                                          image->channels, err);
    if (status < 0)
        return status;
    draw_corner(opts, image->height, image->width, rng, training, &top, &left);
    cut(image, top, left, opts->padding_mode, scratch);
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

static KilnStatus warp(KilnInstance *self, const int64_t size[3], KilnRng *rng, bool training,
                       KilnWarp *ret, KilnError *err)
{
    int64_t top, left;
    KilnStatus status = check_room(self, size[0], size[1], err);

    if (status < 0)
        return status;
    draw_corner(kiln_opts(self), size[0], size[1], rng, training, &top, &left);
    ret->matrix[0][2] = (double)left;
    ret->matrix[1][2] = (double)top;
    return KILN_OK;
}

static const KilnTransformOps ops = {
    .apply = apply, .shape = shape, .kind = KILN_TRANSFORM_MOVES, .warp = warp
};

const KilnComponent kiln_transform_crop = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "crop",
    .summary = "Crop: at a random position in training, in the centre otherwise",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.transform = &ops,
};

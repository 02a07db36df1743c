/* Scale every image to one size. Does not keep the ratio of the sides. */
#include "kiln.h"

typedef struct Opts {
    KilnSize size;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_IMAGE_SIZE(Opts, size, NULL, 1, 16384, "[height, width], or one number for both"),
    KILN_FIELD_END,
};

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    int64_t height = opts->size.height, width = opts->size.width;
    KilnImage before;
    KilnStatus status;

    (void)rng;
    (void)training;
    if (image->height == height && image->width == width)
        return KILN_OK;
    status = kiln_image_scale(image, height, width, scratch, err);
    if (status < 0)
        return status;
    before = *image;
    *image = *scratch;
    *scratch = before;
    return KILN_OK;
}

static KilnStatus shape(KilnInstance *self, int64_t size[3], KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)err;
    size[0] = opts->size.height;
    size[1] = opts->size.width;
    return KILN_OK;
}

static const KilnTransformOps ops = { .apply = apply, .shape = shape };

const KilnComponent kiln_transform_resize = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "resize",
    .summary = "Scale every image to one size, bilinear with antialiasing",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.transform = &ops,
};

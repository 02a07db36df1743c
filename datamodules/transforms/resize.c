/* Scale every image to one size. Does not keep the ratio of the sides. */
#include "kiln.h"

typedef struct Opts {
    KilnSize size;
    int64_t interpolation;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_IMAGE_SIZE(Opts, size, NULL, 1, 16384, "[height, width], or one number for both"),
    KILN_FIELD_ENUM(
        Opts, interpolation, "bilinear", kiln_image_filters,
        "bilinear and bicubic antialias when shrinking, as torchvision; nearest does not"),
    KILN_FIELD_END,
};

static KilnStatus window(KilnInstance *self, const int64_t size[3], KilnRng *rng, bool training,
                         KilnImageWindow *ret, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)rng;
    (void)training;
    (void)err;
    *ret = (KilnImageWindow) { .height = size[0],
                               .width = size[1],
                               .to_height = opts->size.height,
                               .to_width = opts->size.width,
                               .filter = (KilnImageFilter)opts->interpolation };
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

static const KilnTransformOps ops = { .shape = shape, .window = window };

const KilnComponent kiln_transform_resize = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "resize",
    .summary = "Scale every image to one size",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.transform = &ops,
};

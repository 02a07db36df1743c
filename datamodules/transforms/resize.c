/* Scales every image to one size, or so that it covers it. */
#include "kiln.h"

typedef struct Opts {
    KilnSize size;
    bool keep_ratio;
    int64_t interpolation;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_IMAGE_SIZE(Opts, size, NULL, 1, 16384, "[height, width], or one number for both"),
    KILN_FIELD_BOOL(
        Opts, keep_ratio, "false",
        "keep the ratio of the sides, so that an image covers the size and one side may "
        "be longer; for a crop after it"),
    KILN_FIELD_ENUM(
        Opts, interpolation, "bilinear", kiln_image_filters,
        "bilinear and bicubic antialias when shrinking, as torchvision; nearest does not"),
    KILN_FIELD_END,
};

/* The size of the result; longer sides are cut off to whole pixels, as torchvision does. */
static KilnSize result_size(const Opts *opts, int64_t height, int64_t width)
{
    const double h = (double)height, w = (double)width;
    KilnSize to = opts->size;

    if (!opts->keep_ratio)
        return to;
    if (w * (double)to.height >= h * (double)to.width)
        to.width = (int64_t)(w * (double)to.height / h);
    else
        to.height = (int64_t)(h * (double)to.width / w);
    return to;
}

static KilnStatus window(KilnInstance *self, const int64_t size[3], KilnRng *rng, bool training,
                         KilnImageWindow *ret, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnSize to = result_size(opts, size[0], size[1]);

    (void)rng;
    (void)training;
    (void)err;
    *ret = (KilnImageWindow) { .height = size[0],
                               .width = size[1],
                               .to_height = to.height,
                               .to_width = to.width,
                               .filter = (KilnImageFilter)opts->interpolation };
    return KILN_OK;
}

static KilnStatus shape(KilnInstance *self, int64_t size[3], KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const bool known = !opts->keep_ratio || size[0] > 0;
    const KilnSize to = size[0] > 0 ? result_size(opts, size[0], size[1]) : opts->size;

    (void)err;
    size[0] = known ? to.height : -1;
    size[1] = known ? to.width : -1;
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

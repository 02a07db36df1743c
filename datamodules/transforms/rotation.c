/* Turns images by a random angle in training (torchvision's RandomRotation). */
#include "kiln.h"
#include "kiln/images/image_ops.h"

typedef struct Opts {
    double degrees;
    int64_t interpolation;
    double fill;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, degrees, NULL, 0, 180, "the largest angle, to either side"),
    KILN_FIELD_ENUM(Opts, interpolation, "nearest", kiln_warp_filters, "between pixels"),
    KILN_FIELD_F64(Opts, fill, "0", -1e6, 1e6, "value of pixels from outside of the image"),
    KILN_FIELD_END,
};

static KilnWarp draw_warp(const Opts *opts, int64_t height, int64_t width, KilnRng *rng)
{
    const float range = (float)opts->degrees;
    const KilnAffine affine = { .angle = (double)kiln_rng_range(rng, -range, range), .scale = 1.0 };

    return kiln_affine_warp(&affine, height, width);
}

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    if (!training)
        return KILN_OK;
    const KilnWarp warp = draw_warp(opts, image->height, image->width, rng);
    KilnStatus status = kiln_image_warp(image, &warp, (KilnImageFilter)opts->interpolation,
                                        (float)opts->fill, scratch, err);
    if (status >= 0)
        kiln_image_swap(image, scratch);
    return status;
}

static KilnStatus warp(KilnInstance *self, const int64_t size[3], KilnRng *rng, bool training,
                       KilnWarp *ret, KilnError *err)
{
    (void)err;
    if (training)
        *ret = draw_warp(kiln_opts(self), size[0], size[1], rng);
    return KILN_OK;
}

static const KilnTransformOps ops = { .apply = apply, .warp = warp };

const KilnComponent kiln_transform_rotation = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "rotation",
    .summary = "Turn by a random angle in training",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.transform = &ops,
};

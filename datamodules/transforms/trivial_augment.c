/* One random operation of random strength for each image in training (Müller and Hutter 2021;
 * torchvision's TrivialAugmentWide). */
#include "kiln.h"
#include "kiln/images/image_ops.h"

typedef struct Opts {
    int64_t interpolation;
    double fill;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, interpolation, "nearest", kiln_warp_filters, "between pixels"),
    KILN_FIELD_F64(Opts, fill, "0", -1e6, 1e6, "value of pixels from outside of the image"),
    KILN_FIELD_END,
};

static const KilnAugmentRange ranges[KILN_AUGMENT_COUNT] = {
    { KILN_AUGMENT_IDENTITY, 0, 0, false },     { KILN_AUGMENT_SHEAR_X, 0, 0.99, true },
    { KILN_AUGMENT_SHEAR_Y, 0, 0.99, true },    { KILN_AUGMENT_TRANSLATE_X, 0, 32, true },
    { KILN_AUGMENT_TRANSLATE_Y, 0, 32, true },  { KILN_AUGMENT_ROTATE, 0, 135, true },
    { KILN_AUGMENT_BRIGHTNESS, 0, 0.99, true }, { KILN_AUGMENT_COLOR, 0, 0.99, true },
    { KILN_AUGMENT_CONTRAST, 0, 0.99, true },   { KILN_AUGMENT_SHARPNESS, 0, 0.99, true },
    { KILN_AUGMENT_POSTERIZE, 8, 2, false },    { KILN_AUGMENT_SOLARIZE, 1, 0, false },
    { KILN_AUGMENT_AUTOCONTRAST, 0, 0, false }, { KILN_AUGMENT_EQUALIZE, 0, 0, false },
};

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    enum { BINS = 31 };

    return training ? kiln_image_augment_draw(ranges, kiln_rng_below(rng, BINS), BINS,
                                              (KilnImageFilter)opts->interpolation,
                                              (float)opts->fill, image, scratch, rng, err)
                    : KILN_OK;
}

static const KilnTransformOps ops = { .apply = apply };

const KilnComponent kiln_transform_trivial_augment = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "trivial_augment",
    .summary = "One random operation of random strength in training",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.transform = &ops,
};

/* Some random operations of one strength for each image in training (Cubuk et al. 2019;
 * torchvision's RandAugment). */
#include "kiln.h"
#include "kiln/images/image_ops.h"

#include <string.h>

typedef struct Opts {
    int64_t num_ops, magnitude, interpolation;
    double fill;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, num_ops, "2", 0, 100, "operations for each image"),
    KILN_FIELD_I64(Opts, magnitude, "9", 0, 30, "their strength, 0 to 30"),
    KILN_FIELD_ENUM(Opts, interpolation, "nearest", kiln_warp_filters, "between pixels"),
    KILN_FIELD_F64(Opts, fill, "0", -1e6, 1e6, "value of pixels from outside of the image"),
    KILN_FIELD_END,
};

enum { BINS = 31 };
#define TRANSLATE (150.0 / 331.0) /* of the width or height */

static const KilnAugmentRange ranges[KILN_AUGMENT_COUNT] = {
    { KILN_AUGMENT_IDENTITY, 0, 0, false },
    { KILN_AUGMENT_SHEAR_X, 0, 0.3, true },
    { KILN_AUGMENT_SHEAR_Y, 0, 0.3, true },
    { KILN_AUGMENT_TRANSLATE_X, 0, TRANSLATE, true },
    { KILN_AUGMENT_TRANSLATE_Y, 0, TRANSLATE, true },
    { KILN_AUGMENT_ROTATE, 0, 30, true },
    { KILN_AUGMENT_BRIGHTNESS, 0, 0.9, true },
    { KILN_AUGMENT_COLOR, 0, 0.9, true },
    { KILN_AUGMENT_CONTRAST, 0, 0.9, true },
    { KILN_AUGMENT_SHARPNESS, 0, 0.9, true },
    { KILN_AUGMENT_POSTERIZE, 8, 4, false },
    { KILN_AUGMENT_SOLARIZE, 1, 0, false },
    { KILN_AUGMENT_AUTOCONTRAST, 0, 0, false },
    { KILN_AUGMENT_EQUALIZE, 0, 0, false },
};

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    KilnStatus status = KILN_OK;
    KilnAugmentRange own[KILN_AUGMENT_COUNT];

    memcpy(own, ranges, sizeof(own));
    own[KILN_AUGMENT_TRANSLATE_X].last = TRANSLATE * (double)image->width;
    own[KILN_AUGMENT_TRANSLATE_Y].last = TRANSLATE * (double)image->height;
    for (int64_t i = 0; training && i < opts->num_ops && status >= 0; i++)
        status = kiln_image_augment_draw(own, opts->magnitude, BINS,
                                         (KilnImageFilter)opts->interpolation, (float)opts->fill,
                                         image, scratch, rng, err);
    return status;
}

static const KilnTransformOps ops = { .apply = apply };

const KilnComponent kiln_transform_rand_augment = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "rand_augment",
    .summary = "Some random operations of one strength in training",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.transform = &ops,
};

/* The operations of RandAugment (Cubuk et al. 2019) and TrivialAugment (Müller and Hutter 2021). */
#include "kiln/images/image_ops.h"

#include <math.h>

static KilnStatus warp(KilnAffine affine, KilnImageFilter filter, float fill, KilnImage *image,
                       KilnImage *scratch, KilnError *err)
{
    const KilnWarp map = kiln_affine_warp(&affine, image->height, image->width);
    KilnStatus status = kiln_image_warp(image, &map, filter, fill, scratch, err);

    if (status < 0)
        return status;
    kiln_image_swap(image, scratch);
    return KILN_OK;
}

/* Sheared and moved images keep their left upper corner. */
static KilnAffine affine_of(KilnAugment operation, double magnitude, const KilnImage *image)
{
    const double degrees = atan(magnitude) * 180.0 / 3.14159265358979323846;
    KilnAffine affine = { .scale = 1.0 };

    if (operation == KILN_AUGMENT_SHEAR_X || operation == KILN_AUGMENT_SHEAR_Y) {
        affine.center[0] = -0.5 * (double)image->width;
        affine.center[1] = -0.5 * (double)image->height;
        affine.shear[operation == KILN_AUGMENT_SHEAR_X ? 0 : 1] = degrees;
    } else if (operation == KILN_AUGMENT_ROTATE) {
        affine.angle = -magnitude;
    } else {
        affine.translate[operation == KILN_AUGMENT_TRANSLATE_X ? 0 : 1] = trunc(magnitude);
    }
    return affine;
}

KilnStatus kiln_image_augment(KilnAugment operation, double magnitude, KilnImageFilter filter,
                              float fill, KilnImage *image, KilnImage *scratch, KilnError *err)
{
    const float factor = (float)(1.0 + magnitude);

    switch (operation) {
    case KILN_AUGMENT_SHEAR_X:
    case KILN_AUGMENT_SHEAR_Y:
    case KILN_AUGMENT_TRANSLATE_X:
    case KILN_AUGMENT_TRANSLATE_Y:
    case KILN_AUGMENT_ROTATE:
        return warp(affine_of(operation, magnitude, image), filter, fill, image, scratch, err);
    case KILN_AUGMENT_BRIGHTNESS:
        kiln_image_adjust_brightness(image, factor);
        break;
    case KILN_AUGMENT_COLOR:
        kiln_image_adjust_saturation(image, factor);
        break;
    case KILN_AUGMENT_CONTRAST:
        kiln_image_adjust_contrast(image, factor);
        break;
    case KILN_AUGMENT_SHARPNESS:
        return kiln_image_adjust_sharpness(image, factor, scratch, err);
    case KILN_AUGMENT_POSTERIZE:
        kiln_image_posterize(image, (int)magnitude);
        break;
    case KILN_AUGMENT_SOLARIZE:
        kiln_image_solarize(image, (float)magnitude);
        break;
    case KILN_AUGMENT_AUTOCONTRAST:
        kiln_image_autocontrast(image);
        break;
    case KILN_AUGMENT_EQUALIZE:
        kiln_image_equalize(image);
        break;
    case KILN_AUGMENT_IDENTITY:
    case KILN_AUGMENT_COUNT:
        break;
    }
    return KILN_OK;
}

KilnStatus kiln_image_augment_draw(const KilnAugmentRange *ranges, int64_t bin, int64_t bins,
                                   KilnImageFilter filter, float fill, KilnImage *image,
                                   KilnImage *scratch, KilnRng *rng, KilnError *err)
{
    const KilnAugmentRange *range = &ranges[kiln_rng_below(rng, KILN_AUGMENT_COUNT)];
    const double part = bins > 1 ? (double)bin / (double)(bins - 1) : 0.0;
    double magnitude = range->first + part * (range->last - range->first);

    if (range->operation == KILN_AUGMENT_POSTERIZE)
        magnitude = nearbyint(magnitude);
    if (range->is_signed && kiln_rng_uniform(rng) < 0.5f)
        magnitude = -magnitude;
    return kiln_image_augment(range->operation, magnitude, filter, fill, image, scratch, err);
}

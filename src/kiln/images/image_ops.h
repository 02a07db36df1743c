/* Operations on images that transforms share. They are torchvision's (transforms.v2, on float
 * tensors of 0..1), with the same values for the same parameters. Images have 1 or 3 channels. */
#ifndef KILN_IMAGES_IMAGE_OPS_H
#define KILN_IMAGES_IMAGE_OPS_H

#include "kiln/image.h"

/* ---- Geometry -------------------------------------------------------------------------------- */

/* The choices of an option for the filter of a warp: nearest, bilinear. */
KILN_API_TABLE const KilnChoice kiln_warp_filters[3];
/* Exchange two images: a result in `scratch` with its source. */
KILN_API void kiln_image_swap(KilnImage *a, KilnImage *b);
/* Mirror it: left and right, or top and bottom. */
KILN_API void kiln_image_flip(KilnImage *image, bool vertical);

/* What an image is turned and moved by. */
typedef struct KilnAffine {
    double angle;        /* in degrees; positive: clockwise, as torchvision's affine */
    double translate[2]; /* right and down, in pixels */
    double scale;        /* above 0 */
    double shear[2];     /* in degrees, along x and y */
    double center[2];    /* x and y of the fixed point, in pixels from the image's center */
} KilnAffine;

/* The warp of an image of height × width. */
KILN_API KilnWarp kiln_affine_warp(const KilnAffine *affine, int64_t height, int64_t width);
/* The warp that moves the four points `from` (x, y), in pixels, to the points `to`. False: three of
 * them are on a line. */
KILN_API bool kiln_perspective_warp(const double from[4][2], const double to[4][2], KilnWarp *ret);
/* The image after a warp, bilinear or nearest; `fill` where the source has no pixels. `from` and
 * `to` are different images. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_warp(const KilnImage *from, const KilnWarp *warp,
                                                   KilnImageFilter filter, float fill,
                                                   KilnImage *to, KilnError *err);

/* ---- Color ----------------------------------------------------------------------------------- */

/* A factor of 1 changes nothing, 0 gives black, the mean, grey. Results are cut to 0..1. */
KILN_API void kiln_image_adjust_brightness(KilnImage *image, float factor);
KILN_API void kiln_image_adjust_contrast(KilnImage *image, float factor);
KILN_API void kiln_image_adjust_saturation(KilnImage *image, float factor);
/* Shift the hue by a part of the circle, -0.5 to 0.5. Grey images stay. */
KILN_API void kiln_image_adjust_hue(KilnImage *image, float shift);
/* All channels become the grey value 0.2989 R + 0.587 G + 0.114 B. */
KILN_API void kiln_image_grayscale(KilnImage *image);
KILN_API void kiln_image_invert(KilnImage *image);
/* Invert values of `threshold` and above. */
KILN_API void kiln_image_solarize(KilnImage *image, float threshold);
/* Keep 2^bits levels. */
KILN_API void kiln_image_posterize(KilnImage *image, int bits);
/* Stretch each channel to 0..1. */
KILN_API void kiln_image_autocontrast(KilnImage *image);
/* Make each channel's histogram of 256 levels flat. */
KILN_API void kiln_image_equalize(KilnImage *image);

/* ---- Neighborhoods --------------------------------------------------------------------------- */

/* Blend with a blurred image: 0 is blurred, 1 the image, more is sharper. `scratch` is overwritten.
 */
KILN_API KILN_NODISCARD KilnStatus kiln_image_adjust_sharpness(KilnImage *image, float factor,
                                                               KilnImage *scratch, KilnError *err);
/* A Gaussian of `size` × `size` pixels (odd), reflected at the border. KILN_E_SHAPE if the image
 * has no more than size / 2 pixels in a direction. `scratch` is overwritten. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_gaussian_blur(KilnImage *image, int64_t size,
                                                            double sigma, KilnImage *scratch,
                                                            KilnError *err);

/* ---- Policies -------------------------------------------------------------------------------- */

/* The operations that RandAugment and TrivialAugment draw from. */
typedef enum KilnAugment {
    KILN_AUGMENT_IDENTITY,
    KILN_AUGMENT_SHEAR_X, /* magnitude: the tangent */
    KILN_AUGMENT_SHEAR_Y,
    KILN_AUGMENT_TRANSLATE_X, /* pixels; fractions are cut off */
    KILN_AUGMENT_TRANSLATE_Y,
    KILN_AUGMENT_ROTATE,     /* degrees */
    KILN_AUGMENT_BRIGHTNESS, /* 1 + magnitude is the factor, also of the next three */
    KILN_AUGMENT_COLOR,
    KILN_AUGMENT_CONTRAST,
    KILN_AUGMENT_SHARPNESS,
    KILN_AUGMENT_POSTERIZE, /* bits */
    KILN_AUGMENT_SOLARIZE,  /* threshold */
    KILN_AUGMENT_AUTOCONTRAST,
    KILN_AUGMENT_EQUALIZE,
    KILN_AUGMENT_COUNT
} KilnAugment;

/* An operation with the magnitudes that it may have. */
typedef struct KilnAugmentRange {
    KilnAugment operation;
    double first, last; /* of bins that are equally far apart */
    bool is_signed;     /* the magnitude gets a random sign */
} KilnAugmentRange;

/* One of the operations by itself. `scratch` is a spare image that may change places with
 * `image`. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_augment(KilnAugment operation, double magnitude,
                                                      KilnImageFilter filter, float fill,
                                                      KilnImage *image, KilnImage *scratch,
                                                      KilnError *err);
/* Draw one of the ranges[KILN_AUGMENT_COUNT] and a sign, and apply it with the magnitude of bin
 * `bin` of `bins`. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_augment_draw(const KilnAugmentRange *ranges,
                                                           int64_t bin, int64_t bins,
                                                           KilnImageFilter filter, float fill,
                                                           KilnImage *image, KilnImage *scratch,
                                                           KilnRng *rng, KilnError *err);

#endif

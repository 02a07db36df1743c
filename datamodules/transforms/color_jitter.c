/* Changes brightness, contrast, saturation and hue at random in training, in a random order
 * (torchvision's ColorJitter). */
#include "kiln.h"
#include "kiln/images/image_ops.h"

#include <math.h>

typedef struct Opts {
    double brightness, contrast, saturation, hue, p;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, brightness, "0", 0, 100, "the factor is between 1 - this and 1 + this"),
    KILN_FIELD_F64(Opts, contrast, "0", 0, 100, "the same"),
    KILN_FIELD_F64(Opts, saturation, "0", 0, 100, "the same"),
    KILN_FIELD_F64(Opts, hue, "0", 0, 0.5,
                   "the shift is between -this and this; 0.5 is half the circle"),
    KILN_FIELD_F64(Opts, p, "1", 0, 1, "probability of changing an image"),
    KILN_FIELD_END,
};

static float draw_factor(KilnRng *rng, double range)
{
    return kiln_rng_range(rng, (float)fmax(1.0 - range, 0.0), (float)(1.0 + range));
}

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    uint32_t order[] = { 0, 1, 2, 3 };

    (void)scratch;
    (void)err;
    if (!training || (double)kiln_rng_uniform(rng) >= opts->p)
        return KILN_OK;
    kiln_rng_shuffle(rng, order, KILN_COUNT(order));
    for (size_t i = 0; i < KILN_COUNT(order); i++)
        if (order[i] == 0 && opts->brightness > 0)
            kiln_image_adjust_brightness(image, draw_factor(rng, opts->brightness));
        else if (order[i] == 1 && opts->contrast > 0)
            kiln_image_adjust_contrast(image, draw_factor(rng, opts->contrast));
        else if (order[i] == 2 && opts->saturation > 0)
            kiln_image_adjust_saturation(image, draw_factor(rng, opts->saturation));
        else if (order[i] == 3 && opts->hue > 0)
            kiln_image_adjust_hue(image, kiln_rng_range(rng, -(float)opts->hue, (float)opts->hue));
    return KILN_OK;
}

static const KilnTransformOps ops = { .apply = apply, .kind = KILN_TRANSFORM_VALUES };

const KilnComponent kiln_transform_color_jitter = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "color_jitter",
    .summary = "Change brightness, contrast, saturation and hue at random in training",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.transform = &ops,
};

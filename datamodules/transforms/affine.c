/* Turns, moves, scales and shears images at random in training (torchvision's RandomAffine). */
#include "kiln.h"
#include "kiln/images/image_ops.h"

#include <math.h>

typedef struct Opts {
    double degrees;
    double *translate, *scale, *shear;
    size_t translate_count, scale_count, shear_count;
    int64_t interpolation;
    double fill;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, degrees, "0", 0, 180, "the largest angle, to either side"),
    KILN_FIELD_F64_LIST(Opts, translate, "[0, 0]", 0, 1,
                        "the largest move right and left, down and up, in parts of width and "
                        "height"),
    KILN_FIELD_F64_LIST(Opts, scale, "[1, 1]", 0.001, 1000, "the factor, from and to"),
    KILN_FIELD_F64_LIST(Opts, shear, "[0, 0]", -89, 89,
                        "degrees along x, from and to; with four numbers along y, too"),
    KILN_FIELD_ENUM(Opts, interpolation, "nearest", kiln_warp_filters, "between pixels"),
    KILN_FIELD_F64(Opts, fill, "0", -1e6, 1e6, "value of pixels from outside of the image"),
    KILN_FIELD_END,
};

/* Two numbers, the smaller one first. */
static bool is_range(const double *values, size_t n)
{
    return n == 2 && values[0] <= values[1];
}

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "translate";
    if (opts->translate_count != 2)
        return kiln_error_set(err, KILN_E_RANGE, "expected two numbers [x, y]");
    *ret_option = "scale";
    if (!is_range(opts->scale, opts->scale_count))
        return kiln_error_set(err, KILN_E_RANGE, "expected two numbers [from, to]");
    *ret_option = "shear";
    const bool two = is_range(opts->shear, opts->shear_count);
    const bool four = opts->shear_count == 4 && is_range(opts->shear, 2) &&
                      is_range(opts->shear + 2, 2);
    return two || four ? KILN_OK
                       : kiln_error_set(err, KILN_E_RANGE,
                                        "expected [from, to], or [x from, x to, y from, y to]");
}

static double draw(KilnRng *rng, double low, double high)
{
    return low + (high - low) * (double)kiln_rng_uniform(rng);
}

/* Whole pixels. */
static double draw_move(KilnRng *rng, double part, int64_t side)
{
    const double most = part * (double)side;

    return nearbyint(draw(rng, -most, most));
}

static KilnWarp draw_warp(const Opts *opts, int64_t height, int64_t width, KilnRng *rng)
{
    KilnAffine affine = { .angle = draw(rng, -opts->degrees, opts->degrees) };
    affine.translate[0] = draw_move(rng, opts->translate[0], width);
    affine.translate[1] = draw_move(rng, opts->translate[1], height);
    affine.scale = draw(rng, opts->scale[0], opts->scale[1]);
    affine.shear[0] = draw(rng, opts->shear[0], opts->shear[1]);
    affine.shear[1] = opts->shear_count == 4 ? draw(rng, opts->shear[2], opts->shear[3]) : 0.0;
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

const KilnComponent kiln_transform_affine = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "affine",
    .summary = "Turn, move, scale and shear at random in training",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.transform = &ops,
};

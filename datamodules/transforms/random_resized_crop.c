/* Takes a random part of each image and scales it to one size (Szegedy et al. 2015; torchvision's
 * RandomResizedCrop), outside of training the middle. */
#include "kiln.h"

#include <math.h>

typedef struct Opts {
    KilnSize size;
    double *scale, *ratio;
    size_t scale_count, ratio_count;
    double eval_part;
    int64_t interpolation;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_IMAGE_SIZE(Opts, size, NULL, 1, 16384, "[height, width], or one number for both"),
    KILN_FIELD_F64_LIST(Opts, scale, "[0.08, 1]", 1e-6, 1,
                        "the part of the area, from and to, drawn for each image"),
    KILN_FIELD_F64_LIST(Opts, ratio, "[0.75, 1.3333333333333333]", 0.01, 100,
                        "width by height of the part, from and to"),
    KILN_FIELD_F64(
        Opts, eval_part, "0.875", 0.01, 1,
        "outside of training: the part of the shorter side that the middle has; 0.875 is "
        "Resize(256) and CenterCrop(224)"),
    KILN_FIELD_ENUM(Opts, interpolation, "bilinear", kiln_image_filters,
                    "bilinear and bicubic antialias when shrinking; nearest does not"),
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
    const bool scale_fits = is_range(opts->scale, opts->scale_count);

    *ret_option = scale_fits ? "ratio" : "scale";
    return scale_fits && is_range(opts->ratio, opts->ratio_count)
               ? KILN_OK
               : kiln_error_set(err, KILN_E_RANGE, "expected two numbers [from, to]");
}

/* A part of random area and ratio; false: it does not fit. */
static bool draw(const Opts *opts, double height, double width, KilnRng *rng, KilnImageWindow *ret)
{
    const double low = log(opts->ratio[0]), high = log(opts->ratio[1]);
    const double part = opts->scale[0] +
                        (opts->scale[1] - opts->scale[0]) * (double)kiln_rng_uniform(rng);
    const double ratio = exp(low + (high - low) * (double)kiln_rng_uniform(rng));
    const double h = nearbyint(sqrt(height * width * part / ratio));
    const double w = nearbyint(sqrt(height * width * part * ratio));

    if (!(h >= 1.0 && h <= height && w >= 1.0 && w <= width))
        return false;
    ret->height = (int64_t)h;
    ret->width = (int64_t)w;
    ret->top = kiln_rng_below(rng, (uint32_t)(height - h) + 1);
    ret->left = kiln_rng_below(rng, (uint32_t)(width - w) + 1);
    return true;
}

/* The largest part in the middle of that ratio (width by height). */
static void take_middle(double height, double width, double ratio, double part,
                        KilnImageWindow *ret)
{
    const double h = width / height > ratio ? height : width / ratio;
    const double w = width / height > ratio ? height * ratio : width;

    ret->height = (int64_t)fmin(fmax(nearbyint(part * h), 1.0), height);
    ret->width = (int64_t)fmin(fmax(nearbyint(part * w), 1.0), width);
    ret->top = ((int64_t)height - ret->height) / 2;
    ret->left = ((int64_t)width - ret->width) / 2;
}

static KilnStatus window(KilnInstance *self, const int64_t size[3], KilnRng *rng, bool training,
                         KilnImageWindow *ret, KilnError *err)
{
    enum { TRIES = 10 };
    const Opts *opts = kiln_opts(self);
    const double height = (double)size[0], width = (double)size[1];

    (void)err;
    *ret = (KilnImageWindow) { .to_height = opts->size.height,
                               .to_width = opts->size.width,
                               .filter = (KilnImageFilter)opts->interpolation };
    for (int i = 0; training && i < TRIES; i++)
        if (draw(opts, height, width, rng, ret))
            return KILN_OK;
    if (training)
        take_middle(height, width, fmin(fmax(width / height, opts->ratio[0]), opts->ratio[1]), 1.0,
                    ret);
    else
        take_middle(height, width, (double)ret->to_width / (double)ret->to_height, opts->eval_part,
                    ret);
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

const KilnComponent kiln_transform_random_resized_crop = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "random_resized_crop",
    .summary = "Scale a random part to one size in training, the middle otherwise",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.transform = &ops,
};

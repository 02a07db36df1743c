/* Erases a random box of images in training (Zhong et al. 2017; torchvision's RandomErasing). It
 * belongs after normalize. */
#include "kiln.h"

#include <math.h>

typedef struct Opts {
    double p;
    double *scale, *ratio;
    size_t scale_count, ratio_count;
    double value;
    bool random;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, p, "0.5", 0, 1, "probability of changing an image"),
    KILN_FIELD_F64_LIST(Opts, scale, "[0.02, 0.33]", 1e-6, 1, "the part of the area, from and to"),
    KILN_FIELD_F64_LIST(Opts, ratio, "[0.3, 3.3]", 0.01, 100,
                        "height by width of the box, from and to"),
    KILN_FIELD_F64(Opts, value, "0", -1e6, 1e6, "of erased pixels"),
    KILN_FIELD_BOOL(Opts, random, "false", "erased pixels are random, from a standard normal"),
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

static void erase(const Opts *opts, KilnImage *image, int64_t height, int64_t width, KilnRng *rng)
{
    const int64_t c = image->channels;
    const int64_t top = kiln_rng_below(rng, (uint32_t)(image->height - height) + 1);
    const int64_t left = kiln_rng_below(rng, (uint32_t)(image->width - width) + 1);

    for (int64_t y = top; y < top + height; y++)
        for (int64_t i = left * c; i < (left + width) * c; i++)
            image->data[y * image->width * c + i] = opts->random ? kiln_rng_normal(rng)
                                                                 : (float)opts->value;
}

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    enum { TRIES = 10 };
    const double low = log(opts->ratio[0]), high = log(opts->ratio[1]);
    const double area = (double)(image->height * image->width);

    (void)scratch;
    (void)err;
    if (!training || (double)kiln_rng_uniform(rng) >= opts->p)
        return KILN_OK;
    for (int i = 0; i < TRIES; i++) {
        const double part = opts->scale[0] +
                            (opts->scale[1] - opts->scale[0]) * (double)kiln_rng_uniform(rng);
        const double ratio = exp(low + (high - low) * (double)kiln_rng_uniform(rng));
        const double height = nearbyint(sqrt(area * part * ratio));
        const double width = nearbyint(sqrt(area * part / ratio));

        if (height < (double)image->height && width < (double)image->width) {
            erase(opts, image, (int64_t)height, (int64_t)width, rng);
            break;
        }
    }
    return KILN_OK;
}

static const KilnTransformOps ops = { .apply = apply, .kind = KILN_TRANSFORM_VALUES };

const KilnComponent kiln_transform_erasing = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "erasing",
    .summary = "Erase a random box in training",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.transform = &ops,
};

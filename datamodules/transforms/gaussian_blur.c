/* Blurs images at random in training (torchvision's GaussianBlur). */
#include "kiln.h"
#include "kiln/images/image_ops.h"

typedef struct Opts {
    int64_t kernel_size;
    double *sigma;
    size_t sigma_count;
    double p;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, kernel_size, "3", 1, 255, "pixels that are blurred over; odd"),
    KILN_FIELD_F64_LIST(Opts, sigma, "[0.1, 2]", 1e-3, 1e3, "standard deviation, from and to"),
    KILN_FIELD_F64(Opts, p, "1", 0, 1, "probability of changing an image"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "kernel_size";
    if (opts->kernel_size % 2 == 0)
        return kiln_error_set(err, KILN_E_RANGE, "expected an odd number");
    *ret_option = "sigma";
    return opts->sigma_count == 2 && opts->sigma[0] <= opts->sigma[1]
               ? KILN_OK
               : kiln_error_set(err, KILN_E_RANGE, "expected two numbers [from, to]");
}

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    if (!training || (double)kiln_rng_uniform(rng) >= opts->p)
        return KILN_OK;
    const double sigma = (double)kiln_rng_range(rng, (float)opts->sigma[0], (float)opts->sigma[1]);
    return kiln_image_gaussian_blur(image, opts->kernel_size, sigma, scratch, err);
}

static const KilnTransformOps ops = { .apply = apply, .kind = KILN_TRANSFORM_VALUES };

const KilnComponent kiln_transform_gaussian_blur = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "gaussian_blur",
    .summary = "Blur at random in training",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.transform = &ops,
};

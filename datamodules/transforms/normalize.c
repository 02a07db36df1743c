/* Shifts and scales each channel, to mean 0 and standard deviation 1 over the data. */
#include "kiln.h"

typedef struct Opts {
    double *mean;
    size_t mean_count;
    double *std;
    size_t std_count;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64_LIST(Opts, mean, NULL, -1e6, 1e6,
                        "subtracted from values of 0..1: one number per channel, or one for all"),
    KILN_FIELD_F64_LIST(Opts, std, NULL, 1e-6, 1e6,
                        "divided by afterwards: one number per channel, or one for all"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = opts->mean_count == 0 ? "mean" : "std";
    if (opts->mean_count == 0 || opts->std_count == 0 ||
        (opts->mean_count != opts->std_count && opts->mean_count != 1 && opts->std_count != 1))
        return kiln_error_set(err, KILN_E_RANGE,
                              "mean has %zu numbers and std %zu; expected one per channel, or one "
                              "for all, in each",
                              opts->mean_count, opts->std_count);
    return KILN_OK;
}

static KilnStatus check_channels(KilnInstance *self, int64_t channels, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    size_t given = opts->mean_count > opts->std_count ? opts->mean_count : opts->std_count;

    if (given == 1 || (int64_t)given == channels)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_SHAPE,
                          "%s: mean and std have %zu channels, but the images have %lld",
                          kiln_instance_path(self), given, (long long)channels);
}

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    KilnStatus status = check_channels(self, image->channels, err);
    int64_t pixels = image->height * image->width;

    (void)scratch;
    (void)rng;
    (void)training;
    if (status < 0)
        return status;
    for (int64_t c = 0; c < image->channels; c++) {
        float mean = (float)opts->mean[opts->mean_count == 1 ? 0 : c];
        float std = (float)opts->std[opts->std_count == 1 ? 0 : c];

        for (int64_t i = 0; i < pixels; i++) {
            float *value = &image->data[i * image->channels + c];

            *value = (*value - mean) / std;
        }
    }
    return KILN_OK;
}

static KilnStatus shape(KilnInstance *self, int64_t size[3], KilnError *err)
{
    return size[2] > 0 ? check_channels(self, size[2], err) : KILN_OK;
}

static const KilnTransformOps ops = { .apply = apply,
                                      .shape = shape,
                                      .kind = KILN_TRANSFORM_VALUES };

const KilnComponent kiln_transform_normalize = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "normalize",
    .summary = "Shift and scale each channel by mean and std",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.transform = &ops,
};

/* Shifts and scales each channel, to mean 0 and standard deviation 1 over the data. */
#include "kiln.h"

typedef struct Opts {
    double *mean;
    size_t mean_count;
    double *std;
    size_t std_count;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64_LIST(Opts, mean, "[]", -1e6, 1e6,
                        "subtracted from values of 0..1: one number per channel, or one for all; "
                        "empty: the mean of the training images"),
    KILN_FIELD_F64_LIST(Opts, std, "[]", 1e-6, 1e6,
                        "divided by afterwards: one number per channel, or one for all; empty: the "
                        "standard deviation of the training images"),
    KILN_FIELD_END,
};

/* What is subtracted, and divided by. */
typedef struct State {
    double mean[4], std[4];
    int64_t channels; /* of the training images' statistics; 0: there are none yet */
} State;

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = opts->mean_count == 0 ? "mean" : "std";
    if (opts->mean_count == 0 && opts->std_count == 0)
        return KILN_OK;
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
    const State *state = kiln_state(self);
    size_t given = opts->mean_count > opts->std_count ? opts->mean_count : opts->std_count;

    if (given == 0)
        given = state->channels > 0 ? (size_t)state->channels : 1;
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
    const State *state = kiln_state(self);
    KilnStatus status = check_channels(self, image->channels, err);
    int64_t pixels = image->height * image->width;

    (void)scratch;
    (void)rng;
    (void)training;
    if (status < 0)
        return status;
    if (opts->mean_count == 0 && state->channels == 0)
        return kiln_error_set(err, KILN_E_MISSING,
                              "%s: this datamodule does not compute the statistics of its images; "
                              "set mean and std",
                              kiln_instance_path(self));
    for (int64_t c = 0; c < image->channels; c++) {
        const bool given = opts->mean_count > 0;
        const float mean = (float)(given ? opts->mean[opts->mean_count == 1 ? 0 : c]
                                         : state->mean[c]);
        const float std = (float)(given ? opts->std[opts->std_count == 1 ? 0 : c] : state->std[c]);

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

static bool needs_statistics(KilnInstance *self)
{
    return ((const Opts *)kiln_opts(self))->mean_count == 0;
}

/* A channel of one value keeps its scale. */
static KilnStatus set_statistics(KilnInstance *self, const double *mean, const double *std,
                                 int64_t channels, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    state->channels = channels < 4 ? channels : 4;
    for (int64_t c = 0; c < state->channels; c++) {
        state->mean[c] = mean[c];
        state->std[c] = std[c] > 1e-6 ? std[c] : 1.0;
    }
    return KILN_OK;
}

static const KilnTransformOps ops = { .apply = apply,
                                      .shape = shape,
                                      .needs_statistics = needs_statistics,
                                      .set_statistics = set_statistics,
                                      .kind = KILN_TRANSFORM_VALUES };

const KilnComponent kiln_transform_normalize = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "normalize",
    .summary = "Shift and scale each channel by mean and std",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .ops.transform = &ops,
};

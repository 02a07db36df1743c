/* Flips images horizontally at random in training. */
#include "kiln.h"

typedef struct Opts {
    double p;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, p, "0.5", 0, 1, "probability of flipping an image"),
    KILN_FIELD_END,
};

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    int64_t c = image->channels;

    (void)scratch;
    (void)err;
    if (!training || (double)kiln_rng_uniform(rng) >= opts->p)
        return KILN_OK;
    for (int64_t y = 0; y < image->height; y++) {
        float *left = image->data + y * image->width * c, *right = left + (image->width - 1) * c;

        for (; left < right; left += c, right -= c)
            for (int64_t i = 0; i < c; i++) {
                float value = left[i];

                left[i] = right[i];
                right[i] = value;
            }
    }
    return KILN_OK;
}

static const KilnTransformOps ops = { .apply = apply };

const KilnComponent kiln_transform_flip = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "flip",
    .summary = "Flip horizontally at random in training",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.transform = &ops,
};

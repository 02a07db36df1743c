/* Takes the colors from images at random in training (torchvision's RandomGrayscale). They keep
 * three channels. */
#include "kiln.h"
#include "kiln/images/image_ops.h"

typedef struct Opts {
    double p;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, p, "0.1", 0, 1, "probability of changing an image"),
    KILN_FIELD_END,
};

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)scratch;
    (void)err;
    if (training && (double)kiln_rng_uniform(rng) < opts->p)
        kiln_image_grayscale(image);
    return KILN_OK;
}

static const KilnTransformOps ops = { .apply = apply, .kind = KILN_TRANSFORM_VALUES };

const KilnComponent kiln_transform_grayscale = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "grayscale",
    .summary = "Take the colors away at random in training",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.transform = &ops,
};

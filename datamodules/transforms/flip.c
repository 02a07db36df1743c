/* Flips images at random in training. */
#include "kiln.h"
#include "kiln/images/image_ops.h"

typedef struct Opts {
    double p;
    bool vertical;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, p, "0.5", 0, 1, "probability of flipping an image"),
    KILN_FIELD_BOOL(Opts, vertical, "false", "top and bottom instead of left and right"),
    KILN_FIELD_END,
};

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)scratch;
    (void)err;
    if (training && (double)kiln_rng_uniform(rng) < opts->p)
        kiln_image_flip(image, opts->vertical);
    return KILN_OK;
}

static KilnStatus warp(KilnInstance *self, const int64_t size[3], KilnRng *rng, bool training,
                       KilnWarp *ret, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const int axis = opts->vertical ? 1 : 0;

    (void)err;
    if (training && (double)kiln_rng_uniform(rng) < opts->p) {
        ret->matrix[axis][axis] = -1.0;
        ret->matrix[axis][2] = (double)size[1 - axis];
    }
    return KILN_OK;
}

static const KilnTransformOps ops = { .apply = apply, .kind = KILN_TRANSFORM_MOVES, .warp = warp };

const KilnComponent kiln_transform_flip = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "flip",
    .summary = "Flip at random in training",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.transform = &ops,
};

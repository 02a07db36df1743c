/* Looks at images from a random side in training (torchvision's RandomPerspective). */
#include "kiln.h"
#include "kiln/images/image_ops.h"

#include <math.h>

typedef struct Opts {
    double distortion, p, fill;
    int64_t interpolation;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, distortion, "0.5", 0, 1,
                   "how far the corners move inwards, in parts of half the width and height"),
    KILN_FIELD_F64(Opts, p, "0.5", 0, 1, "probability of changing an image"),
    KILN_FIELD_ENUM(Opts, interpolation, "bilinear", kiln_warp_filters, "between pixels"),
    KILN_FIELD_F64(Opts, fill, "0", -1e6, 1e6, "value of pixels from outside of the image"),
    KILN_FIELD_END,
};

/* Where the corners go: clockwise from the left upper one. */
static void draw_corners(const Opts *opts, double height, double width, KilnRng *rng,
                         double ret[4][2])
{
    const uint32_t down = (uint32_t)(opts->distortion * floor(height / 2)) + 1;
    const uint32_t right = (uint32_t)(opts->distortion * floor(width / 2)) + 1;

    for (int i = 0; i < 4; i++) {
        const double x = kiln_rng_below(rng, right), y = kiln_rng_below(rng, down);

        ret[i][0] = i == 1 || i == 2 ? width - 1 - x : x;
        ret[i][1] = i >= 2 ? height - 1 - y : y;
    }
}

/* False: the image stays as it is. */
static bool draw_warp(const Opts *opts, int64_t height, int64_t width, KilnRng *rng, KilnWarp *ret)
{
    const double bottom = (double)(height - 1), right = (double)(width - 1);
    const double from[4][2] = { { 0, 0 }, { right, 0 }, { right, bottom }, { 0, bottom } };
    double to[4][2];

    if ((double)kiln_rng_uniform(rng) >= opts->p)
        return false;
    draw_corners(opts, (double)height, (double)width, rng, to);
    return kiln_perspective_warp(from, to, ret); /* not of an image of a pixel's width */
}

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    KilnWarp warp;

    if (!training || !draw_warp(opts, image->height, image->width, rng, &warp))
        return KILN_OK;
    KilnStatus status = kiln_image_warp(image, &warp, (KilnImageFilter)opts->interpolation,
                                        (float)opts->fill, scratch, err);
    if (status >= 0)
        kiln_image_swap(image, scratch);
    return status;
}

static KilnStatus warp(KilnInstance *self, const int64_t size[3], KilnRng *rng, bool training,
                       KilnWarp *ret, KilnError *err)
{
    KilnWarp drawn;

    (void)err;
    if (training && draw_warp(kiln_opts(self), size[0], size[1], rng, &drawn))
        *ret = drawn;
    return KILN_OK;
}

static const KilnTransformOps ops = { .apply = apply, .warp = warp };

const KilnComponent kiln_transform_perspective = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "perspective",
    .summary = "Move the corners at random in training",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.transform = &ops,
};

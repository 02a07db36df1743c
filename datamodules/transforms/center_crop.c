/* Takes the middle of every image. */
#include "kiln.h"

#include <math.h>

typedef struct Opts {
    KilnSize size;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_IMAGE_SIZE(Opts, size, NULL, 1, 16384, "[height, width], or one number for both"),
    KILN_FIELD_END,
};

static KilnStatus check_room(KilnInstance *self, int64_t height, int64_t width, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    return height >= opts->size.height && width >= opts->size.width
               ? KILN_OK
               : kiln_error_set(err, KILN_E_SHAPE,
                                "%s: an image of %lld x %lld is smaller than %lld x %lld; put a "
                                "resize before it, or use a smaller size",
                                kiln_instance_path(self), (long long)height, (long long)width,
                                (long long)opts->size.height, (long long)opts->size.width);
}

static KilnStatus window(KilnInstance *self, const int64_t size[3], KilnRng *rng, bool training,
                         KilnImageWindow *ret, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const int64_t height = opts->size.height, width = opts->size.width;

    (void)rng;
    (void)training;
    *ret = (KilnImageWindow) { .top = (int64_t)nearbyint(0.5 * (double)(size[0] - height)),
                               .left = (int64_t)nearbyint(0.5 * (double)(size[1] - width)),
                               .height = height,
                               .width = width,
                               .to_height = height,
                               .to_width = width };
    return check_room(self, size[0], size[1], err);
}

static KilnStatus shape(KilnInstance *self, int64_t size[3], KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    KilnStatus status = size[0] > 0 ? check_room(self, size[0], size[1], err) : KILN_OK;

    size[0] = opts->size.height;
    size[1] = opts->size.width;
    return status;
}

static const KilnTransformOps ops = { .shape = shape, .window = window };

const KilnComponent kiln_transform_center_crop = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "center_crop",
    .summary = "Take the middle, without scaling",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.transform = &ops,
};

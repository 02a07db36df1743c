/* Scale every image to one size. Does not keep the ratio of the sides. */
#include "kiln.h"

typedef struct Opts {
    int64_t *size;
    size_t size_count;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64_LIST(Opts, size, NULL, 1, 16384, "[height, width], or [n] for both"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    if (opts->size_count == 1 || opts->size_count == 2)
        return KILN_OK;
    *ret_option = "size";
    return kiln_error_set(err, KILN_E_RANGE,
                          "expected [height, width], or [n] for both, got %zu numbers",
                          opts->size_count);
}

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    int64_t height = opts->size[0], width = opts->size[opts->size_count - 1];
    KilnImage before;
    KilnStatus status;

    (void)rng;
    (void)training;
    if (image->height == height && image->width == width)
        return KILN_OK;
    status = kiln_image_scale(image, height, width, scratch, err);
    if (status < 0)
        return status;
    before = *image;
    *image = *scratch;
    *scratch = before;
    return KILN_OK;
}

static KilnStatus shape(KilnInstance *self, int64_t size[3], KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)err;
    size[0] = opts->size[0];
    size[1] = opts->size[opts->size_count - 1];
    return KILN_OK;
}

static const KilnTransformOps ops = { .apply = apply, .shape = shape };

const KilnComponent kiln_transform_resize = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "resize",
    .summary = "Scale every image to one size, bilinear with antialiasing",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.transform = &ops,
};

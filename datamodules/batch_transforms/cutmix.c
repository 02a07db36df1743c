/* CutMix: a box of each image is that of another image of the batch, and the label says which
 * share of the image is whose (Yun et al., "CutMix: Regularization Strategy to Train Strong
 * Classifiers with Localizable Features", 2019). Image i goes with image n - 1 - i, and one box
 * serves the whole batch; the box is drawn as torchvision.transforms.v2.CutMix does. */
#include "kiln.h"

#include <math.h>

typedef struct Opts {
    double alpha, p;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, alpha, "1.0", 0.001, 1e6,
                   "the share that remains is drawn from Beta(alpha, alpha); 1: uniform"),
    KILN_FIELD_F64(Opts, p, "1.0", 0.0, 1.0, "probability of transforming a batch"),
    KILN_FIELD_END,
};

typedef struct Box {
    int64_t top, left, bottom, right; /* rows top..bottom-1 */
} Box;

static bool is_image(const KilnFeature *feature)
{
    return feature->dtype == KILN_F32 && feature->shape.rank == 3;
}

/* The first image feature; NULL: none. */
static const KilnFeature *find_images(const KilnDataSpec *spec)
{
    for (size_t f = 0; f < spec->n_features; f++)
        if (is_image(&spec->features[f]))
            return &spec->features[f];
    return NULL;
}

static KilnStatus setup(KilnInstance *self, const KilnDataSpec *spec, KilnError *err)
{
    (void)self;
    if (find_images(spec) != NULL)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_SHAPE,
                          "batch_transform cutmix needs images, f32 [height, width, channels], and "
                          "the datamodule has none; "
                          "mixup works on any f32 feature");
}

static int64_t clip(double x, int64_t most)
{
    return x < 0.0 ? 0 : x > (double)most ? most : (int64_t)x;
}

/* A box of about 1 - share of the image's area, centred anywhere in it. */
static Box draw_box(const KilnShape *image, double share, KilnRng *rng)
{
    const int64_t height = image->dim[0], width = image->dim[1];
    const double half = 0.5 * sqrt(1.0 - share);
    const double x = (double)kiln_rng_below(rng, (uint32_t)width);
    const double y = (double)kiln_rng_below(rng, (uint32_t)height);
    const double half_width = floor(half * (double)width);
    const double half_height = floor(half * (double)height);

    return (Box) {
        .top = clip(y - half_height, height),
        .left = clip(x - half_width, width),
        .bottom = clip(y + half_height, height),
        .right = clip(x + half_width, width),
    };
}

static void swap_box(float *a, float *b, const KilnShape *image, Box box)
{
    const int64_t channels = image->dim[2], row = image->dim[1] * channels;

    for (int64_t y = box.top; y < box.bottom; y++)
        for (int64_t i = y * row + box.left * channels; i < y * row + box.right * channels; i++) {
            float held = a[i];

            a[i] = b[i];
            b[i] = held;
        }
}

static KilnStatus apply(KilnInstance *self, const KilnBatchView *batch, KilnRng *rng,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnShape *image = &find_images(batch->spec)->shape;
    const bool chosen = (double)kiln_rng_uniform(rng) < opts->p;
    const Box box = draw_box(image, kiln_rng_beta(rng, opts->alpha, opts->alpha), rng);
    const double area = (double)((box.bottom - box.top) * (box.right - box.left));
    const float share = (float)(1.0 - area / (double)(image->dim[0] * image->dim[1]));

    (void)err;
    for (size_t f = 0; chosen && f < batch->spec->n_features; f++) {
        const KilnFeature *feature = &batch->spec->features[f];
        const int64_t width = kiln_shape_count(&feature->shape);

        if (batch->data[f] == NULL)
            continue;
        for (int64_t i = 0; i < batch->size / 2; i++) {
            float *a = (float *)batch->data[f] + i * width;
            float *b = (float *)batch->data[f] + (batch->size - 1 - i) * width;

            if (is_image(feature) && kiln_shape_equal(&feature->shape, image))
                swap_box(a, b, image, box);
            else if (f == batch->label)
                kiln_blend(a, b, width, share);
        }
    }
    return KILN_OK;
}

static const KilnBatchTransformOps ops = { .setup = setup, .apply = apply, .soft_labels = true };

const KilnComponent kiln_batch_transform_cutmix = {
    .kind = KILN_KIND_BATCH_TRANSFORM,
    .name = "cutmix",
    .summary = "Swap a box of each image with another of the batch, and mix the labels",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.batch_transform = &ops,
};

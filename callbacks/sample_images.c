/* Logs the first validation samples as a grid to the loggers that accept images. */
#include "kiln.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    char *feature;
    int64_t count, every_n_epochs;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_STR(Opts, feature, "image", "the datamodule's feature: [height, width, 1 or 3]"),
    KILN_FIELD_I64(Opts, count, "16", 1, 256, "images in the grid, at most a batch"),
    KILN_FIELD_I64(Opts, every_n_epochs, "1", 1, 1e15, "epochs between grids"),
    KILN_FIELD_END,
};

static KilnStatus setup(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnFeature *feature = kiln_spec_feature(kiln_trainer_spec(trainer), opts->feature);

    if (strcmp(kiln_trainer_phase(trainer), "fit") != 0)
        return KILN_OK;
    if (!kiln_trainer_takes(trainer, KILN_LOG_IMAGES))
        return kiln_error_set(err, KILN_E_MISSING,
                              "no logger of this run accepts images; add logger=tensorboard");
    if (feature == NULL || feature->dtype != KILN_F32 || feature->shape.rank != 3 ||
        (feature->shape.dim[2] != 1 && feature->shape.dim[2] != 3))
        return kiln_error_set(
            err, KILN_E_SHAPE,
            "feature=%s: the datamodule has no images of that name (f32 [height, width, 1 or 3])",
            opts->feature);
    return KILN_OK;
}

/* The grid's columns: about as many as rows. */
static int64_t columns_of(int64_t n)
{
    int64_t columns = 1;

    while (columns * columns < n)
        columns++;
    return columns;
}

/* Normalized pixels have no known range: the smallest is black, the largest white. */
static void draw(const float *from, int64_t n, const KilnShape *shape, const KilnPixels *grid,
                 uint8_t *to)
{
    int64_t height = shape->dim[0], width = shape->dim[1], channels = shape->dim[2];
    int64_t columns = columns_of(n);
    float low = INFINITY, high = -INFINITY;

    for (int64_t i = 0; i < n * height * width * channels; i++) {
        low = fminf(low, from[i]);
        high = fmaxf(high, from[i]);
    }
    float scale = high > low ? 255.0f / (high - low) : 0.0f;
    for (int64_t i = 0; i < n; i++)
        for (int64_t y = 0; y < height; y++)
            for (int64_t x = 0; x < width * channels; x++) {
                int64_t row = i / columns * (height + 1) + y;
                int64_t column = i % columns * (width + 1) * channels + x;

                to[row * grid->width * channels + column] =
                    (uint8_t)((from[(i * height + y) * width * channels + x] - low) * scale + 0.5f);
            }
}

static KilnStatus on_validation_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnFeature *feature = kiln_spec_feature(kiln_trainer_spec(trainer), opts->feature);
    int64_t n = 0;

    if (kiln_trainer_batch(trainer) != 1 || strcmp(kiln_trainer_phase(trainer), "validate") != 0 ||
        kiln_trainer_epoch(trainer) % opts->every_n_epochs != 0)
        return KILN_OK;
    const float *data = kiln_trainer_feature(trainer, opts->feature, &n);
    if (data == NULL || n == 0)
        return KILN_OK;
    n = n < opts->count ? n : opts->count;
    int64_t columns = columns_of(n), rows = (n + columns - 1) / columns;
    const KilnShape *shape = &feature->shape;
    KilnPixels grid = {
        .height = rows * (shape->dim[0] + 1) - 1,
        .width = columns * (shape->dim[1] + 1) - 1,
        .channels = shape->dim[2],
    };
    uint8_t *pixels = malloc((size_t)(grid.height * grid.width * grid.channels));
    if (pixels == NULL)
        return kiln_error_nomem(err, (size_t)(grid.height * grid.width * grid.channels));
    memset(pixels, 128, (size_t)(grid.height * grid.width * grid.channels));
    draw(data, n, shape, &grid, pixels);
    grid.data = pixels;
    KilnStatus status = kiln_trainer_log_image(trainer, "val/samples", &grid, err);
    free(pixels);
    return status;
}

static const KilnCallbackOps ops = {
    .setup = setup,
    .on_validation_batch_end = on_validation_batch_end,
};

const KilnComponent kiln_callback_sample_images = {
    .kind = KILN_KIND_CALLBACK,
    .name = "sample_images",
    .summary = "Log the first validation samples as a grid of images",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_sample_images, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

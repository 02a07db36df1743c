/* Draws what a segmentation predicts for the first validation images, while it trains: to files in
 * the run folder, and to the loggers that accept images. */
#include "kiln.h"
#include "kiln/images/image_masks.h"
#include "kiln/images/sample_pictures.h"

#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    char *dir, *image, *mask, *output;
    int64_t count, every_n_epochs;
    double opacity;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_STR_OPT(Opts, dir, "masks",
                       "folder in the run folder for the pictures, epoch=NNN.png; null: none"),
    KILN_FIELD_I64(Opts, count, "4", 1, 64, "images of a picture, at most a batch"),
    KILN_FIELD_I64(Opts, every_n_epochs, "1", 1, 1e15, "epochs between pictures"),
    KILN_FIELD_STR(Opts, image, "image", "the feature to draw: f32 [height, width, 1 or 3]"),
    KILN_FIELD_STR(Opts, mask, "mask",
                   "the feature with the true class of each pixel, drawn beside the prediction if "
                   "the data have it"),
    KILN_FIELD_STR(Opts, output, "classes",
                   "the step's output with the class of each pixel [height, width]"),
    KILN_FIELD_F64(Opts, opacity, "0.5", 0.0, 1.0, "of the classes' colours over the image"),
    KILN_FIELD_END,
};

enum { COLOURS = 3 };

/* What is drawn of a batch. */
typedef struct Samples {
    int64_t n;
    const float *images, *classes;
    const int32_t *masks; /* NULL: none */
    int64_t height, width, channels;
} Samples;

static const KilnOutputView *find_output(const KilnOutputView *outputs, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(outputs[i].name, name) == 0 && outputs[i].shape.rank == 3)
            return &outputs[i];
    return NULL;
}

static bool fits(const KilnFeature *feature, KilnDType dtype, int rank, const KilnShape *classes)
{
    return feature != NULL && feature->dtype == dtype && feature->shape.rank == rank &&
           feature->shape.dim[0] == classes->dim[1] && feature->shape.dim[1] == classes->dim[2];
}

static KilnStatus find_samples(const Opts *opts, const KilnTrainer *trainer, Samples *ret,
                               KilnError *err)
{
    const KilnDataSpec *spec = kiln_trainer_spec(trainer);
    const KilnFeature *image = kiln_spec_feature(spec, opts->image);
    const KilnFeature *mask = kiln_spec_feature(spec, opts->mask);
    KilnOutputView outputs[KILN_STEP_OUTPUTS];
    const size_t n_outputs = kiln_trainer_outputs(trainer, outputs);
    const KilnOutputView *classes = find_output(outputs, n_outputs, opts->output);
    int64_t n = 0, n_masks = 0;

    if (classes == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "output=%s: the task gives no class for each pixel; use task "
                              "segmentation",
                              opts->output);
    if (!fits(image, KILN_F32, 3, &classes->shape) ||
        (image->shape.dim[2] != 1 && image->shape.dim[2] != COLOURS))
        return kiln_error_set(err, KILN_E_SHAPE,
                              "image=%s: the datamodule has no images of that name and of the size "
                              "of the masks",
                              opts->image);
    *ret = (Samples) { .images = kiln_trainer_feature(trainer, opts->image, &n),
                       .classes = classes->data,
                       .masks = fits(mask, KILN_I32, 2, &classes->shape)
                                    ? kiln_trainer_feature(trainer, opts->mask, &n_masks)
                                    : NULL,
                       .height = image->shape.dim[0],
                       .width = image->shape.dim[1],
                       .channels = image->shape.dim[2] };
    ret->n = ret->images == NULL ? 0 : n < opts->count ? n : opts->count;
    return KILN_OK;
}

/* A row for each sample: the image under its true classes, if they are known, and under the
 * predicted ones. `truth` has room for the classes of an image. */
static void draw(const Samples *samples, double opacity, float *truth, const KilnSampleGrid *grid)
{
    const int64_t pixels = samples->height * samples->width;

    for (int64_t i = 0; i < samples->n; i++) {
        KilnMaskOverlay overlay = { .image = samples->images + i * pixels * samples->channels,
                                    .height = samples->height,
                                    .width = samples->width,
                                    .channels = samples->channels,
                                    .classes = truth,
                                    .opacity = opacity };

        if (samples->masks != NULL) {
            for (int64_t k = 0; k < pixels; k++)
                truth[k] = (float)samples->masks[i * pixels + k];
            kiln_mask_overlay(&overlay, kiln_sample_grid_panel(grid, i, 0).pixels, grid->whole.row);
        }
        overlay.classes = samples->classes + i * pixels;
        kiln_mask_overlay(&overlay, kiln_sample_grid_panel(grid, i, grid->columns - 1).pixels,
                          grid->whole.row);
    }
}

static KilnStatus draw_samples(const Opts *opts, KilnTrainer *trainer, const Samples *samples,
                               KilnError *err)
{
    KilnSampleGrid grid = { .rows = samples->n,
                            .columns = samples->masks != NULL ? 2 : 1,
                            .height = samples->height,
                            .width = samples->width };
    const size_t bytes = (size_t)(samples->height * samples->width) * sizeof(float);
    float *truth = malloc(bytes);
    KilnStatus status = truth != NULL ? kiln_sample_grid_init(&grid, err)
                                      : kiln_error_nomem(err, bytes);

    if (status >= 0) {
        draw(samples, opts->opacity, truth, &grid);
        status = kiln_sample_grid_show(&grid, trainer, "sample_masks", opts->dir, "val/masks", err);
    }
    kiln_sample_grid_release(&grid);
    free(truth);
    return status;
}

static KilnStatus on_validation_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    Samples samples;

    if (!kiln_sample_grid_is_due(trainer, opts->every_n_epochs))
        return KILN_OK;
    KilnStatus status = find_samples(opts, trainer, &samples, err);
    return status >= 0 && samples.n > 0 ? draw_samples(opts, trainer, &samples, err) : status;
}

static const KilnCallbackOps ops = { .on_validation_batch_end = on_validation_batch_end };

const KilnComponent kiln_callback_sample_masks = {
    .kind = KILN_KIND_CALLBACK,
    .name = "sample_masks",
    .summary = "Draw the predicted masks of the first validation images while training",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_sample_masks, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

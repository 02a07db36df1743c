/* Writes the predictions of a segmentation as pictures: the class of each pixel, and the image in
 * the colours of its classes. */
#include "kiln.h"
#include "kiln/images/image_masks.h"
#include "kiln/images/sample_pictures.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Opts {
    char *dir, *image, *output;
    double opacity;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_OUTPUT(Opts, dir, "masks",
                      "folder for the pictures: of x.png the mask x.png, which has the number of "
                      "the class in each pixel, and x-overlay.png; with the sample's number where "
                      "files share a name (x-000012.png)"),
    KILN_FIELD_STR(Opts, image, "image", "the feature to draw: f32 [height, width, 1 or 3]"),
    KILN_FIELD_STR(Opts, output, "classes",
                   "the step's output with the class of each pixel [height, width]"),
    KILN_FIELD_F64(Opts, opacity, "0.5", 0.0, 1.0, "of the classes' colours over the image"),
    KILN_FIELD_END,
};

enum { COLOURS = 3 };

typedef struct Row {
    int64_t sample;
    const float *image, *classes;
    int64_t height, width, channels;
} Row;

static KilnStatus write_row(const Opts *opts, KilnTrainer *trainer, const Row *row, uint8_t *pixels,
                            KilnError *err)
{
    const int64_t n = row->height * row->width;
    char path[KILN_PICTURE_PATH];

    for (int64_t i = 0; i < n; i++)
        pixels[i] = (uint8_t)row->classes[i];
    KilnStatus status = kiln_sample_picture_path(trainer, row->sample, opts->dir, ".png", path,
                                                 err);
    if (status >= 0)
        status = kiln_png_write(path, pixels, row->height, row->width, 1, err);
    if (status < 0)
        return status;
    kiln_mask_overlay(&(KilnMaskOverlay) { .image = row->image,
                                           .height = row->height,
                                           .width = row->width,
                                           .channels = row->channels,
                                           .classes = row->classes,
                                           .opacity = opts->opacity },
                      pixels, row->width);
    status = kiln_sample_picture_path(trainer, row->sample, opts->dir, "-overlay.png", path, err);
    return status >= 0 ? kiln_png_write(path, pixels, row->height, row->width, COLOURS, err)
                       : status;
}

static const KilnOutputView *find_output(const KilnOutputView *outputs, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(outputs[i].name, name) == 0 && outputs[i].shape.rank == 3)
            return &outputs[i];
    return NULL;
}

static KilnStatus on_predict_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)trainer;
    return mkdir(opts->dir, 0777) == 0 || errno == EEXIST ? KILN_OK
                                                          : kiln_error_errno(err, opts->dir);
}

static KilnStatus on_predict_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnFeature *feature = kiln_spec_feature(kiln_trainer_spec(trainer), opts->image);
    KilnOutputView outputs[KILN_STEP_OUTPUTS];
    const size_t n_outputs = kiln_trainer_outputs(trainer, outputs);
    const KilnOutputView *classes = find_output(outputs, n_outputs, opts->output);
    int64_t n = 0, n_images = 0;
    const int64_t *samples = kiln_trainer_batch_samples(trainer, &n);
    const float *images = kiln_trainer_feature(trainer, opts->image, &n_images);
    KilnStatus status = KILN_OK;

    if (classes == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "output=%s: the task gives no class for each pixel; use task "
                              "segmentation",
                              opts->output);
    if (images == NULL || feature->dtype != KILN_F32 || feature->shape.rank != 3 ||
        feature->shape.dim[0] != classes->shape.dim[1] ||
        feature->shape.dim[1] != classes->shape.dim[2])
        return kiln_error_set(err, KILN_E_SHAPE,
                              "image=%s: the datamodule has no images of that name and of the size "
                              "of the masks",
                              opts->image);
    const KilnShape *shape = &feature->shape;
    const int64_t pixels = shape->dim[0] * shape->dim[1];
    uint8_t *room = malloc((size_t)(pixels * COLOURS));
    if (room == NULL)
        return kiln_error_nomem(err, (size_t)(pixels * COLOURS));
    for (int64_t i = 0; i < n && status >= 0; i++) {
        const Row row = { .sample = samples[i],
                          .image = images + i * pixels * shape->dim[2],
                          .classes = classes->data + i * pixels,
                          .height = shape->dim[0],
                          .width = shape->dim[1],
                          .channels = shape->dim[2] };

        status = write_row(opts, trainer, &row, room, err);
    }
    free(room);
    return status;
}

static const KilnCallbackOps ops = {
    .on_predict_start = on_predict_start,
    .on_predict_batch_end = on_predict_batch_end,
};

const KilnComponent kiln_callback_mask_writer = {
    .kind = KILN_KIND_CALLBACK,
    .name = "mask_writer",
    .summary = "Write predicted masks, and images in the colours of their classes, as PNG",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_mask_writer, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

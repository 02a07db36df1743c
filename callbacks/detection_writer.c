/* Writes predicted images as pictures with the boxes of their detections. */
#include "kiln.h"
#include "kiln/images/detection.h"
#include "kiln/images/sample_pictures.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Opts {
    char *dir;
    double score_threshold;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_OUTPUT(Opts, dir, "detections",
                      "folder for the pictures: of x.jpg the picture x.png, with the sample's "
                      "number where files share a name (x-000012.png)"),
    KILN_FIELD_F64(Opts, score_threshold, "0.3", 0, 1, "least score of a detection to draw"),
    KILN_FIELD_END,
};

enum { COLOURS = 3, LARGEST = 4096 };

/* An image to draw on, and where coordinates of its file are in it (kiln_picture_detections). */
typedef struct Canvas {
    KilnImage image; /* read from the file */
    const float *data;
    int64_t height, width, channels;
    const float *range; /* NULL: its own */
    double place[4];
} Canvas;

/* The file itself, scaled down if it is larger than a picture can be. The task has read it before,
 * with a limit of its own. */
static KilnStatus read_file(const char *path, Canvas *ret, KilnError *err)
{
    static const float range[2] = { 0.0f, 1.0f };
    int64_t size[3];
    KilnStatus status = kiln_image_size(path, INT64_MAX, size, err);

    if (status < 0)
        return status;
    const int64_t longest = size[0] > size[1] ? size[0] : size[1];
    KilnPngForm form = {
        .channels = COLOURS, .height = size[0], .width = size[1], .max_pixels = INT64_MAX
    };
    if (longest > LARGEST) {
        form.height = (size[0] * LARGEST + longest - 1) / longest;
        form.width = (size[1] * LARGEST + longest - 1) / longest;
    }
    status = kiln_image_read(path, &form, &ret->image, err);
    if (status < 0)
        return status;
    ret->data = ret->image.data;
    ret->height = ret->image.height;
    ret->width = ret->image.width;
    ret->channels = COLOURS;
    ret->range = range;
    ret->place[0] = (double)form.width / (double)size[1];
    ret->place[1] = (double)form.height / (double)size[0];
    ret->place[2] = ret->place[3] = 0.0;
    return KILN_OK;
}

/* The sample, of data that have no file. */
static void use_sample(const float *image, const KilnShape *shape, const float *frame, Canvas *ret)
{
    ret->data = image;
    ret->height = shape->dim[0];
    ret->width = shape->dim[1];
    ret->channels = shape->dim[2];
    for (int axis = 0; axis < 2; axis++) {
        ret->place[axis] = 1.0 / (double)frame[KILN_FRAME_SCALE + axis];
        ret->place[2 + axis] = -(double)frame[KILN_FRAME_MOVE + axis] * ret->place[axis];
    }
}

static KilnStatus write_picture(const Opts *opts, KilnTrainer *trainer, const Canvas *canvas,
                                const char *json, int64_t sample, KilnError *err)
{
    const size_t bytes = (size_t)(canvas->height * canvas->width * COLOURS);
    const KilnPicture picture = { .pixels = malloc(bytes),
                                  .height = canvas->height,
                                  .width = canvas->width,
                                  .row = canvas->width };
    char path[KILN_PICTURE_PATH];

    if (picture.pixels == NULL)
        return kiln_error_nomem(err, bytes);
    kiln_picture_image(&picture, canvas->data, canvas->height, canvas->width, canvas->channels,
                       canvas->range);
    KilnStatus status = kiln_picture_detections(&picture, json, kiln_trainer_spec(trainer),
                                                canvas->place, opts->score_threshold, err);
    if (status >= 0)
        status = kiln_sample_picture_path(trainer, sample, opts->dir, ".png", path, err);
    if (status >= 0)
        status = kiln_png_write(path, picture.pixels, picture.height, picture.width, COLOURS, err);
    free(picture.pixels);
    return status;
}

static KilnStatus on_predict_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    KilnStatus status = kiln_plot_supported(err);

    (void)trainer;
    return status < 0                                       ? status
           : mkdir(opts->dir, 0777) == 0 || errno == EEXIST ? KILN_OK
                                                            : kiln_error_errno(err, opts->dir);
}

static KilnStatus on_predict_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnFeature *feature = kiln_spec_feature(kiln_trainer_spec(trainer), "image");
    int64_t n = 0, unused;
    const int64_t *samples = kiln_trainer_batch_samples(trainer, &n);
    const float *images = kiln_trainer_feature(trainer, "image", &unused);
    const float *frames = kiln_trainer_feature(trainer, "frame", &unused);
    KilnStatus status = KILN_OK;

    if (n > 0 && (kiln_trainer_detections(trainer, 0) == NULL || images == NULL || frames == NULL))
        return kiln_error_set(err, KILN_E_MISSING,
                              "the task gives no detections of images; use task detection");
    for (int64_t i = 0; i < n && status >= 0; i++) {
        const char *file = kiln_trainer_sample_name(trainer, samples[i]);
        Canvas canvas = { 0 };

        if (file != NULL && access(file, R_OK) == 0)
            status = read_file(file, &canvas, err);
        else
            use_sample(images + i * kiln_shape_count(&feature->shape), &feature->shape,
                       frames + i * KILN_FRAME_COLUMNS, &canvas);
        if (status >= 0)
            status = write_picture(opts, trainer, &canvas, kiln_trainer_detections(trainer, i),
                                   samples[i], err);
        kiln_image_release(&canvas.image);
    }
    return status;
}

static const KilnCallbackOps ops = {
    .on_predict_start = on_predict_start,
    .on_predict_batch_end = on_predict_batch_end,
};

const KilnComponent kiln_callback_detection_writer = {
    .kind = KILN_KIND_CALLBACK,
    .name = "detection_writer",
    .summary = "Write images with the boxes that a detector finds in them, as PNG",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_detection_writer, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

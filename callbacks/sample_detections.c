/* Draws what a detector finds in the first validation images, while it trains: to files in the run
 * folder, and to the loggers that accept images. */
#include "kiln.h"
#include "kiln/images/detection.h"
#include "kiln/images/sample_pictures.h"

#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    char *dir;
    int64_t count, every_n_epochs;
    double score_threshold;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_STR_OPT(Opts, dir, "detections",
                       "folder in the run folder for the pictures, epoch=NNN.png; null: none"),
    KILN_FIELD_I64(Opts, count, "4", 1, 64, "images of a picture, at most a batch"),
    KILN_FIELD_I64(Opts, every_n_epochs, "1", 1, 1e15, "epochs between pictures"),
    KILN_FIELD_F64(Opts, score_threshold, "0.3", 0, 1, "least score of a detection to draw"),
    KILN_FIELD_END,
};

enum { LEAST_WIDTH = 320 }; /* of a panel: smaller images are enlarged, to have room for labels */

/* What is drawn of a batch. */
typedef struct Samples {
    int64_t n, most; /* images, and boxes of one */
    const float *images, *boxes, *frames;
    const KilnShape *shape; /* of an image */
} Samples;

static KilnStatus setup(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)self;
    return strcmp(kiln_trainer_phase(trainer), "fit") == 0 ? kiln_plot_supported(err) : KILN_OK;
}

static KilnStatus find_samples(const Opts *opts, const KilnTrainer *trainer, Samples *ret,
                               KilnError *err)
{
    const KilnDataSpec *spec = kiln_trainer_spec(trainer);
    const KilnFeature *image = kiln_spec_feature(spec, "image");
    const KilnFeature *boxes = kiln_spec_feature(spec, "boxes");
    int64_t n = 0;

    *ret = (Samples) { .images = kiln_trainer_feature(trainer, "image", &n),
                       .boxes = kiln_trainer_feature(trainer, "boxes", &n),
                       .frames = kiln_trainer_feature(trainer, "frame", &n) };
    if (n > 0 && (kiln_trainer_detections(trainer, 0) == NULL || ret->images == NULL ||
                  ret->boxes == NULL || ret->frames == NULL))
        return kiln_error_set(err, KILN_E_MISSING,
                              "the task gives no detections of images; use task detection");
    ret->n = n < opts->count ? n : opts->count;
    if (n > 0) {
        ret->shape = &image->shape;
        ret->most = boxes->shape.dim[0];
    }
    return KILN_OK;
}

/* The true boxes of an image that are in view; `boxes` has room for all. */
static KilnStatus draw_truth(const KilnDataSpec *spec, const KilnPicture *panel, const float *truth,
                             int64_t most, double by, KilnPlotBox *boxes, KilnError *err)
{
    size_t n = 0;

    for (int64_t i = 0; i < most; i++, truth += KILN_BOX_COLUMNS) {
        const int64_t class = (int64_t)truth[KILN_BOX_CLASS];

        if (class < 0 || class >= spec->n_classes || !(truth[2] > truth[0]))
            continue;
        boxes[n] = (KilnPlotBox) { .label = spec->class_names[class], .colour = (size_t) class };
        for (int side = 0; side < 4; side++)
            boxes[n].box[side] = by * (double)truth[KILN_BOX_SAMPLE + side];
        n++;
    }
    return kiln_plot_boxes(panel, boxes, n, err);
}

/* A row for each sample: the image with its true boxes, and with those that were found. */
static KilnStatus draw(const Opts *opts, const KilnTrainer *trainer, const Samples *samples,
                       const KilnSampleGrid *grid, KilnPlotBox *boxes, KilnError *err)
{
    const KilnDataSpec *spec = kiln_trainer_spec(trainer);
    const int64_t *size = samples->shape->dim;
    const double by = (double)(grid->width / size[1]);
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; i < samples->n && status >= 0; i++) {
        const float *image = samples->images + i * size[0] * size[1] * size[2];
        const float *frame = samples->frames + i * KILN_FRAME_COLUMNS;
        const KilnPicture truth = kiln_sample_grid_panel(grid, i, 0);
        const KilnPicture found = kiln_sample_grid_panel(grid, i, 1);
        const char *json = kiln_trainer_detections(trainer, i);
        double place[4];

        for (int axis = 0; axis < 2; axis++) {
            place[axis] = by / (double)frame[KILN_FRAME_SCALE + axis];
            place[2 + axis] = -(double)frame[KILN_FRAME_MOVE + axis] * place[axis];
        }
        kiln_picture_image(&truth, image, size[0], size[1], size[2], NULL);
        kiln_picture_image(&found, image, size[0], size[1], size[2], NULL);
        status = draw_truth(spec, &truth, samples->boxes + i * samples->most * KILN_BOX_COLUMNS,
                            samples->most, by, boxes, err);
        if (status >= 0 && json != NULL)
            status = kiln_picture_detections(&found, json, spec, place, opts->score_threshold, err);
    }
    return status;
}

static KilnStatus on_validation_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    Samples samples;

    if (!kiln_sample_grid_is_due(trainer, opts->every_n_epochs))
        return KILN_OK;
    KilnStatus status = find_samples(opts, trainer, &samples, err);
    if (status < 0 || samples.n == 0)
        return status;
    const int64_t by = (LEAST_WIDTH + samples.shape->dim[1] - 1) / samples.shape->dim[1];
    const size_t bytes = (size_t)samples.most * sizeof(KilnPlotBox);
    KilnSampleGrid grid = { .rows = samples.n,
                            .columns = 2,
                            .height = samples.shape->dim[0] * by,
                            .width = samples.shape->dim[1] * by };
    KilnPlotBox *boxes = malloc(bytes);
    status = boxes != NULL ? kiln_sample_grid_init(&grid, err) : kiln_error_nomem(err, bytes);
    if (status >= 0)
        status = draw(opts, trainer, &samples, &grid, boxes, err);
    if (status >= 0)
        status = kiln_sample_grid_show(&grid, trainer, "sample_detections", opts->dir,
                                       "val/detections", err);
    kiln_sample_grid_release(&grid);
    free(boxes);
    return status;
}

static const KilnCallbackOps ops = {
    .setup = setup,
    .on_validation_batch_end = on_validation_batch_end,
};

const KilnComponent kiln_callback_sample_detections = {
    .kind = KILN_KIND_CALLBACK,
    .name = "sample_detections",
    .summary = "Draw the boxes that a detector finds in the first validation images while training",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_sample_detections, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

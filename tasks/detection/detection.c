/* Object detection: trains any model that predicts a box, the logits of its classes and its
 * centerness for each place of an image, as FCOS (Tian et al. 2019) and torchvision's fcos do:
 * sigmoid focal loss, GIoU loss, and binary cross entropy of the centerness. */
#include "kiln.h"
#include "kiln/images/detection.h"
#include "kiln/tools/row_results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KilnInstance *model, *optimizer, *scheduler;
    KilnInstance **metrics;
    size_t metrics_count;
    char *monitor;
    double radius, alpha, gamma;
    double score_threshold, nms_threshold;
    int64_t candidates, max_detections;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT(Opts, model, KILN_KIND_MODEL, "${model}", "the network"),
    KILN_FIELD_COMPONENT(Opts, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "the optimizer"),
    KILN_FIELD_COMPONENT_OPT(Opts, scheduler, KILN_KIND_SCHEDULER, "${scheduler}",
                             "the learning rate schedule; null: constant"),
    KILN_FIELD_COMPONENT_MAP(Opts, metrics, KILN_KIND_METRIC, "{map: metric/coco_map}",
                             "metrics of detections by name, logged as val/NAME, test/NAME"),
    KILN_FIELD_MONITOR(Opts, "val/map"),
    KILN_FIELD_F64(Opts, radius, "1.5", 0.1, 1e6,
                   "places nearer than so many strides to the center of a box learn it"),
    KILN_FIELD_F64(Opts, alpha, "0.25", -1, 1,
                   "focal loss: the weight of the right class, 1 - alpha of the others; -1: 1"),
    KILN_FIELD_F64(Opts, gamma, "2.0", 0, 100, "focal loss: how little easy places count"),
    KILN_FIELD_F64(Opts, score_threshold, "0.05", 0, 1, "least score of a detection"),
    KILN_FIELD_F64(Opts, nms_threshold, "0.6", 0, 1,
                   "of two detections of a class whose intersection over union is larger, only the "
                   "better one remains"),
    KILN_FIELD_I64(Opts, candidates, "1000", 1, 1000000,
                   "best detections of an image before those that overlap are removed"),
    KILN_FIELD_I64(Opts, max_detections, "100", 1, 100000, "of an image"),
    KILN_FIELD_END,
};

static const KilnTensorSpec reads[] = {
    { .name = "boxes", .content = KILN_LABEL, .dtype = KILN_F32, .axes = "boxes columns" },
    { .name = "frame", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "features" },
};
static const KilnTensorSpec feeds[] = {
    { .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "height width channels" },
};

enum { LOGITS, BOXES, CENTERNESS, PLACES, NEEDS };
static const KilnTensorSpec needs[NEEDS] = {
    [LOGITS] = { .name = "logits",
                 .content = KILN_SEQUENCE,
                 .dtype = KILN_F32,
                 .axes = "places classes" },
    [BOXES] = { .name = "boxes",
                .content = KILN_SEQUENCE,
                .dtype = KILN_F32,
                .axes = "places sides" },
    [CENTERNESS] = { .name = "centerness",
                     .content = KILN_SEQUENCE,
                     .dtype = KILN_F32,
                     .axes = "places one" },
    [PLACES] = { .name = "places",
                 .content = KILN_SEQUENCE,
                 .dtype = KILN_F32,
                 .axes = "places coordinates" },
};

static const KilnModelUse models[] = {
    { .option = "model",
      .feeds = feeds,
      .n_feeds = KILN_COUNT(feeds),
      .needs = needs,
      .n_needs = NEEDS },
};

typedef struct State {
    const char *const *class_names;
    int64_t n_classes;
    float limits[4]; /* largest coordinates: width, height, width, height */
} State;

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnFeature *image = kiln_spec_feature(data, "image");
    const int64_t sizes[NEEDS] = {
        [LOGITS] = data->n_classes, [BOXES] = 4, [CENTERNESS] = 1, [PLACES] = 3
    };

    if (data->n_classes < 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "task detection needs classes, but the data has "
                              "none");
    state->class_names = data->class_names;
    state->n_classes = data->n_classes;
    for (int i = 0; image != NULL && i < 4; i++)
        state->limits[i] = (float)image->shape.dim[1 - i % 2];
    return kiln_model_setup(opts->model, scope, models, data->features, data->n_features, sizes,
                            err);
}

/* ---- Losses ---------------------------------------------------------------------------------- */

typedef struct Outputs {
    KilnTensor *logits, *boxes, *centerness, *places;
} Outputs;

static Outputs detect(const Opts *opts, KilnStep *step)
{
    KilnModelValue values[NEEDS];

    kiln_model_forward(opts->model, step, NULL, values);
    return (Outputs) { .logits = values[LOGITS].tensor,
                       .boxes = values[BOXES].tensor,
                       .centerness = values[CENTERNESS].tensor,
                       .places = values[PLACES].tensor };
}

/* Each summed and divided by the places that have a box. */
static KilnTensor *losses(KilnInstance *self, KilnStep *step, const Outputs *outputs,
                          const char *phase)
{
    static const char *const names[] = { "loss_class", "loss_box", "loss_centerness" };
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnTensor *boxes = kiln_step_input(step, "boxes");

    if (kiln_tensor_poisoned(boxes) || kiln_tensor_poisoned(outputs->places))
        return kiln_sum(outputs->logits);
    const KilnBoxTargets targets = kiln_fcos_targets(boxes, kiln_select(outputs->places, 0, 0),
                                                     state->n_classes, opts->radius);
    KilnTensor *count = kiln_maximum(kiln_sum(targets.weight),
                                     kiln_graph_scalar(kiln_step_graph(step), 1.0));
    KilnTensor *giou = kiln_mul(kiln_giou_loss(outputs->boxes, targets.boxes), targets.weight);
    KilnTensor *centerness = kiln_reshape(outputs->centerness,
                                          *kiln_tensor_shape(targets.centerness));
    KilnTensor *parts[] = {
        kiln_sigmoid_focal(outputs->logits, targets.classes, opts->alpha, opts->gamma,
                           KILN_REDUCTION_SUM),
        kiln_sum(giou),
        kiln_bce_with_logits(centerness, targets.centerness, targets.weight, NULL,
                             KILN_REDUCTION_SUM),
    };
    KilnTensor *total = NULL;
    char name[64];

    for (size_t i = 0; i < KILN_COUNT(parts); i++) {
        parts[i] = kiln_div(parts[i], count);
        total = total != NULL ? kiln_add(total, parts[i]) : parts[i];
        snprintf(name, sizeof(name), "%s/%s", phase, names[i]);
        kiln_step_log(step, name, parts[i],
                      KILN_LOG_EPOCH | KILN_LOG_LOWER_IS_BETTER |
                          (kiln_step_training(step) ? KILN_LOG_STEP : 0));
    }
    return total;
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    const Outputs outputs = detect(kiln_opts(self), step);
    KilnTensor *loss = losses(self, step, &outputs, "train");

    kiln_step_log(step, "train/loss", loss,
                  KILN_LOG_STEP | KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    return loss;
}

/* ---- Detections ------------------------------------------------------------------------------ */

/* The detections of one image that remain, the best first. */
typedef struct Best {
    KilnTensor *boxes, *scores, *labels, *kept; /* [n, 4], [n], i32 [n]; i32 [most] numbers or -1 */
} Best;

/* `scores` [n] and `index` [n] are of places and classes together. */
static Best select_best(const Opts *opts, const State *state, KilnTensor *scores, KilnTensor *index,
                        KilnTensor *boxes)
{
    const double classes = (double)state->n_classes;
    const int64_t n = kiln_tensor_dim(scores, 0);
    const int64_t most = opts->max_detections < n ? opts->max_detections : n;
    KilnTensor *number = kiln_to_float(index);
    KilnTensor *place = kiln_floor(kiln_scale(kiln_shift(number, 0.5), 1.0 / classes));
    KilnTensor *label = kiln_cast(kiln_sub(number, kiln_scale(place, classes)), KILN_I32);
    KilnTensor *limits = kiln_graph_input(kiln_tensor_graph(scores), KILN_F32, KILN_SHAPE(4),
                                          state->limits);

    boxes = kiln_index_select(boxes, 0, kiln_cast(place, KILN_I32));
    boxes = kiln_minimum(kiln_relu(boxes), limits);
    return (Best) {
        .boxes = boxes,
        .scores = scores,
        .labels = label,
        .kept = kiln_batched_nms(boxes, scores, label, opts->nms_threshold, most).index,
    };
}

/* Keep the detections of each image for finish_step. */
static void keep_best(KilnInstance *self, KilnStep *step, const Outputs *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);

    if (kiln_tensor_poisoned(outputs->logits) || kiln_tensor_poisoned(outputs->centerness))
        return;
    const int64_t batch = kiln_tensor_dim(outputs->logits, 0);
    const int64_t all = kiln_tensor_dim(outputs->logits, 1) * state->n_classes;
    const int64_t n = opts->candidates < all ? opts->candidates : all;
    KilnTensor *scores =
        kiln_sqrt(kiln_mul(kiln_sigmoid(outputs->logits), kiln_sigmoid(outputs->centerness)));
    const KilnSorted best = kiln_topk(kiln_reshape(scores, KILN_SHAPE(batch, all)), n, 1, true);
    KilnTensor **parts = calloc((size_t)batch * 4, sizeof(KilnTensor *));

    if (parts == NULL)
        return; /* finish_step reports that nothing was kept */
    for (int64_t i = 0; i < batch; i++) {
        const Best one = select_best(opts, state, kiln_select(best.values, 0, i),
                                     kiln_select(best.indices, 0, i),
                                     kiln_select(outputs->boxes, 0, i));

        parts[i] = one.boxes;
        parts[batch + i] = one.scores;
        parts[2 * batch + i] = one.labels;
        parts[3 * batch + i] = one.kept;
    }
    kiln_step_keep(step, "boxes", kiln_stack(parts, (int)batch, 0));
    kiln_step_keep(step, "scores", kiln_stack(parts + batch, (int)batch, 0));
    kiln_step_keep(step, "labels", kiln_stack(parts + 2 * batch, (int)batch, 0));
    kiln_step_keep(step, "kept", kiln_stack(parts + 3 * batch, (int)batch, 0));
    free(parts);
}

static void evaluate(KilnInstance *self, KilnStep *step, const char *phase)
{
    const Opts *opts = kiln_opts(self);
    const Outputs outputs = detect(opts, step);

    if (kiln_step_has(step, "boxes")) {
        char name[32];

        snprintf(name, sizeof(name), "%s/loss", phase);
        kiln_step_log(step, name, losses(self, step, &outputs, phase),
                      KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
        for (size_t i = 0; i < opts->metrics_count; i++)
            kiln_step_sequence_metric(step, opts->metrics[i], KILN_LOG_PROG_BAR);
    }
    keep_best(self, step, &outputs);
}

static void validation_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, "val");
}

static void test_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, "test");
}

static void predict_step(KilnInstance *self, KilnStep *step)
{
    const Outputs outputs = detect(kiln_opts(self), step);

    keep_best(self, step, &outputs);
}

/* ---- Results --------------------------------------------------------------------------------- */

/* What a step kept, and the batch. */
typedef struct Kept {
    const float *boxes, *scores, *frames, *truth; /* truth NULL: unknown */
    const int32_t *labels, *kept;
    int64_t candidates, most, n_truth; /* of an image */
} Kept;

static KilnStatus get_kept(const KilnResults *results, Kept *ret, KilnError *err)
{
    KilnShape boxes = { 0 }, kept = { 0 }, truth = { 0 }, unused;

    *ret = (Kept) { .boxes = kiln_results_kept(results, "boxes", &boxes),
                    .scores = kiln_results_kept(results, "scores", &unused),
                    .labels = kiln_results_kept(results, "labels", &unused),
                    .kept = kiln_results_kept(results, "kept", &kept),
                    .frames = kiln_results_values(results, "frame", &unused),
                    .truth = kiln_results_values(results, "boxes", &truth) };
    ret->candidates = boxes.dim[1];
    ret->most = kept.dim[1];
    ret->n_truth = ret->truth != NULL ? truth.dim[1] : 0;
    return ret->boxes != NULL && ret->kept != NULL && ret->frames != NULL
               ? KILN_OK
               : kiln_error_set(err, KILN_E_MISSING, "the step has no detections");
}

/* A box of the sample in pixels of its file, cut at its borders. */
static void to_file(const float *box, const float *frame, float ret[4])
{
    for (int i = 0; i < 4; i++) {
        const int axis = i % 2;
        const float at = box[i] * frame[KILN_FRAME_SCALE + axis] + frame[KILN_FRAME_MOVE + axis];

        ret[i] = fminf(fmaxf(at, 0.0f), frame[KILN_FRAME_SIZE + axis]);
    }
}

/* Write the detections of image `row` in its file's pixels; returns their number. */
static int64_t detections_of(const Opts *opts, const Kept *kept, int64_t row,
                             float (*ret)[KILN_DETECTION_COLUMNS])
{
    int64_t n = 0;

    for (int64_t i = 0; i < kept->most; i++) {
        const int32_t number = kept->kept[row * kept->most + i];
        const int64_t at = row * kept->candidates + number;

        if (number < 0 || !((double)kept->scores[at] >= opts->score_threshold))
            break; /* they are sorted */
        to_file(kept->boxes + at * 4, kept->frames + row * KILN_FRAME_COLUMNS, ret[n]);
        ret[n][4] = (float)kept->labels[at];
        ret[n][5] = kept->scores[at];
        n += ret[n][2] > ret[n][0] && ret[n][3] > ret[n][1];
    }
    return n;
}

static int64_t truth_of(const Kept *kept, int64_t row, float (*ret)[KILN_TRUTH_COLUMNS])
{
    int64_t n = 0;

    for (; n < kept->n_truth; n++) {
        const float *box = kept->truth + (row * kept->n_truth + n) * KILN_BOX_COLUMNS;

        if (box[KILN_BOX_CLASS] < 0.0f)
            break;
        memcpy(ret[n], box + KILN_BOX_FILE, 4 * sizeof(float));
        ret[n][4] = box[KILN_BOX_CLASS];
        ret[n][5] = box[KILN_BOX_CROWD];
        ret[n][6] = box[KILN_BOX_AREA];
    }
    return n;
}

static KilnStatus set_json(const State *state, KilnResults *results, int64_t row,
                           float (*found)[KILN_DETECTION_COLUMNS], int64_t n, KilnError *err)
{
    KilnText json = { 0 };

    kiln_text_char(&json, '[');
    for (int64_t i = 0; i < n; i++) {
        kiln_text_printf(
            &json, "%s{\"box\": [%.7g, %.7g, %.7g, %.7g], \"label\": ", i > 0 ? ", " : "",
            (double)found[i][0], (double)found[i][1], (double)found[i][2], (double)found[i][3]);
        kiln_text_json_string(&json, state->class_names[(int64_t)found[i][4]]);
        kiln_text_printf(&json, ", \"score\": %.6g}", (double)found[i][5]);
    }
    kiln_text_char(&json, ']');
    const KilnStatus status = json.failed
                                  ? kiln_error_nomem(err, json.length)
                                  : kiln_results_set(results, "detections", row, json.data, err);
    kiln_text_release(&json);
    return status;
}

static KilnStatus finish_images(KilnInstance *self, KilnResults *results, const Kept *kept,
                                float (*found)[KILN_DETECTION_COLUMNS],
                                float (*truth)[KILN_TRUTH_COLUMNS], KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    KilnStatus status = KILN_OK;

    for (int64_t row = 0; row < kiln_results_size(results) && status >= 0; row++) {
        const int64_t sizes[2] = { detections_of(opts, kept, row, found),
                                   truth_of(kept, row, truth) };
        const KilnMetricRows rows = {
            .count = 1,
            .scores = sizes[0] > 0 ? found[0] : NULL,
            .targets = sizes[1] > 0 ? truth[0] : NULL,
            .group_sizes = sizes,
            .n_groups = 2,
        };

        status = set_json(kiln_state(self), results, row, found, sizes[0], err);
        for (size_t i = 0; i < opts->metrics_count && kept->truth != NULL && status >= 0; i++)
            status = kiln_results_metric(results, opts->metrics[i], &rows, err);
    }
    return status;
}

static KilnStatus finish_step(KilnInstance *self, KilnResults *results, KilnError *err)
{
    Kept kept;
    KilnStatus status = get_kept(results, &kept, err);

    if (status < 0)
        return status;
    float(*found)[KILN_DETECTION_COLUMNS] = malloc((size_t)(kept.most + 1) * sizeof(*found));
    float(*truth)[KILN_TRUTH_COLUMNS] = malloc((size_t)(kept.n_truth + 1) * sizeof(*truth));
    status = found != NULL && truth != NULL
                 ? finish_images(self, results, &kept, found, truth, err)
                 : kiln_error_nomem(err, (size_t)(kept.most + kept.n_truth) * sizeof(*truth));
    free(found);
    free(truth);
    return status;
}

static KilnStatus configure_optimizers(KilnInstance *self, KilnOptimizers *ret, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)err;
    *ret = (KilnOptimizers) {
        .n = 1, .use = { { .optimizer = opts->optimizer, .scheduler = opts->scheduler } }
    };
    return KILN_OK;
}

static const KilnModuleOps ops = {
    .models = models,
    .n_models = KILN_COUNT(models),
    .features = reads,
    .n_features = KILN_COUNT(reads),
    .setup = setup,
    .training_step = training_step,
    .validation_step = validation_step,
    .test_step = test_step,
    .predict_step = predict_step,
    .finish_step = finish_step,
    .configure_optimizers = configure_optimizers,
};

const KilnComponent kiln_module_detection = {
    .kind = KILN_KIND_MODULE,
    .name = "detection",
    .summary = "Object detection: FCOS's losses, and mean average precision as pycocotools",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.module = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_module_detection, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

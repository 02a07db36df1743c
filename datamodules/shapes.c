/* Coloured circles, squares and triangles on noise, with the boxes around them, for object
 * detection. Sample i of a split is a pure function of (seed, split, i) and is drawn when it is
 * asked for. */
#include "kiln.h"
#include "kiln/images/detection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    int64_t train_count, val_count, test_count, size, most;
    double noise;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "16"),
    KILN_FIELD_I64(Opts, train_count, "2000", 1, 1e9, "training images"),
    KILN_FIELD_I64(Opts, val_count, "200", 0, 1e9, "validation images"),
    KILN_FIELD_I64(Opts, test_count, "200", 0, 1e9, "test images"),
    KILN_FIELD_I64(Opts, size, "128", 32, 2048, "height and width in pixels"),
    KILN_FIELD_I64(Opts, most, "6", 1, 100, "an image has up to so many shapes; some have none"),
    KILN_FIELD_F64(Opts, noise, "0.1", 0, 1, "standard deviation of the noise on pixels of 0..1"),
    KILN_FIELD_END,
};

enum { CIRCLE, SQUARE, TRIANGLE, CLASSES };
static const char *const class_names[CLASSES] = { "circle", "square", "triangle" };

enum { IMAGE, BOXES, FRAME, FEATURES, TRIES = 20 };

typedef struct State {
    const Opts *opts;
    uint64_t seed;
    int64_t height, width, most;
    const char **class_names;
    int64_t n_classes;
    KilnFeature features[FEATURES];
    struct Samples {
        const struct State *state;
        uint32_t stream;
    } samples[KILN_SPLIT_COUNT];
} State;

typedef struct Samples Samples;

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const char *const *names = class_names;

    state->opts = opts;
    state->seed = context->seed;
    state->height = state->width = opts->size;
    state->n_classes = CLASSES;
    if (context->stage == KILN_STAGE_PREDICT) {
        const KilnFeature *image = kiln_spec_feature(context->remembered, "image");

        if (image == NULL || image->shape.rank != 3 || image->shape.dim[2] != 3)
            return kiln_error_set(
                err, KILN_E_SHAPE,
                "datamodule shapes: the checkpoint was not trained on colour images");
        state->height = image->shape.dim[0];
        state->width = image->shape.dim[1];
        state->n_classes = context->remembered->n_classes;
        names = context->remembered->class_names;
    }
    state->class_names = kiln_class_names_copy(names, state->n_classes);
    return state->class_names != NULL ? KILN_OK : kiln_error_nomem(err, (size_t)state->n_classes);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->class_names);
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    state->features[IMAGE] = (KilnFeature) { .name = "image",
                                             .content = KILN_IMAGE,
                                             .dtype = KILN_F32,
                                             .shape = KILN_SHAPE(state->height, state->width, 3) };
    state->features[BOXES] =
        (KilnFeature) { .name = "boxes",
                        .content = KILN_LABEL,
                        .dtype = KILN_F32,
                        .shape = KILN_SHAPE(state->opts->most, KILN_BOX_COLUMNS) };
    state->features[FRAME] = (KilnFeature) { .name = "frame",
                                             .content = KILN_VECTOR,
                                             .dtype = KILN_F32,
                                             .shape = KILN_SHAPE(KILN_FRAME_COLUMNS) };
    *ret = (KilnDataSpec) {
        .features = state->features,
        .n_features = FEATURES,
        .n_classes = state->n_classes,
        .class_names = state->class_names,
    };
    return KILN_OK;
}

/* ---- Drawing --------------------------------------------------------------------------------- */

typedef struct Shape {
    int class;
    float left, top, side; /* the box around it is a square */
    float colour[3];
} Shape;

/* Nearly normal, mean 0 and deviation 1: the sum of four uniform bytes. */
static float cheap_normal(KilnRng *rng)
{
    const uint32_t word = kiln_rng_u32(rng);
    const uint32_t sum = (word & 0xff) + (word >> 8 & 0xff) + (word >> 16 & 0xff) + (word >> 24);

    return ((float)sum - 510.0f) * (1.0f / 147.8f);
}

/* Whether a point of the unit square is in the shape. */
static bool covers(int class, float x, float y)
{
    if (class == CIRCLE)
        return (x - 0.5f) * (x - 0.5f) + (y - 0.5f) * (y - 0.5f) <= 0.25f;
    return class == SQUARE || fabsf(x - 0.5f) <= 0.5f * y;
}

static void draw_shape(const Shape *shape, int64_t width, float *image)
{
    const int64_t n = (int64_t)shape->side;

    for (int64_t y = 0; y < n; y++)
        for (int64_t x = 0; x < n; x++)
            if (covers(shape->class, ((float)x + 0.5f) / shape->side,
                       ((float)y + 0.5f) / shape->side))
                memcpy(image + (((int64_t)shape->top + y) * width + (int64_t)shape->left + x) * 3,
                       shape->colour, sizeof(shape->colour));
}

/* The part of the smaller of two boxes that both have. */
static float common_part(const Shape *a, const Shape *b)
{
    const float w = fminf(a->left + a->side, b->left + b->side) - fmaxf(a->left, b->left);
    const float h = fminf(a->top + a->side, b->top + b->side) - fmaxf(a->top, b->top);
    const float side = fminf(a->side, b->side);

    return w > 0.0f && h > 0.0f ? w * h / (side * side) : 0.0f;
}

/* A shape that covers little of the others; false: no room was found. */
static bool place_shape(const State *state, const Shape *others, int64_t n, KilnRng *rng,
                        Shape *ret)
{
    const float size = (float)state->opts->size;
    bool fits = false;

    for (int i = 0; i < TRIES && !fits; i++) {
        ret->class = (int)kiln_rng_below(rng, CLASSES);
        ret->side = floorf(kiln_rng_range(rng, 0.1f, 0.4f) * size);
        ret->left = floorf(kiln_rng_range(rng, 0.0f, size - ret->side));
        ret->top = floorf(kiln_rng_range(rng, 0.0f, size - ret->side));
        fits = true;
        for (int64_t k = 0; k < n; k++)
            fits = fits && common_part(ret, &others[k]) < 0.2f;
    }
    /* a colour that differs from the grey of the background */
    const int channel = (int)kiln_rng_below(rng, 3);
    for (int i = 0; i < 3; i++)
        ret->colour[i] = i == channel ? kiln_rng_range(rng, 0.7f, 1.0f)
                                      : kiln_rng_range(rng, 0.0f, 0.6f);
    return fits;
}

static void write_box(const Shape *shape, float *row)
{
    const float box[4] = { shape->left, shape->top, shape->left + shape->side,
                           shape->top + shape->side };
    const float parts[CLASSES] = { [CIRCLE] = 0.7853982f, [SQUARE] = 1.0f, [TRIANGLE] = 0.5f };

    memcpy(row + KILN_BOX_SAMPLE, box, sizeof(box));
    memcpy(row + KILN_BOX_FILE, box, sizeof(box));
    row[KILN_BOX_CLASS] = (float)shape->class;
    row[KILN_BOX_CROWD] = 0.0f;
    row[KILN_BOX_AREA] = parts[shape->class] * shape->side * shape->side;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *epoch_rng, KilnSample *sample,
                      KilnError *err)
{
    const Samples *samples = ctx;
    const State *state = samples->state;
    const int64_t size = state->opts->size, n = size * size * 3;
    float *image = sample->data[IMAGE], *boxes = sample->data[BOXES];
    Shape shapes[100];
    int64_t count = 0;
    KilnRng rng;

    (void)epoch_rng; /* the same drawing in every epoch */
    (void)err;
    kiln_rng_init(&rng, state->seed, KILN_RNG_DATA, samples->stream, (uint64_t)index);
    const int64_t wanted = kiln_rng_below(&rng, (uint32_t)state->opts->most + 1);
    const float grey = kiln_rng_range(&rng, 0.2f, 0.8f);
    for (int64_t i = 0; i < n; i++)
        image[i] = grey;
    while (count < wanted && place_shape(state, shapes, count, &rng, &shapes[count])) {
        draw_shape(&shapes[count], size, image);
        count++;
    }
    for (int64_t i = 0; i < n; i++)
        image[i] += (float)state->opts->noise * cheap_normal(&rng);
    for (int64_t i = 0; i < state->opts->most * KILN_BOX_COLUMNS; i++)
        boxes[i] = -1.0f;
    for (int64_t i = 0; i < count; i++)
        write_box(&shapes[i], boxes + i * KILN_BOX_COLUMNS);
    memcpy(sample->data[FRAME],
           (float[KILN_FRAME_COLUMNS]) { 1.0f, 1.0f, 0.0f, 0.0f, (float)size, (float)size },
           KILN_FRAME_COLUMNS * sizeof(float));
    return KILN_OK;
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);
    const int64_t counts[KILN_SPLIT_COUNT] = {
        [KILN_TRAIN] = state->opts->train_count,
        [KILN_VAL] = state->opts->val_count,
        [KILN_TEST] = state->opts->test_count,
    };

    (void)set;
    (void)err;
    state->samples[split] = (Samples) { .state = state, .stream = (uint32_t)split };
    *ret = (KilnDataset) { .count = counts[split], .ctx = &state->samples[split], .get = get };
    return KILN_OK;
}

static size_t raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    (void)self;
    *ret = &kiln_raw_image;
    return 1;
}

/* The height and width of the file that `value` has. */
static KilnStatus file_size(const KilnRawValue *value, int64_t ret[3], KilnError *err)
{
    if (value->type == KILN_RAW_PATH)
        return kiln_image_size(value->text, 0, ret, err);
    if (value->type == KILN_RAW_BYTES)
        return kiln_image_size_bytes(value->data, value->bytes, value->name, 0, ret, err);
    ret[0] = value->shape.dim[0];
    ret[1] = value->shape.dim[1];
    return KILN_OK;
}

/* Images are scaled to the size that the program draws. */
static KilnStatus preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                             KilnError *err)
{
    const State *state = kiln_state(self);
    const KilnPngForm form = { .channels = 3, .height = state->height, .width = state->width };
    float *frame = sample->data[FRAME];
    KilnImage image = { 0 };
    int64_t size[3];
    KilnStatus status = kiln_image_read_raw(&values[0], &form, &image, err);

    if (status >= 0)
        status = file_size(&values[0], size, err);
    if (status >= 0) {
        memcpy(sample->data[IMAGE], image.data,
               (size_t)(image.height * image.width * 3) * sizeof(float));
        frame[KILN_FRAME_SCALE] = (float)size[1] / (float)state->width;
        frame[KILN_FRAME_SCALE + 1] = (float)size[0] / (float)state->height;
        frame[KILN_FRAME_MOVE] = frame[KILN_FRAME_MOVE + 1] = 0.0f;
        frame[KILN_FRAME_SIZE] = (float)size[1];
        frame[KILN_FRAME_SIZE + 1] = (float)size[0];
    }
    kiln_image_release(&image);
    return status;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static const KilnTensorSpec features[] = {
    { .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "height width channels" },
    { .name = "boxes", .content = KILN_LABEL, .dtype = KILN_F32, .axes = "boxes columns" },
    { .name = "frame", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "features" },
};

static const KilnDataModuleOps ops = {
    .shareable = true,
    .features = features,
    .n_features = KILN_COUNT(features),
    .setup = setup,
    .spec = spec,
    .dataset = dataset,
    .raw_fields = raw_fields,
    .preprocess = preprocess,
    .loading = loading,
};

const KilnComponent kiln_datamodule_shapes = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "shapes",
    .summary = "Circles, squares and triangles with boxes, drawn by the program; needs no files",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_shapes, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

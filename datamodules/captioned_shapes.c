/* Drawn shapes with captions: does the caption match the picture? Neither the picture nor the
 * caption alone says so. Sample i of a split is a pure function of (seed, split, i). */
#include "kiln.h"
#include "kiln/images/draw_shapes.h"

#include <stdlib.h>
#include <string.h>

enum { COLOURS = 6, CLASSES = 2, LONGEST = 5 };

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    int64_t train_count, val_count, test_count, size;
    double noise;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "64"),
    KILN_FIELD_I64(Opts, train_count, "10000", 1, 1e9, "training samples"),
    KILN_FIELD_I64(Opts, val_count, "1000", 0, 1e9, "validation samples"),
    KILN_FIELD_I64(Opts, test_count, "2000", 0, 1e9, "test samples"),
    KILN_FIELD_I64(Opts, size, "32", 16, 256, "height and width in pixels"),
    KILN_FIELD_F64(Opts, noise, "0.05", 0, 1, "standard deviation of the noise on pixels of 0..1"),
    KILN_FIELD_END,
};

static const struct {
    const char *name;
    float rgb[3];
} colours[COLOURS] = {
    { "red", { 0.85f, 0.1f, 0.1f } },     { "green", { 0.1f, 0.7f, 0.15f } },
    { "blue", { 0.1f, 0.2f, 0.9f } },     { "yellow", { 0.95f, 0.85f, 0.1f } },
    { "purple", { 0.55f, 0.1f, 0.65f } }, { "white", { 0.95f, 0.95f, 0.95f } },
};

/* The ids of captions. Colours and shapes follow in their order. */
enum {
    PADDING,
    UNKNOWN,
    A,
    THE,
    IS,
    THERE,
    FIRST_COLOUR,
    FIRST_SHAPE = FIRST_COLOUR + COLOURS,
    WORDS = FIRST_SHAPE + KILN_SHAPE_KINDS
};
static const char *const words[WORDS] = {
    "<pad>", "<unk>",  "a",      "the",   "is",     "there",  "red",      "green",
    "blue",  "yellow", "purple", "white", "circle", "square", "triangle",
};

static const char *const class_names[CLASSES] = { "differs", "matches" };

enum { IMAGE, TOKENS, LABEL, FEATURES };

typedef struct Samples {
    const struct State *state;
    uint32_t stream; /* of random numbers, one for each split */
    int64_t count;
} Samples;

typedef struct State {
    const Opts *opts;
    uint64_t seed;
    int64_t size;
    KilnFeature features[FEATURES];
    Samples samples[KILN_SPLIT_COUNT];
    KilnRawField raw[2]; /* the image and its caption */
} State;

/* ---- Samples ----------------------------------------------------------------------------------
 */

/* What a sample shows, and what its caption says. */
typedef struct Scene {
    KilnRng rng; /* of the drawing */
    int32_t matches;
    int64_t colour, shape, said_colour, said_shape;
    int32_t caption[LONGEST];
    int64_t length;
} Scene;

/* One of n other than `not`. */
static int64_t other(KilnRng *rng, int64_t n, int64_t not )
{
    return (not +1 + (int64_t)kiln_rng_below(rng, (uint32_t)n - 1)) % n;
}

static void say(Scene *scene, uint32_t way)
{
    const int32_t colour = FIRST_COLOUR + (int32_t)scene->said_colour;
    const int32_t shape = FIRST_SHAPE + (int32_t)scene->said_shape;
    const int32_t captions[][LONGEST] = {
        { A, colour, shape },
        { THE, shape, IS, colour },
        { THERE, IS, A, colour, shape },
    };

    memcpy(scene->caption, captions[way], sizeof(scene->caption));
    scene->length = way + 3;
}

static void imagine(const Samples *samples, int64_t index, Scene *ret)
{
    KilnRng *rng = &ret->rng;

    kiln_rng_init(rng, samples->state->seed, KILN_RNG_DATA, samples->stream, (uint64_t)index);
    ret->matches = (int32_t)kiln_rng_below(rng, CLASSES);
    ret->said_colour = ret->colour = kiln_rng_below(rng, COLOURS);
    ret->said_shape = ret->shape = kiln_rng_below(rng, KILN_SHAPE_KINDS);
    if (!ret->matches && kiln_rng_below(rng, 2) == 0)
        ret->said_colour = other(rng, COLOURS, ret->colour);
    else if (!ret->matches)
        ret->said_shape = other(rng, KILN_SHAPE_KINDS, ret->shape);
    say(ret, kiln_rng_below(rng, 3));
}

static void draw(const State *state, Scene *scene, float *pixels)
{
    const float size = (float)state->size;
    KilnRng *rng = &scene->rng;
    KilnImage image = {
        .height = state->size, .width = state->size, .channels = 3, .data = pixels
    };
    const float grey = kiln_rng_range(rng, 0.05f, 0.35f);
    const float radius = size * kiln_rng_range(rng, 0.25f, 0.4f);
    KilnDrawnShape shape = {
        .kind = (KilnShapeKind)scene->shape,
        .radius = radius,
        .x = kiln_rng_range(rng, radius, size - radius),
        .y = kiln_rng_range(rng, radius, size - radius),
        .angle = kiln_rng_range(rng, -0.2f, 0.2f),
    };

    memcpy(shape.colour, colours[scene->colour].rgb, sizeof(shape.colour));
    for (int64_t i = 0; i < 3 * state->size * state->size; i++)
        pixels[i] = grey;
    kiln_draw_shape(&image, &shape);
    for (int64_t i = 0; i < 3 * state->size * state->size; i++)
        pixels[i] = 2.0f * (pixels[i] + (float)state->opts->noise * kiln_rng_normal(rng)) - 1.0f;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *epoch_rng, KilnSample *sample,
                      KilnError *err)
{
    const Samples *samples = ctx;
    Scene scene;

    (void)epoch_rng; /* the same drawing in every epoch */
    (void)err;
    imagine(samples, index, &scene);
    memcpy(sample->data[TOKENS], scene.caption, (size_t)scene.length * sizeof(int32_t));
    *(int32_t *)sample->data[LABEL] = scene.matches;
    draw(samples->state, &scene, sample->data[IMAGE]);
    return KILN_OK;
}

static int64_t label(void *ctx, int64_t index)
{
    Scene scene;

    imagine(ctx, index, &scene);
    return scene.matches;
}

static void lengths(void *ctx, int64_t index, int64_t *ret)
{
    Scene scene;

    imagine(ctx, index, &scene);
    ret[TOKENS] = scene.length;
}

/* ---- The datamodule ---------------------------------------------------------------------------
 */

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const KilnFeature *image = context->remembered != NULL
                                   ? kiln_spec_feature(context->remembered, "image")
                                   : NULL;

    state->opts = kiln_opts(self);
    state->seed = context->seed;
    state->size = image != NULL && image->shape.rank == 3 ? image->shape.dim[0] : state->opts->size;
    (void)err;
    return KILN_OK;
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    state->features[IMAGE] = (KilnFeature) { .name = "image",
                                             .content = KILN_IMAGE,
                                             .dtype = KILN_F32,
                                             .shape = KILN_SHAPE(state->size, state->size, 3) };
    state->features[TOKENS] = (KilnFeature) { .name = "tokens",
                                              .content = KILN_TOKENS,
                                              .dtype = KILN_I32,
                                              .shape = KILN_SHAPE(LONGEST),
                                              .varies = true,
                                              .pad = PADDING,
                                              .n_ids = WORDS,
                                              .id_names = words };
    state->features[LABEL] =
        (KilnFeature) { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 };
    *ret = (KilnDataSpec) { .features = state->features,
                            .n_features = FEATURES,
                            .n_classes = CLASSES,
                            .class_names = class_names };
    return KILN_OK;
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);
    const Opts *opts = state->opts;
    const int64_t counts[KILN_SPLIT_COUNT] = { opts->train_count, opts->val_count,
                                               opts->test_count };

    (void)set;
    (void)err;
    state->samples[split] =
        (Samples) { .state = state, .stream = (uint32_t)split, .count = counts[split] };
    *ret = (KilnDataset) { .count = counts[split],
                           .ctx = &state->samples[split],
                           .get = get,
                           .label = label,
                           .lengths = lengths };
    return KILN_OK;
}

/* ---- Samples of a user ------------------------------------------------------------------------
 */

static size_t raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    State *state = kiln_state(self);

    state->raw[0] = kiln_raw_image;
    state->raw[1] = (KilnRawField) { .name = "caption",
                                     .types = KILN_RAW_TEXT,
                                     .help = "a text such as \"a red circle\"" };
    *ret = state->raw;
    return KILN_COUNT(state->raw);
}

/* The ids of the words of a caption; returns their number, at least 1. */
static int64_t encode(const char *text, int32_t ret[LONGEST])
{
    int64_t n = 0;

    while (n < LONGEST && *(text += strspn(text, " \t\r\n.,")) != '\0') {
        const size_t length = strcspn(text, " \t\r\n.,");

        ret[n] = UNKNOWN;
        for (int32_t i = A; i < WORDS; i++)
            if (strlen(words[i]) == length && strncmp(words[i], text, length) == 0)
                ret[n] = i;
        n++;
        text += length;
    }
    if (n == 0)
        ret[n++] = UNKNOWN;
    return n;
}

static KilnStatus preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                             KilnError *err)
{
    const State *state = kiln_state(self);
    const KilnPngForm form = { .channels = 3, .height = state->size, .width = state->size };
    KilnImage image = { 0 };
    KilnStatus status = kiln_image_read_raw(&values[0], &form, &image, err);

    if (status >= 0)
        for (int64_t i = 0; i < 3 * state->size * state->size; i++)
            ((float *)sample->data[IMAGE])[i] = 2.0f * image.data[i] - 1.0f;
    kiln_image_release(&image);
    sample->lengths[TOKENS] = encode(values[1].text, sample->data[TOKENS]);
    return status;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static const KilnTensorSpec declared[] = {
    { .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "height width channels" },
    { .name = "tokens", .content = KILN_TOKENS, .dtype = KILN_I32, .axes = "time", .varies = true },
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "" },
};

static const KilnDataModuleOps ops = {
    .shareable = true,
    .features = declared,
    .n_features = KILN_COUNT(declared),
    .setup = setup,
    .spec = spec,
    .dataset = dataset,
    .raw_fields = raw_fields,
    .preprocess = preprocess,
    .loading = loading,
};

const KilnComponent kiln_datamodule_captioned_shapes = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "captioned_shapes",
    .summary = "Shapes drawn by the program, and captions that match or do not",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.datamodule = &ops,
};

/* The embedded data set: digits drawn from pen strokes, each sample with its own
 * wobble, slant, size, place, thickness and noise. Sample i of a split is a pure
 * function of (seed, split, i) and is drawn when it is asked for. */
#include "kiln.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLASSES 10
#define MAX_POINTS 14  /* of a stroke */
#define MAX_STROKES 3  /* of a shape */
#define MAX_SHAPES 3   /* ways to write a digit */
#define SUBDIVISIONS 4 /* straight pieces between two points of a curve */

/* Mean and deviation of the pixels drawn with the default options. */
#define PIXEL_MEAN 0.158f
#define PIXEL_STD 0.257f

/* A further validation or test set with different drawings. */
typedef struct Drawing {
    int64_t count;
    double *distortion, *noise; /* NULL: the datamodule's */
} Drawing;
typedef struct NamedDrawing {
    char *key;
    Drawing value;
} NamedDrawing;

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    int64_t train_count, val_count, test_count;
    int64_t size;
    double distortion;
    double noise;
    NamedDrawing *val_sets, *test_sets;
    size_t val_sets_count, test_sets_count;
} Opts;

static const KilnField drawing_fields[] = {
    KILN_FIELD_I64(Drawing, count, "1000", 1, 1e9, "samples"),
    KILN_FIELD_F64_OPT(Drawing, distortion, "null", 0, 2, "null: the datamodule's"),
    KILN_FIELD_F64_OPT(Drawing, noise, "null", 0, 1, "null: the datamodule's"),
    KILN_FIELD_END,
};

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "64"),
    KILN_FIELD_I64(Opts, train_count, "10000", 1, 1e9, "training samples"),
    KILN_FIELD_I64(Opts, val_count, "1000", 0, 1e9, "validation samples"),
    KILN_FIELD_I64(Opts, test_count, "2000", 0, 1e9, "test samples"),
    KILN_FIELD_I64(Opts, size, "28", 8, 256, "height and width in pixels"),
    KILN_FIELD_F64(Opts, distortion, "1.0", 0, 2,
                   "how much slant, size, position and strokes vary; 0: not at all"),
    KILN_FIELD_F64(Opts, noise, "0.15", 0, 1, "standard deviation of the noise on pixels of 0..1"),
    KILN_FIELD_STRUCT_MAP(Opts, val_sets, NamedDrawing, drawing_fields, "{}",
                          "further validation sets by name; their metrics are val/loss/NAME"),
    KILN_FIELD_STRUCT_MAP(Opts, test_sets, NamedDrawing, drawing_fields, "{}",
                          "further test sets by name; their metrics are test/loss/NAME"),
    KILN_FIELD_END,
};

/* A set of drawings: number `set` of its split; 0 is the split's own. */
typedef struct Samples {
    const struct State *state;
    uint32_t stream; /* of random numbers, one for each split and set */
    int64_t count;
    float distortion, noise;
} Samples;

typedef struct State {
    const Opts *opts;
    uint64_t seed;
    int64_t height, width;
    int64_t n_classes;
    const char **class_names;
    KilnFeature features[2]; /* of a sample */
    Samples samples[KILN_SPLIT_COUNT][KILN_MAX_SETS];
    const char *names[KILN_SPLIT_COUNT][KILN_MAX_SETS];
    const KilnPoll *poll;
} State;

/* ---- Shapes ------------------------------------------------------------------------- */

typedef struct Point {
    float x, y;
} Point;

/* Points in hundredths of the digit's box, x to the right and y down. A curve
 * runs smoothly through its points, lines go straight from one to the next. */
typedef struct Stroke {
    enum { NONE, CURVE, LINES } kind;
    int count;
    struct {
        int8_t x, y;
    } points[MAX_POINTS];
} Stroke;

typedef struct Shape {
    Stroke strokes[MAX_STROKES];
} Shape;

/* clang-format off */
static const Shape shapes[CLASSES][MAX_SHAPES] = {
    { /* 0: round, narrow, open at the top with a tail */
        { { { CURVE, 9, { {50,0}, {26,12}, {15,50}, {26,88}, {50,100}, {74,88}, {85,50}, {74,12}, {50,0} } } } },
        { { { CURVE, 9, { {55,0}, {38,10}, {27,50}, {34,90}, {50,100}, {66,88}, {73,50}, {66,12}, {52,1} } } } },
        { { { CURVE, 10, { {66,8}, {46,1}, {22,22}, {15,58}, {30,93}, {56,99}, {80,75}, {82,35}, {66,8}, {48,8} } } } },
    },
    { /* 1: a line, with a flag, with flag and foot */
        { { { LINES, 2, { {50,0}, {50,100} } } } },
        { { { LINES, 3, { {30,24}, {53,0}, {53,100} } } } },
        { { { LINES, 3, { {34,20}, {52,0}, {52,100} } }, { LINES, 2, { {30,100}, {74,100} } } } },
    },
    { /* 2: with a corner, with a loop, flat */
        { { { CURVE, 7, { {18,24}, {30,5}, {55,0}, {78,14}, {76,38}, {50,67}, {17,98} } }, { LINES, 2, { {17,98}, {84,97} } } } },
        { { { CURVE, 11, { {20,20}, {38,2}, {66,4}, {77,24}, {62,52}, {38,80}, {20,96}, {14,86}, {30,80}, {56,93}, {87,92} } } } },
        { { { CURVE, 6, { {22,12}, {48,0}, {74,8}, {78,30}, {58,60}, {22,96} } }, { CURVE, 3, { {22,96}, {50,92}, {82,99} } } } },
    },
    { /* 3: two bows, a flat top, one stroke */
        { { { CURVE, 5, { {20,12}, {46,0}, {74,14}, {70,36}, {42,47} } }, { CURVE, 6, { {42,47}, {74,56}, {82,78}, {62,98}, {34,99}, {15,86} } } } },
        { { { LINES, 3, { {20,3}, {78,3}, {44,42} } }, { CURVE, 6, { {44,42}, {74,50}, {82,74}, {62,98}, {34,98}, {15,87} } } } },
        { { { CURVE, 10, { {24,8}, {54,0}, {72,18}, {60,40}, {38,48}, {62,54}, {78,74}, {62,97}, {36,100}, {16,90} } } } },
    },
    { /* 4: open, closed, leaning */
        { { { LINES, 3, { {28,0}, {17,57}, {86,57} } }, { LINES, 2, { {68,12}, {66,100} } } } },
        { { { LINES, 4, { {63,100}, {63,0}, {12,66}, {88,66} } } } },
        { { { CURVE, 4, { {34,2}, {22,32}, {24,50}, {44,53} } }, { LINES, 2, { {44,53}, {74,48} } }, { LINES, 2, { {76,2}, {66,100} } } } },
    },
    { /* 5: with a roof, rounder, slim */
        { { { LINES, 3, { {78,2}, {28,2}, {24,45} } }, { CURVE, 6, { {24,45}, {50,37}, {77,52}, {79,78}, {54,99}, {17,91} } } } },
        { { { CURVE, 9, { {74,3}, {48,4}, {30,8}, {27,38}, {54,40}, {78,58}, {76,86}, {48,100}, {18,90} } } } },
        { { { LINES, 2, { {36,4}, {30,44} } }, { CURVE, 6, { {30,44}, {56,40}, {74,58}, {72,84}, {50,99}, {22,95} } }, { LINES, 2, { {36,4}, {80,0} } } } },
    },
    { /* 6: bent, straight back, large loop */
        { { { CURVE, 10, { {72,3}, {44,16}, {24,46}, {21,76}, {40,99}, {68,94}, {79,74}, {64,54}, {40,57}, {22,76} } } } },
        { { { LINES, 2, { {58,0}, {26,66} } }, { CURVE, 8, { {26,66}, {24,86}, {44,100}, {68,92}, {74,72}, {58,58}, {38,62}, {25,76} } } } },
        { { { CURVE, 9, { {60,0}, {32,24}, {17,62}, {32,96}, {64,97}, {82,72}, {66,46}, {38,48}, {19,70} } } } },
    },
    { /* 7: plain, with a bar, bent with a hook */
        { { { LINES, 3, { {15,3}, {82,3}, {42,100} } } } },
        { { { LINES, 3, { {18,4}, {80,3}, {44,100} } }, { LINES, 2, { {32,52}, {78,48} } } } },
        { { { CURVE, 7, { {16,18}, {20,6}, {48,7}, {80,3}, {66,30}, {50,66}, {45,100} } } } },
    },
    { /* 8: one stroke, two rings, small head */
        { { { CURVE, 13, { {72,16}, {50,0}, {26,15}, {32,36}, {54,50}, {78,70}, {70,93}, {48,100}, {24,91}, {22,70}, {46,49}, {68,34}, {73,14} } } } },
        { { { CURVE, 7, { {50,46}, {27,34}, {28,10}, {50,0}, {72,10}, {73,34}, {50,46} } }, { CURVE, 7, { {50,46}, {22,60}, {22,90}, {50,100}, {78,90}, {78,60}, {50,46} } } } },
        { { { CURVE, 12, { {64,10}, {46,2}, {34,18}, {46,38}, {72,58}, {76,84}, {52,100}, {24,88}, {26,62}, {54,40}, {68,22}, {62,7} } } } },
    },
    { /* 9: straight leg, bent leg, leaning leg */
        { { { CURVE, 8, { {75,18}, {56,1}, {30,9}, {21,32}, {38,51}, {62,44}, {75,22}, {76,10} } }, { LINES, 2, { {76,10}, {70,100} } } } },
        { { { CURVE, 12, { {76,22}, {58,2}, {32,8}, {21,30}, {36,50}, {62,44}, {76,20}, {79,46}, {74,78}, {56,98}, {34,98}, {22,88} } } } },
        { { { CURVE, 8, { {74,16}, {54,0}, {30,12}, {26,36}, {46,48}, {68,36}, {76,12}, {76,14} } }, { CURVE, 3, { {76,14}, {66,56}, {42,100} } } } },
    },
};
/* clang-format on */

/* ---- Drawing ------------------------------------------------------------------------ */

/* The pen of one sample: from the digit's box to pixels. */
typedef struct Pen {
    float xx, xy, yx, yy, x0, y0;
    float wobble; /* of a stroke's points, in the digit's box */
    float radius; /* pixels */
} Pen;

static Pen pen_choose(float amount, float size, KilnRng *rng)
{
    float angle = amount * 0.21f * kiln_rng_range(rng, -1.0f, 1.0f);
    float slant = amount * 0.32f * kiln_rng_range(rng, -1.0f, 1.0f);
    float height = size * (0.70f + amount * 0.13f * kiln_rng_range(rng, -1.0f, 1.0f));
    float width = size * (0.62f + amount * 0.15f * kiln_rng_range(rng, -1.0f, 1.0f));
    float shift = amount * 0.096f * size;
    float c = cosf(angle), s = sinf(angle);
    Pen pen = {
        .xx = c * width,
        .xy = (c * -slant - s) * height,
        .yx = s * width,
        .yy = (c - s * slant) * height,
        .wobble = amount * 0.027f,
    };

    pen.x0 = 0.5f * size + kiln_rng_range(rng, -shift, shift) - 0.5f * (pen.xx + pen.xy);
    pen.y0 = 0.5f * size + kiln_rng_range(rng, -shift, shift) - 0.5f * (pen.yx + pen.yy);
    pen.radius = size / 28.0f * (1.1f + amount * 0.48f * kiln_rng_range(rng, -1.0f, 1.0f));
    return pen;
}

static Point pen_place(const Pen *pen, float x, float y, KilnRng *rng)
{
    x += pen->wobble * kiln_rng_normal(rng);
    y += pen->wobble * kiln_rng_normal(rng);
    return (Point) { pen->xx * x + pen->xy * y + pen->x0, pen->yx * x + pen->yy * y + pen->y0 };
}

/* Lower each pixel near the piece a-b to its squared distance from it. */
static void draw_piece(Point a, Point b, float reach, int64_t size, float *distance)
{
    int64_t left = (int64_t)floorf(fminf(a.x, b.x) - reach - 0.5f);
    int64_t right = (int64_t)ceilf(fmaxf(a.x, b.x) + reach - 0.5f);
    int64_t top = (int64_t)floorf(fminf(a.y, b.y) - reach - 0.5f);
    int64_t bottom = (int64_t)ceilf(fmaxf(a.y, b.y) + reach - 0.5f);
    float dx = b.x - a.x, dy = b.y - a.y;
    float scale = 1.0f / fmaxf(dx * dx + dy * dy, 1e-6f);

    left = left < 0 ? 0 : left;
    top = top < 0 ? 0 : top;
    right = right > size - 1 ? size - 1 : right;
    bottom = bottom > size - 1 ? size - 1 : bottom;
    for (int64_t y = top; y <= bottom; y++)
        for (int64_t x = left; x <= right; x++) {
            float px = (float)x + 0.5f - a.x, py = (float)y + 0.5f - a.y;
            float along = (px * dx + py * dy) * scale;

            along = along < 0.0f ? 0.0f : along > 1.0f ? 1.0f : along;
            px -= along * dx;
            py -= along * dy;
            float squared = px * px + py * py;
            if (squared < distance[y * size + x])
                distance[y * size + x] = squared;
        }
}

/* Between b and c on the Catmull-Rom curve through a, b, c, d. */
static Point between(Point a, Point b, Point c, Point d, float t)
{
    float t2 = t * t, t3 = t2 * t;
    float wa = -0.5f * t3 + t2 - 0.5f * t, wb = 1.5f * t3 - 2.5f * t2 + 1.0f;
    float wc = -1.5f * t3 + 2.0f * t2 + 0.5f * t, wd = 0.5f * t3 - 0.5f * t2;

    return (Point) { wa * a.x + wb * b.x + wc * c.x + wd * d.x,
                     wa * a.y + wb * b.y + wc * c.y + wd * d.y };
}

static void draw_stroke(const Stroke *stroke, const Pen *pen, int64_t size, KilnRng *rng,
                        float *distance)
{
    int pieces = stroke->kind == CURVE ? SUBDIVISIONS : 1, n = stroke->count;
    Point points[MAX_POINTS];

    for (int i = 0; i < n; i++)
        points[i] = pen_place(pen, 0.01f * (float)stroke->points[i].x,
                              0.01f * (float)stroke->points[i].y, rng);
    for (int i = 0; i + 1 < n; i++) {
        Point from = points[i];

        for (int k = 1; k <= pieces; k++) {
            Point to = k == pieces
                           ? points[i + 1]
                           : between(points[i > 0 ? i - 1 : 0], points[i], points[i + 1],
                                     points[i + 2 < n ? i + 2 : n - 1], (float)k / (float)pieces);

            draw_piece(from, to, pen->radius + 0.5f, size, distance);
            from = to;
        }
    }
}

/* Nearly normal, mean 0 and deviation 1: the sum of four uniform bytes. */
static float cheap_normal(KilnRng *rng)
{
    uint32_t word = kiln_rng_u32(rng);
    uint32_t sum = (word & 0xff) + (word >> 8 & 0xff) + (word >> 16 & 0xff) + (word >> 24);

    return ((float)sum - 510.0f) * (1.0f / 147.8f);
}

/* From squared distances to grey values with noise, normalized; in place. */
static void shade(const Pen *pen, float ink, float noise, int64_t pixels, KilnRng *rng,
                  float *value)
{
    for (int64_t i = 0; i < pixels; i++) {
        float cover = pen->radius + 0.5f - sqrtf(value[i]);
        float grey = ink * (cover < 0.0f ? 0.0f : cover > 1.0f ? 1.0f : cover);

        if (noise > 0.0f)
            grey += noise * cheap_normal(rng);
        grey = grey < 0.0f ? 0.0f : grey > 1.0f ? 1.0f : grey;
        value[i] = (grey - PIXEL_MEAN) / PIXEL_STD;
    }
}

static void draw(const Samples *samples, int64_t size, uint32_t digit, KilnRng *rng, float *image)
{
    const Shape *ways = shapes[digit];
    int64_t pixels = size * size;
    uint32_t n_ways = 0;

    while (n_ways < MAX_SHAPES && ways[n_ways].strokes[0].kind != NONE)
        n_ways++;
    const Shape *shape = &ways[kiln_rng_below(rng, n_ways)];
    Pen pen = pen_choose(samples->distortion, (float)size, rng);
    float ink = kiln_rng_range(rng, 0.75f, 1.0f);
    for (int64_t i = 0; i < pixels; i++)
        image[i] = 1e6f;
    for (int i = 0; i < MAX_STROKES && shape->strokes[i].kind != NONE; i++)
        draw_stroke(&shape->strokes[i], &pen, size, rng, image);
    shade(&pen, ink, samples->noise, pixels, rng, image);
}

/* ---- The datamodule ------------------------------------------------------------------- */

static KilnStatus setup_predict(State *state, const KilnDataSpec *spec, KilnError *err)
{
    const KilnFeature *image = kiln_spec_feature(spec, "image");

    if (image == NULL || image->shape.rank != 3 || image->shape.dim[2] != 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "datamodule digits: the checkpoint was not trained on grey images");
    state->height = image->shape.dim[0];
    state->width = image->shape.dim[1];
    state->n_classes = spec->n_classes;
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const char *const *names = NULL;

    state->opts = kiln_opts(self);
    state->poll = context->poll;
    state->seed = context->seed;
    state->height = state->width = state->opts->size;
    state->n_classes = CLASSES;
    if (context->stage == KILN_STAGE_PREDICT) {
        KilnStatus status = setup_predict(state, context->remembered, err);

        if (status < 0)
            return status;
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
    state->features[0] = (KilnFeature) { .name = "image",
                                         .content = KILN_IMAGE,
                                         .dtype = KILN_F32,
                                         .shape = KILN_SHAPE(state->height, state->width, 1) };
    state->features[1] =
        (KilnFeature) { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 };
    *ret = (KilnDataSpec) {
        .features = state->features,
        .n_features = KILN_COUNT(state->features),
        .n_classes = state->n_classes,
        .class_names = state->class_names,
    };
    return KILN_OK;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *epoch_rng, KilnSample *sample,
                      KilnError *err)
{
    const Samples *samples = ctx;
    const State *state = samples->state;
    KilnRng rng;

    (void)epoch_rng; /* the same drawing in every epoch */
    (void)err;
    kiln_rng_init(&rng, state->seed, KILN_RNG_DATA, samples->stream, (uint64_t)index);
    uint32_t digit = kiln_rng_below(&rng, CLASSES);
    draw(samples, state->opts->size, digit, &rng, sample->data[0]);
    *(int32_t *)sample->data[1] = (int32_t)digit;
    return KILN_OK;
}

static int64_t label(void *ctx, int64_t index)
{
    const Samples *samples = ctx;
    KilnRng rng;

    kiln_rng_init(&rng, samples->state->seed, KILN_RNG_DATA, samples->stream, (uint64_t)index);
    return (int64_t)kiln_rng_below(&rng, CLASSES); /* the first number of get's stream */
}

/* The split's own set, and those that the options name. */
static size_t sets(KilnInstance *self, KilnSplit split, const char *const **ret_names)
{
    State *state = kiln_state(self);
    const Opts *opts = state->opts;
    const NamedDrawing *more = split == KILN_VAL ? opts->val_sets : opts->test_sets;
    const size_t n = split == KILN_VAL    ? opts->val_sets_count
                     : split == KILN_TEST ? opts->test_sets_count
                                          : 0;

    state->names[split][0] = "";
    for (size_t i = 0; i < n; i++)
        state->names[split][i + 1] = more[i].key;
    *ret_names = state->names[split];
    return n + 1;
}

static void describe(const Opts *opts, KilnSplit split, size_t set, Samples *samples)
{
    const int64_t counts[KILN_SPLIT_COUNT] = {
        [KILN_TRAIN] = opts->train_count,
        [KILN_VAL] = opts->val_count,
        [KILN_TEST] = opts->test_count,
    };

    samples->count = counts[split];
    samples->distortion = (float)opts->distortion;
    samples->noise = (float)opts->noise;
    if (set == 0)
        return;
    const Drawing *more = split == KILN_VAL ? &opts->val_sets[set - 1].value
                                            : &opts->test_sets[set - 1].value;
    samples->count = more->count;
    if (more->distortion != NULL)
        samples->distortion = (float)*more->distortion;
    if (more->noise != NULL)
        samples->noise = (float)*more->noise;
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);
    Samples *samples = &state->samples[split][set];

    (void)err;
    *samples = (Samples) {
        .state = state,
        .stream = (uint32_t)split + KILN_SPLIT_COUNT * (uint32_t)set,
    };
    describe(state->opts, split, set, samples);
    *ret = (KilnDataset) { .count = samples->count, .ctx = samples, .get = get, .label = label };
    return KILN_OK;
}

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;
    const bool val = opts->val_sets_count >= KILN_MAX_SETS;

    *ret_option = val ? "val_sets" : "test_sets";
    return val || opts->test_sets_count >= KILN_MAX_SETS
               ? kiln_error_set(err, KILN_E_RANGE, "at most %d more sets are possible",
                                KILN_MAX_SETS - 1)
               : KILN_OK;
}

static size_t raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    (void)self;
    *ret = &kiln_raw_image;
    return 1;
}

/* White on black is expected, as it is drawn here. */
static KilnStatus preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                             KilnError *err)
{
    const State *state = kiln_state(self);
    const KilnPngForm form = { .channels = 1, .height = state->height, .width = state->width };
    KilnImage image = { 0 };
    KilnStatus status = kiln_image_read_raw(&values[0], &form, &image, err);

    if (status >= 0)
        for (int64_t i = 0; i < state->height * state->width; i++)
            ((float *)sample->data[0])[i] = (image.data[i] - PIXEL_MEAN) / PIXEL_STD;
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
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "" },
};

static const KilnDataModuleOps ops = {
    .shareable = true,
    .features = features,
    .n_features = KILN_COUNT(features),
    .setup = setup,
    .spec = spec,
    .sets = sets,
    .dataset = dataset,
    .raw_fields = raw_fields,
    .preprocess = preprocess,
    .loading = loading,
};

const KilnComponent kiln_datamodule_digits = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "digits",
    .summary = "Handwritten digits drawn by the program; needs no files",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.datamodule = &ops,
};

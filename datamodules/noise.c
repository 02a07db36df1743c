/* Random images with random labels, for measuring how fast a model trains. One block of noise is
 * drawn at the start, and each image is a slice of it, so a sample costs one copy. */
#include "kiln.h"

#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    int64_t *shape;
    size_t shape_count;
    int64_t classes, count, val_count;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "32"),
    KILN_FIELD_I64_LIST(Opts, shape, "[32, 32, 3]", 1, 100000, "height, width and channels"),
    KILN_FIELD_I64(Opts, classes, "10", 1, 1e6, "number of classes"),
    KILN_FIELD_I64(Opts, count, "1024", 1, 1e9, "training images per epoch"),
    KILN_FIELD_I64(Opts, val_count, "32", 0, 1e9, "validation images"),
    KILN_FIELD_END,
};

enum { SPARE = 65536 }; /* floats beyond one image: the number of different images */

typedef struct State {
    KilnFeature features[2]; /* the image and its label */
    int64_t n_classes;
    const char **class_names;
    float *noise;
} State;

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    if (opts->shape_count == 3)
        return KILN_OK;
    *ret_option = "shape";
    return kiln_error_set(err, KILN_E_RANGE,
                          "expected height, width and channels, such as [32, 32, 3], got %zu "
                          "numbers",
                          opts->shape_count);
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnShape shape = KILN_SHAPE(opts->shape[0], opts->shape[1], opts->shape[2]);
    int64_t size = kiln_shape_count(&shape);
    KilnRng rng;

    if (size < 0 || size >= INT64_C(1) << 31)
        return kiln_error_set(err, KILN_E_RANGE,
                              "shape: an image of 2^31 numbers or more is too large");
    state->features[0] =
        (KilnFeature) { .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .shape = shape };
    state->features[1] =
        (KilnFeature) { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 };
    state->n_classes = opts->classes;
    state->class_names = kiln_class_names_copy(NULL, opts->classes);
    state->noise = malloc((size_t)(size + SPARE) * sizeof(float));
    if (state->class_names == NULL || state->noise == NULL)
        return kiln_error_nomem(err, (size_t)(size + SPARE) * sizeof(float));
    kiln_rng_init(&rng, context->seed, KILN_RNG_USER, 0, 0);
    for (int64_t i = 0; i < size + SPARE; i++)
        state->noise[i] = kiln_rng_normal(&rng);
    return KILN_OK;
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    const State *state = kiln_state(self);

    (void)err;
    *ret = (KilnDataSpec) {
        .features = state->features,
        .n_features = KILN_COUNT(state->features),
        .n_classes = state->n_classes,
        .class_names = state->class_names,
    };
    return KILN_OK;
}

static int64_t label(void *ctx, int64_t index)
{
    const State *state = ctx;

    return index % state->n_classes;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const State *state = ctx;
    size_t bytes = (size_t)kiln_shape_count(&state->features[0].shape) * sizeof(float);

    (void)rng;
    (void)err;
    memcpy(sample->data[0], state->noise + index * 127 % SPARE, bytes);
    *(int32_t *)sample->data[1] = (int32_t)label(ctx, index);
    return KILN_OK;
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)set;
    (void)err;
    *ret = (KilnDataset) {
        .count = split == KILN_TRAIN ? opts->count
                 : split == KILN_VAL ? opts->val_count
                                     : 0,
        .ctx = kiln_state(self),
        .get = get,
        .label = label,
    };
    return KILN_OK;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->class_names);
    free(state->noise);
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
    .dataset = dataset,
    .loading = loading,
};

const KilnComponent kiln_datamodule_noise = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "noise",
    .summary = "Random images of any size, for measuring speed",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_noise, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

/* Images with boxes of objects in COCO's format (Lin et al. 2014): a JSON file of annotations for
 * each split, and folders of images. Files are decoded when a sample is read. */
#include "kiln.h"
#include "kiln/images/box_sets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    char *root, *annotations, *images;
    int64_t channels;
    KilnSize size;
    KilnInstance **transforms;
    size_t transforms_count;
    int64_t on_error, max_pixels;
} Opts;

static const char split_word[] = "SPLIT";

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "8"),
    KILN_FIELD_PATH(Opts, root, NULL, "folder with annotations and images"),
    KILN_FIELD_STR(Opts, annotations, "annotations/instances_SPLIT2017.json",
                   "file of annotations below root; SPLIT stands for train, val and test, of which "
                   "only train must be there"),
    KILN_FIELD_STR(Opts, images, "SPLIT2017", "folder of the images below root"),
    KILN_FIELD_I64(Opts, channels, "3", 1, 3,
                   "of images; 1: grey, 3: colour; other files are converted"),
    KILN_FIELD_IMAGE_SIZE(Opts, size, NULL, 1, 16384,
                          "scale to [height, width], or one number for both, before the "
                          "transforms"),
    KILN_FIELD_COMPONENT_LIST(Opts, transforms, KILN_KIND_TRANSFORM, "[]",
                              "applied in this order to each image; boxes follow flip, affine, "
                              "random_resized_crop, resize and center_crop"),
    KILN_FIELD_ENUM(Opts, on_error, "stop", kiln_on_error_choices,
                    "what a wrong image or annotation does: stop with its id, or skip it and count "
                    "it"),
    KILN_FIELD_I64(Opts, max_pixels, "89478485", 1, 4294967296.0,
                   "largest image to read, in pixels; a small file can hold very many"),
    KILN_FIELD_END,
};

enum { IMAGE, BOXES, FRAME, FEATURES, PATH_ROOM = 4096 };

typedef struct State {
    const Opts *opts;
    KilnImageForm form;
    uint64_t seed;
    bool augments;
    KilnBoxSet sets[KILN_SPLIT_COUNT];
    int64_t most, n_classes;
    const char **class_names;
    KilnFeature features[FEATURES];
    struct Samples {
        const struct State *state;
        const KilnBoxSet *set;
        bool training;
    } samples[KILN_SPLIT_COUNT];
} State;

typedef struct Samples Samples;

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "annotations";
    if (strstr(opts->annotations, split_word) == NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "expected a path with SPLIT in it, got \"%s\"",
                              opts->annotations);
    *ret_option = "channels";
    return opts->channels != 2
               ? KILN_OK
               : kiln_error_set(err, KILN_E_RANGE, "expected 1 (grey) or 3 (colour), got 2");
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    state->opts = opts;
    state->form = (KilnImageForm) {
        .channels = opts->channels,
        .height = opts->size.height,
        .width = opts->size.width,
        .transforms = opts->transforms,
        .n_transforms = opts->transforms_count,
        .max_pixels = opts->max_pixels,
        .skips = opts->on_error == KILN_ON_ERROR_SKIP,
    };
    return kiln_box_check_transforms(&state->form, err);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        kiln_box_set_release(&state->sets[split]);
    free(state->class_names);
}

/* root/PATTERN with the split's name for SPLIT. */
static void path_of(const Opts *opts, const char *pattern, KilnSplit split, char ret[PATH_ROOM])
{
    const char *at = strstr(pattern, split_word);

    if (at == NULL)
        snprintf(ret, PATH_ROOM, "%s/%s", opts->root, pattern);
    else
        snprintf(ret, PATH_ROOM, "%s/%.*s%s%s", opts->root, (int)(at - pattern), pattern,
                 kiln_split_name(split), at + strlen(split_word));
}

static KilnStatus read_split(State *state, KilnSplit split, const KilnPoll *poll, KilnError *err)
{
    const Opts *opts = state->opts;
    char file[PATH_ROOM], folder[PATH_ROOM];
    struct stat info;

    path_of(opts, opts->annotations, split, file);
    path_of(opts, opts->images, split, folder);
    if (split != KILN_TRAIN && stat(file, &info) < 0)
        return KILN_OK;
    KilnStatus status = kiln_coco_read(file, folder,
                                       split != KILN_TRAIN ? &state->sets[KILN_TRAIN] : NULL,
                                       state->form.skips, poll, &state->sets[split], err);
    if (status < 0)
        return status;
    const KilnBoxSet *set = &state->sets[split];
    state->most = set->most > state->most ? set->most : state->most;
    return split != KILN_TRAIN || set->starts[set->count] > 0
               ? KILN_OK
               : kiln_error_set(err, KILN_E_FORMAT, "%s: no image has a box", file);
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const char *const *names = NULL;
    KilnStatus status = KILN_OK;

    state->seed = context->seed;
    state->augments = context->stage == KILN_STAGE_FIT;
    if (context->stage == KILN_STAGE_PREDICT) {
        state->n_classes = context->remembered->n_classes;
        names = context->remembered->class_names;
    } else {
        for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++)
            status = read_split(state, (KilnSplit)split, context->poll, err);
        state->n_classes = state->sets[KILN_TRAIN].n_classes;
        names = (const char *const *)state->sets[KILN_TRAIN].classes;
    }
    if (status < 0)
        return status;
    state->most = state->most > 0 ? state->most : 1;
    state->class_names = kiln_class_names_copy(names, state->n_classes);
    return state->class_names != NULL ? KILN_OK : kiln_error_nomem(err, (size_t)state->n_classes);
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    state->features[IMAGE] = (KilnFeature) {
        .name = "image",
        .content = KILN_IMAGE,
        .dtype = KILN_F32,
        .shape = KILN_SHAPE(state->form.height, state->form.width, state->form.channels)
    };
    state->features[BOXES] = (KilnFeature) { .name = "boxes",
                                             .content = KILN_LABEL,
                                             .dtype = KILN_F32,
                                             .shape = KILN_SHAPE(state->most, KILN_BOX_COLUMNS) };
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

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Samples *samples = ctx;
    const KilnBoxSet *set = samples->set;
    const int64_t first = set->starts[index];
    const KilnRawValue value = { .name = set->paths[index],
                                 .type = KILN_RAW_PATH,
                                 .text = set->paths[index] };

    return kiln_box_image_read(
        &samples->state->form, &value, set->boxes + first * KILN_TRUTH_COLUMNS,
        set->starts[index + 1] - first, samples->state->most, samples->training, rng,
        sample->data[IMAGE], sample->data[BOXES], sample->data[FRAME], err);
}

static const char *name(void *ctx, int64_t index)
{
    return ((const Samples *)ctx)->set->paths[index];
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);
    Samples *samples = &state->samples[split];

    (void)set;
    (void)err;
    *samples = (Samples) { .state = state,
                           .set = &state->sets[split],
                           .training = split == KILN_TRAIN && state->augments };
    *ret = (KilnDataset) { .count = samples->set->count, .ctx = samples, .get = get, .name = name };
    return KILN_OK;
}

static size_t raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    (void)self;
    *ret = &kiln_raw_image;
    return 1;
}

static KilnStatus preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                             KilnError *err)
{
    const State *state = kiln_state(self);
    KilnRng unused;

    kiln_rng_init(&unused, state->seed, KILN_RNG_AUGMENT, 0, 0);
    return kiln_box_image_read(&state->form, &values[0], NULL, 0, 0, false, &unused,
                               sample->data[IMAGE], NULL, sample->data[FRAME], err);
}

static void left_out(KilnInstance *self, void (*add)(void *ctx, const KilnOmission *omission),
                     void *ctx)
{
    State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        const KilnBoxSet *set = &state->sets[split];
        KilnOmission omission = { .example = set->example, .reason = "something is wrong there" };

        omission.what = "images";
        omission.count = set->skipped_images;
        if (omission.count > 0)
            add(ctx, &omission);
        omission.what = "annotations";
        omission.count = set->skipped_boxes;
        if (omission.count > 0)
            add(ctx, &omission);
    }
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
    .features = features,
    .n_features = KILN_COUNT(features),
    .setup = setup,
    .spec = spec,
    .dataset = dataset,
    .raw_fields = raw_fields,
    .preprocess = preprocess,
    .loading = loading,
    .left_out = left_out,
};

const KilnComponent kiln_datamodule_coco = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "coco",
    .summary = "Images with boxes of objects in COCO's JSON, for detection",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .init = init,
    .release = release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_coco, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

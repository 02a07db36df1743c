/* Images and their masks in two folders, for segmentation: the pixels of a mask are classes. Files
 * are decoded when a sample is read. */
#include "kiln.h"
#include "kiln/tools/image_masks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    char *root, *images, *masks;
    char **classes;
    size_t classes_count;
    int64_t *ignore;
    size_t ignore_count;
    int64_t channels;
    KilnSize *size;
    KilnInstance **transforms;
    size_t transforms_count;
    double val_fraction;
    int64_t max_pixels;
} Opts;

static const char split_word[] = "SPLIT";

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "8"),
    KILN_FIELD_PATH(Opts, root, NULL, "folder with images and masks"),
    KILN_FIELD_STR(Opts, images, "images/SPLIT",
                   "folder of the images below root; SPLIT stands for train, val and test"),
    KILN_FIELD_STR(Opts, masks, "masks/SPLIT",
                   "folder of the masks below root: PNG files of the images' names, with a palette "
                   "or grey values, that have the number of the class in each pixel"),
    KILN_FIELD_STR_LIST(Opts, classes, NULL, "names of the classes 0, 1, ..."),
    KILN_FIELD_I64_LIST(Opts, ignore, "[255]", 0, 255,
                        "values of pixels without class, which losses and metrics leave out"),
    KILN_FIELD_I64(Opts, channels, "3", 1, 3,
                   "of images; 1: grey, 3: colour; other files are converted"),
    KILN_FIELD_IMAGE_SIZE_OPT(Opts, size, "null", 1, 16384,
                              "scale to [height, width], or one number for both, before the "
                              "transforms; null: do not scale"),
    KILN_FIELD_COMPONENT_LIST(Opts, transforms, KILN_KIND_TRANSFORM, "[]",
                              "applied in this order to each image, and those that move pixels "
                              "(crop, flip) to its mask"),
    KILN_FIELD_F64(Opts, val_fraction, "0.1", 0, 0.9,
                   "fraction of the training images held out for validation if there is no folder "
                   "for it"),
    KILN_FIELD_I64(Opts, max_pixels, "89478485", 1, 4294967296.0,
                   "largest image to read, in pixels; a small file can hold very many"),
    KILN_FIELD_END,
};

typedef struct State {
    const Opts *opts;
    KilnImageForm form;
    KilnMaskForm mask_form;
    KilnImageReader *reader;
    const KilnPoll *poll;
    uint64_t seed;
    bool augments; /* the samples of training */
    KilnMaskPairs pairs[KILN_SPLIT_COUNT];
    int32_t *order; /* of the training pairs: for training first, then for validation */
    int64_t n_train, n_val;
    int64_t shape[3]; /* of a sample: height, width, channels */
    KilnFeature features[2];
    /* What the datasets point to. */
    struct Samples {
        const struct State *state;
        const KilnMaskPairs *pairs;
        const int32_t *order; /* NULL: as found */
        bool training;
    } samples[KILN_SPLIT_COUNT];
} State;

typedef struct Samples Samples;

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "channels";
    if (opts->channels == 2)
        return kiln_error_set(err, KILN_E_RANGE, "expected 1 (grey) or 3 (colour), got 2");
    *ret_option = "classes";
    if (opts->classes_count < 2 || opts->classes_count > UINT8_MAX + 1)
        return kiln_error_set(err, KILN_E_RANGE, "expected the names of 2 to 256 classes, got %zu",
                              opts->classes_count);
    *ret_option = "ignore";
    for (size_t i = 0; i < opts->ignore_count; i++)
        if (opts->ignore[i] < (int64_t)opts->classes_count)
            return kiln_error_set(err, KILN_E_RANGE, "%lld is class \"%s\"",
                                  (long long)opts->ignore[i], opts->classes[opts->ignore[i]]);
    *ret_option = "images";
    if (strstr(opts->images, split_word) == NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "expected a path with SPLIT in it, got \"%s\"",
                              opts->images);
    *ret_option = "masks";
    if (strstr(opts->masks, split_word) == NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "expected a path with SPLIT in it, got \"%s\"",
                              opts->masks);
    return KILN_OK;
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    State *state = kiln_state(self);
    const Opts *opts = kiln_opts(self);

    state->opts = opts;
    state->form = (KilnImageForm) {
        .channels = opts->channels,
        .height = opts->size != NULL ? opts->size->height : -1,
        .width = opts->size != NULL ? opts->size->width : -1,
        .transforms = opts->transforms,
        .n_transforms = opts->transforms_count,
        .max_pixels = opts->max_pixels,
    };
    state->mask_form = (KilnMaskForm) {
        .image = &state->form,
        .n_classes = (int64_t)opts->classes_count,
        .ignored = opts->ignore,
        .n_ignored = opts->ignore_count,
    };
    if (kiln_mask_check_transforms(&state->form, err) < 0)
        return err->status;
    return kiln_image_reader_new(&state->form, &state->reader, err);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        kiln_mask_pairs_release(&state->pairs[split]);
    kiln_image_reader_free(state->reader);
    free(state->order);
}

/* ---- Finding files --------------------------------------------------------------------------- */

enum { PATH_ROOM = 4096 };

/* root/pattern with the split's name in place of SPLIT. */
static void folder_of(const State *state, const char *pattern, KilnSplit split, char ret[PATH_ROOM])
{
    const char *at = strstr(pattern, split_word);

    snprintf(ret, PATH_ROOM, "%s/%.*s%s%s", state->opts->root, (int)(at - pattern), pattern,
             kiln_split_name(split), at + sizeof(split_word) - 1);
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The pairs of a split; none if there is no folder of images for it. */
static KilnStatus scan(State *state, KilnSplit split, bool needed, KilnError *err)
{
    char images[PATH_ROOM], masks[PATH_ROOM];

    folder_of(state, state->opts->images, split, images);
    folder_of(state, state->opts->masks, split, masks);
    if (!is_folder(images))
        return needed ? kiln_error_set(err, KILN_E_IO,
                                       "images: %s: no such folder; expected the %s images in it",
                                       images, kiln_split_name(split))
                      : KILN_OK;
    if (!is_folder(masks))
        return kiln_error_set(err, KILN_E_IO,
                              "masks: %s: no such folder; expected the masks of the images in %s",
                              masks, images);
    return kiln_mask_pairs_scan(images, masks, state->poll, &state->pairs[split], err);
}

/* Without a folder for it, hold out a part of the training images for validation. */
static KilnStatus split_train(State *state, KilnError *err)
{
    const int64_t n = state->pairs[KILN_TRAIN].images.count;
    int64_t n_val = 0;

    if (state->pairs[KILN_VAL].images.count == 0 && state->opts->val_fraction > 0.0) {
        n_val = (int64_t)((double)n * state->opts->val_fraction + 0.5);
        n_val = n_val < 1 ? 1 : n_val;
    }
    if (n > INT32_MAX || n_val >= n)
        return kiln_error_set(err, KILN_E_RANGE,
                              "%s: %lld training images; too %s to split with val_fraction=%g",
                              state->opts->root, (long long)n, n_val >= n ? "few" : "many",
                              state->opts->val_fraction);
    state->order = malloc((size_t)n * sizeof(*state->order));
    if (state->order == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*state->order));
    state->n_train = n - n_val;
    state->n_val = n_val;
    return kiln_hold_out(n, n_val, state->seed, state->order, err);
}

static KilnStatus setup_predict(State *state, const KilnDataSpec *spec, KilnError *err)
{
    const KilnFeature *image = kiln_spec_feature(spec, "image");

    if (image == NULL || image->shape.rank != 3 || image->shape.dim[2] != state->opts->channels)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "datamodule mask_folder: the checkpoint was not trained on images of "
                              "%lld channels",
                              (long long)state->opts->channels);
    memcpy(state->shape, image->shape.dim, sizeof(state->shape));
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const KilnImageSet *sets[KILN_SPLIT_COUNT];
    int64_t decoded[3];
    KilnStatus status = KILN_OK;

    state->seed = context->seed;
    state->poll = context->poll;
    state->augments = context->stage == KILN_STAGE_FIT;
    if (context->stage == KILN_STAGE_PREDICT)
        return setup_predict(state, context->remembered, err);
    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++) {
        const bool tested = split == KILN_TEST && context->stage == KILN_STAGE_TEST;

        status = scan(state, (KilnSplit)split, split == KILN_TRAIN || tested, err);
        sets[split] = &state->pairs[split].images;
    }
    if (status >= 0)
        status = kiln_image_reader_shape(state->reader, sets, KILN_SPLIT_COUNT, state->poll,
                                         decoded, state->shape, err);
    return status < 0 ? status : split_train(state, err);
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    State *state = kiln_state(self);
    const int64_t *shape = state->shape;

    (void)err;
    state->features[0] = (KilnFeature) { .name = "image",
                                         .content = KILN_IMAGE,
                                         .dtype = KILN_F32,
                                         .shape = KILN_SHAPE(shape[0], shape[1], shape[2]) };
    state->features[1] = (KilnFeature) { .name = "mask",
                                         .content = KILN_LABEL,
                                         .dtype = KILN_I32,
                                         .shape = KILN_SHAPE(shape[0], shape[1]) };
    *ret = (KilnDataSpec) {
        .features = state->features,
        .n_features = KILN_COUNT(state->features),
        .n_classes = (int64_t)state->opts->classes_count,
        .class_names = (const char *const *)state->opts->classes,
    };
    return KILN_OK;
}

/* ---- Samples --------------------------------------------------------------------------------- */

static int64_t number_of(const Samples *samples, int64_t index)
{
    return samples->order != NULL ? samples->order[index] : index;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Samples *samples = ctx;
    const State *state = samples->state;

    return kiln_mask_pair_read(&state->mask_form, samples->pairs, number_of(samples, index),
                               state->shape, samples->training, rng, sample->data[0],
                               sample->data[1], err);
}

static const char *name(void *ctx, int64_t index)
{
    const Samples *samples = ctx;

    return samples->pairs->images.paths[number_of(samples, index)];
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);
    Samples *samples = &state->samples[split];
    const bool held_out = split == KILN_VAL && state->n_val > 0;
    const KilnSplit from = held_out ? KILN_TRAIN : split;

    (void)set;
    (void)err;
    *samples = (Samples) {
        .state = state,
        .pairs = &state->pairs[from],
        .training = split == KILN_TRAIN && state->augments,
    };
    *ret = (KilnDataset) {
        .count = samples->pairs->images.count, .ctx = samples, .get = get, .name = name
    };
    if (from == KILN_TRAIN) {
        samples->order = held_out ? state->order + state->n_train : state->order;
        ret->count = held_out ? state->n_val : state->n_train;
    }
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
    const KilnImageFile file = {
        .path = values[0].type == KILN_RAW_PATH ? values[0].text : values[0].name,
        .raw = &values[0],
        .shape = state->shape,
    };
    KilnRng unused;

    kiln_rng_init(&unused, state->seed, KILN_RNG_AUGMENT, 0, 0);
    return kiln_image_reader_read(state->reader, &file, &unused, sample->data[0], err);
}

/* An image and its mask, as floats and as bytes. */
static int64_t memory(KilnInstance *self)
{
    const State *state = kiln_state(self);
    const KilnImageSet *sets[KILN_SPLIT_COUNT];

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        sets[split] = &state->pairs[split].images;
    return 2 * kiln_image_reader_memory(state->reader, sets, KILN_SPLIT_COUNT);
}

static void left_out(KilnInstance *self, void (*add)(void *ctx, const KilnOmission *omission),
                     void *ctx)
{
    const State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        if (state->pairs[split].no_images != NULL)
            add(ctx, state->pairs[split].no_images);
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static const KilnTensorSpec features[] = {
    { .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "height width channels" },
    { .name = "mask", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "height width" },
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
    .memory = memory,
    .left_out = left_out,
};

const KilnComponent kiln_datamodule_mask_folder = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "mask_folder",
    .summary = "Images and masks in two folders, for segmentation",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .init = init,
    .release = release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_mask_folder, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

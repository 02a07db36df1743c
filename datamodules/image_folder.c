/* Images in folders: train/<class>/<name>.jpg, and optionally the same in val/ and test/; on disk
 * or in a tar. Files are decoded when a sample is read. */
#include "kiln.h"
#include "kiln/files/tar.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef enum OnError { STOP, SKIP } OnError;

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    char *root;
    int64_t channels;
    KilnSize *size;
    KilnInstance **transforms;
    size_t transforms_count;
    double val_fraction;
    int64_t max_pixels;
    KilnPairStr *val_folders, *test_folders;
    size_t val_folders_count, test_folders_count;
    int64_t on_error;
    char *cache;
} Opts;

static const KilnChoice on_errors[] = { { "stop", STOP }, { "skip", SKIP }, { NULL, 0 } };

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "64"),
    KILN_FIELD_PATH(Opts, root, NULL,
                    "folder, or a .tar, .tar.gz or .tar.zst file, with train/<class>/* (PNG, JPEG, "
                    "WebP), and optionally val/ and test/"),
    KILN_FIELD_I64(
        Opts, channels, "3", 1, 3,
        "1: grey, 3: colour; other files are converted, transparency is laid over black"),
    KILN_FIELD_IMAGE_SIZE_OPT(Opts, size, "null", 1, 16384,
                              "scale to [height, width], or one number for both, before the "
                              "transforms; null: do not scale"),
    KILN_FIELD_COMPONENT_LIST(Opts, transforms, KILN_KIND_TRANSFORM, "[]",
                              "applied to each image in this order"),
    KILN_FIELD_F64(Opts, val_fraction, "0.1", 0, 0.9,
                   "fraction of train/ held out for validation if there is no val/"),
    KILN_FIELD_PATH_MAP(Opts, val_folders, "{}",
                        "further folders with <class>/* for validation, by name; their metrics "
                        "are val/loss/NAME"),
    KILN_FIELD_PATH_MAP(Opts, test_folders, "{}",
                        "further folders for the test, by name; their metrics are test/loss/NAME"),
    KILN_FIELD_I64(Opts, max_pixels, "89478485", 1, 4294967296.0,
                   "largest image to read, in pixels; a small file can hold very many"),
    KILN_FIELD_ENUM(Opts, on_error, "stop", on_errors,
                    "at an unreadable file: stop the run, or skip the file with a warning"),
    KILN_FIELD_OUTPUT_OPT(Opts, cache, "null",
                          "folder for decoded images, for later epochs and runs, or for a tar that "
                          "is unpacked; null: "
                          "decode them each time"),
    KILN_FIELD_END,
};

typedef struct Samples Samples;

/* What is below a folder of classes. */
typedef struct Folder {
    KilnImageSet files; /* zeroed: no such folder */
    KilnCache *cache;   /* of their images; NULL: none */
} Folder;

enum { SETS = KILN_SPLIT_COUNT * KILN_MAX_SETS };

typedef struct State {
    const Opts *opts;
    uint64_t seed;
    const KilnPoll *poll;
    Folder folders[KILN_SPLIT_COUNT][KILN_MAX_SETS]; /* the first is below root */
    KilnTar *tar;                                    /* root; NULL: it is a folder */
    KilnImageSource all[SETS];                       /* the images of all folders */
    const char *names[KILN_SPLIT_COUNT][KILN_MAX_SETS];
    int32_t *order; /* of train/: for training first, then for validation */
    int64_t n_train, n_val;
    bool augments;      /* the samples of training */
    int64_t shape[3];   /* of a sample: height, width, channels */
    int64_t decoded[3]; /* of an image before the transforms; -1: differs by file */
    int64_t n_classes;
    const char **class_names;
    KilnFeature features[2]; /* of a sample */
    /* What the datasets point to. */
    struct Samples {
        struct State *state;
        const KilnImageSet *set;
        bool in_tar;
        KilnCache *cache;     /* of the set; NULL: none */
        const int32_t *order; /* NULL: as in the set */
        bool training;
    } samples[KILN_SPLIT_COUNT][KILN_MAX_SETS], held_out; /* from train/, if there is no val/ */
    KilnImageReader *reader;
} State;

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "channels";
    if (opts->channels == 2)
        return kiln_error_set(err, KILN_E_RANGE, "expected 1 (grey) or 3 (colour), got 2");
    *ret_option = opts->val_folders_count >= KILN_MAX_SETS ? "val_folders" : "test_folders";
    if (opts->val_folders_count >= KILN_MAX_SETS || opts->test_folders_count >= KILN_MAX_SETS)
        return kiln_error_set(err, KILN_E_RANGE, "at most %d more folders are possible",
                              KILN_MAX_SETS - 1);
    return KILN_OK;
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    State *state = kiln_state(self);
    const Opts *opts = kiln_opts(self);

    state->opts = opts;
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        for (size_t set = 0; set < KILN_MAX_SETS; set++)
            state->samples[split][set] = (Samples) {
                .state = state,
                .set = &state->folders[split][set].files,
            };
    return kiln_image_reader_new(
        &(KilnImageForm) {
            .channels = opts->channels,
            .height = opts->size != NULL ? opts->size->height : -1,
            .width = opts->size != NULL ? opts->size->width : -1,
            .transforms = opts->transforms,
            .n_transforms = opts->transforms_count,
            .max_pixels = opts->max_pixels,
            .skips = opts->on_error == SKIP,
        },
        &state->reader, err);
}

/* Of the folders, for scanning them again. */
static void forget(State *state)
{
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        for (size_t set = 0; set < KILN_MAX_SETS; set++) {
            kiln_image_set_release(&state->folders[split][set].files);
            kiln_cache_close(state->folders[split][set].cache);
            state->folders[split][set] = (Folder) { 0 };
        }
    kiln_tar_close(state->tar);
    state->tar = NULL;
    free(state->order);
    state->order = NULL;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    forget(state);
    kiln_image_reader_free(state->reader);
    free(state->class_names);
}

/* ---- Finding the files ---------------------------------------------------------------- */

static KilnImageSet *files_of(State *state, KilnSplit split)
{
    return &state->folders[split][0].files;
}

/* The further folders of a split. */
static const KilnPairStr *more_of(const Opts *opts, KilnSplit split, size_t *ret_n)
{
    *ret_n = split == KILN_VAL    ? opts->val_folders_count
             : split == KILN_TEST ? opts->test_folders_count
                                  : 0;
    return split == KILN_VAL ? opts->val_folders : opts->test_folders;
}

static void name_folders(State *state)
{
    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        size_t n = 0;
        const KilnPairStr *more = more_of(state->opts, (KilnSplit)split, &n);

        state->names[split][0] = "";
        for (size_t i = 0; i < n; i++)
            state->names[split][i + 1] = more[i].key;
    }
}

static KilnStatus scan_more(State *state, KilnSplit split, KilnError *err)
{
    size_t n = 0;
    const KilnPairStr *more = more_of(state->opts, split, &n);
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < n && status >= 0; i++)
        status = kiln_image_set_scan(more[i].value, files_of(state, KILN_TRAIN), state->poll,
                                     &state->folders[split][i + 1].files, err);
    return status;
}

/* Scan root/<split>; leaves the set zeroed if the folder does not exist. */
static KilnStatus scan_split(State *state, KilnSplit split, KilnError *err)
{
    const KilnImageSet *known = split == KILN_TRAIN ? NULL : files_of(state, KILN_TRAIN);
    const char *name = kiln_split_name(split);
    char path[4096];
    struct stat st;

    if (state->tar != NULL)
        return kiln_tar_has_folder(state->tar, name)
                   ? kiln_image_set_scan_tar(state->tar, state->opts->root, name, known,
                                             state->poll, files_of(state, split), err)
                   : KILN_OK;
    int length = snprintf(path, sizeof(path), "%s/%s", state->opts->root, name);

    if (length < 0 || (size_t)length >= sizeof(path))
        return kiln_error_set(err, KILN_E_RANGE, "root: the path is longer than %zu bytes",
                              sizeof(path));
    if (stat(path, &st) != 0)
        return errno == ENOENT ? KILN_OK : kiln_error_errno(err, path);
    return kiln_image_set_scan(path, known, state->poll, files_of(state, split), err);
}

static KilnStatus open_root(State *state, KilnError *err)
{
    const char *root = state->opts->root;
    struct stat st;

    if (stat(root, &st) == 0 && S_ISDIR(st.st_mode))
        return KILN_OK;
    return kiln_is_tar(root)
               ? kiln_tar_open(root, state->opts->cache, state->poll, &state->tar, err)
               : kiln_error_set(err, KILN_E_IO,
                                "root: %s: no such folder; expected one with train/<class>/*",
                                root);
}

static KilnStatus scan(State *state, KilnStage stage, KilnError *err)
{
    const char *root = state->opts->root;
    KilnImageSet *train = files_of(state, KILN_TRAIN);
    KilnStatus status = open_root(state, err);

    for (int i = 0; i < KILN_SPLIT_COUNT && status >= 0; i++) {
        status = scan_split(state, (KilnSplit)i, err);
        if (status >= 0 && i == KILN_TRAIN && train->count == 0)
            status = kiln_error_set(err, KILN_E_IO,
                                    "datamodule image_folder: %s has no folder train/; expected "
                                    "train/<class>/* in it",
                                    root);
        if (status >= 0 && i == KILN_TRAIN && train->n_classes < 2)
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s/train: needs at least two classes, has only \"%s\"", root,
                                    train->classes[0]);
        if (status >= 0)
            status = scan_more(state, (KilnSplit)i, err);
    }
    if (status >= 0 && stage == KILN_STAGE_TEST && files_of(state, KILN_TEST)->count == 0 &&
        state->opts->test_folders_count == 0)
        status = kiln_error_set(
            err, KILN_E_IO, "datamodule image_folder: %s has no folder test/ to test with", root);
    return status;
}

/* Without val/, hold out a part of train/. */
static KilnStatus split_train(State *state, KilnError *err)
{
    int64_t n = files_of(state, KILN_TRAIN)->count, n_val = 0;

    if (files_of(state, KILN_VAL)->count == 0 && state->opts->val_fraction > 0.0) {
        n_val = (int64_t)((double)n * state->opts->val_fraction + 0.5);
        n_val = n_val < 1 ? 1 : n_val;
    }
    if (n > INT32_MAX || n_val >= n)
        return kiln_error_set(err, KILN_E_RANGE,
                              "%s/train: %lld files; too %s to split with val_fraction=%g",
                              state->opts->root, (long long)n, n_val >= n ? "few" : "many",
                              state->opts->val_fraction);
    state->order = malloc((size_t)n * sizeof(*state->order));
    if (state->order == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*state->order));
    state->n_train = n - n_val;
    state->n_val = n_val;
    return kiln_hold_out(n, n_val, state->seed, state->order, err);
}

/* Image i of the samples' set, in its order. */
static void get_image(void *ctx, int64_t i, KilnRawValue *ret)
{
    const Samples *samples = ctx;
    const char *path = samples->set->paths[i];

    if (!samples->in_tar) {
        *ret = (KilnRawValue) { .type = KILN_RAW_PATH, .text = path };
        return;
    }
    const KilnTar *tar = samples->state->tar;
    const int64_t at = kiln_tar_find(tar, path + strlen(samples->state->opts->root) + 1);
    const KilnTarMember member = kiln_tar_member(tar, at);
    *ret = (KilnRawValue) {
        .type = KILN_RAW_BYTES, .name = path, .data = member.data, .bytes = member.size
    };
}

static void list_images(State *state)
{
    for (int i = 0; i < SETS; i++) {
        Samples *samples = &state->samples[i / KILN_MAX_SETS][i % KILN_MAX_SETS];

        samples->in_tar = state->tar != NULL && i % KILN_MAX_SETS == 0;
        state->all[i] =
            (KilnImageSource) { .count = samples->set->count, .ctx = samples, .get = get_image };
    }
}

static int64_t memory(KilnInstance *self)
{
    const State *state = kiln_state(self);

    return kiln_image_reader_memory_of(state->reader, state->all, SETS);
}

static KilnStatus find_shape(State *state, KilnError *err)
{
    list_images(state);
    KilnStatus status = kiln_image_reader_shape_of(state->reader, state->all, SETS, state->poll,
                                                   state->decoded, state->shape, err);

    if (status >= 0 && state->opts->cache != NULL && state->tar == NULL && state->decoded[0] <= 0)
        status = kiln_error_set(
            err, KILN_E_SHAPE,
            "datamodule.cache needs images of one size before the transforms; set datamodule.size");
    return status;
}

/* ---- The cache ------------------------------------------------------------------------------ */

/* Decoded and scaled images of a set. Those of a tar are not kept: it is read as fast. */
static KilnStatus open_cache(State *state, KilnSplit split, size_t set, KilnError *err)
{
    Folder *folder = &state->folders[split][set];

    if (state->opts->cache == NULL || folder->cache != NULL || folder->files.count == 0 ||
        (state->tar != NULL && set == 0))
        return KILN_OK;
    return kiln_image_cache_open(
        &(KilnImageCacheSpec) {
            .folder = state->opts->cache,
            .root = state->opts->root,
            .split = split,
            .set = state->names[split][set],
            .count = folder->files.count,
            .size = { state->decoded[0], state->decoded[1], state->decoded[2] },
        },
        &folder->cache, err);
}

static void report(KilnInstance *self, void (*say)(void *ctx, const char *message), void *ctx)
{
    State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        for (size_t set = 0; set < KILN_MAX_SETS; set++)
            kiln_cache_report(state->folders[split][set].cache, "datamodule.cache", say, ctx);
}

/* ---- Setup ---------------------------------------------------------------------------------- */

static KilnStatus setup_predict(State *state, const KilnDataSpec *spec, KilnError *err)
{
    const KilnFeature *image = kiln_spec_feature(spec, "image");

    if (image == NULL || image->shape.rank != 3 || image->shape.dim[2] != state->opts->channels)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "datamodule image_folder: the checkpoint was not trained on images "
                              "of %lld channels",
                              (long long)state->opts->channels);
    memcpy(state->shape, image->shape.dim, sizeof(state->shape));
    state->n_classes = spec->n_classes;
    return KILN_OK;
}

/* Scan the folders, and their files as far as the options leave sizes open. */
static KilnStatus look(State *state, KilnStage stage, KilnError *err)
{
    KilnStatus status = scan(state, stage, err);

    if (status >= 0)
        status = find_shape(state, err);
    return status >= 0 ? split_train(state, err) : status;
}

/* Classes, the shape of samples, and the validation samples must not change during a run. */
static KilnStatus check_kept(State *state, const int64_t shape[3], int64_t files, KilnError *err)
{
    const KilnImageSet *train = files_of(state, KILN_TRAIN);
    bool same = train->n_classes == state->n_classes;

    for (int64_t i = 0; i < state->n_classes && same; i++)
        same = strcmp(train->classes[i], state->class_names[i]) == 0;
    if (!same)
        return kiln_error_set(
            err, KILN_E_FORMAT,
            "%s/train: the class folders changed during the run; files may change, classes may not",
            state->opts->root);
    if (memcmp(shape, state->shape, sizeof(state->shape)) != 0)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "%s: the images have a different size than when the run began; "
                              "datamodule.size scales all to one size",
                              state->opts->root);
    if (state->n_val > 0 && train->count != files)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s/train: has %lld files and had %lld, so a different part would be "
                              "held out for validation; put the validation files into val/",
                              state->opts->root, (long long)train->count, (long long)files);
    return KILN_OK;
}

static KilnStatus reload(KilnInstance *self, int64_t epoch, KilnError *err)
{
    State *state = kiln_state(self);
    const int64_t files = files_of(state, KILN_TRAIN)->count;
    int64_t shape[3];

    (void)epoch;
    memcpy(shape, state->shape, sizeof(shape));
    forget(state);
    KilnStatus status = look(state, KILN_STAGE_FIT, err);
    return status >= 0 ? check_kept(state, shape, files, err) : status;
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const char *const *names;
    KilnStatus status;

    state->seed = context->seed;
    state->poll = context->poll;
    state->augments = context->stage == KILN_STAGE_FIT;
    name_folders(state);
    if (context->stage == KILN_STAGE_PREDICT) {
        status = setup_predict(state, context->remembered, err);
        names = context->remembered->class_names;
    } else {
        status = look(state, context->stage, err);
        state->n_classes = files_of(state, KILN_TRAIN)->n_classes;
        names = files_of(state, KILN_TRAIN)->classes;
    }
    if (status >= 0 && context->fitted != NULL)
        status = kiln_image_reader_open(state->reader, context->fitted, err);
    else if (status >= 0)
        status = kiln_image_reader_fit(state->reader, &state->all[0], state->order, state->n_train,
                                       context->poll, err);
    if (status < 0)
        return status;
    state->class_names = kiln_class_names_copy(names, state->n_classes);
    return state->class_names != NULL ? KILN_OK : kiln_error_nomem(err, (size_t)state->n_classes);
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    state->features[0] =
        (KilnFeature) { .name = "image",
                        .content = KILN_IMAGE,
                        .dtype = KILN_F32,
                        .shape = KILN_SHAPE(state->shape[0], state->shape[1], state->shape[2]) };
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

/* ---- Samples -------------------------------------------------------------------------------- */

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    Samples *samples = ctx;
    const State *state = samples->state;
    const int64_t at = samples->order != NULL ? samples->order[index] : index;
    KilnRawValue raw;

    get_image(samples, at, &raw);
    const KilnImageFile file = {
        .path = samples->set->paths[at],
        .raw = samples->in_tar ? &raw : NULL,
        .shape = state->shape,
        .cache = samples->cache,
        .decoded = state->decoded,
        .entry = at,
        .training = samples->training,
    };
    KilnStatus status = kiln_image_reader_read(state->reader, &file, rng, sample->data[0], err);

    if (status >= 0)
        *(int32_t *)sample->data[1] = samples->set->labels[at];
    return status;
}

static const char *name(void *ctx, int64_t index)
{
    const Samples *samples = ctx;

    return samples->set->paths[samples->order != NULL ? samples->order[index] : index];
}

static int64_t label(void *ctx, int64_t index)
{
    const Samples *samples = ctx;

    return samples->set->labels[samples->order != NULL ? samples->order[index] : index];
}

static size_t sets(KilnInstance *self, KilnSplit split, const char *const **ret_names)
{
    const State *state = kiln_state(self);
    size_t n = 0;

    (void)more_of(state->opts, split, &n);
    *ret_names = state->names[split];
    return n + 1;
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);
    const bool held_out = split == KILN_VAL && set == 0 && state->n_val > 0;
    const KilnSplit from = held_out ? KILN_TRAIN : split;
    KilnStatus status = open_cache(state, from, set, err);

    if (status < 0)
        return status;
    Samples *samples = held_out ? &state->held_out : &state->samples[split][set];
    *samples = state->samples[from][set];
    samples->cache = state->folders[from][set].cache;
    samples->training = split == KILN_TRAIN && state->augments;
    samples->order = NULL;
    *ret = (KilnDataset) {
        .count = samples->set->count, .ctx = samples, .get = get, .name = name, .label = label
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

static KilnStatus save_preprocessing(KilnInstance *self, const char *dir, KilnError *err)
{
    const State *state = kiln_state(self);

    return kiln_image_reader_save(state->reader, dir, err);
}

/* ---- What is left out ----------------------------------------------------------------------- */

static void left_out(KilnInstance *self, void (*add)(void *ctx, const KilnOmission *omission),
                     void *ctx)
{
    State *state = kiln_state(self);
    const char *more_folders[SETS];
    size_t n_more = 0;

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        size_t n = 0;
        const KilnPairStr *more = more_of(state->opts, (KilnSplit)split, &n);

        for (size_t set = 0; set <= n; set++) {
            kiln_image_set_left_out(&state->folders[split][set].files, add, ctx);
            if (set > 0)
                more_folders[n_more++] = more[set - 1].value;
        }
    }
    if (files_of(state, KILN_TRAIN)->count > 0 && state->tar == NULL) /* not prediction alone */
        kiln_split_folders_left_out(state->opts->root, more_folders, n_more, add, ctx);
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
    .features = features,
    .n_features = KILN_COUNT(features),
    .setup = setup,
    .spec = spec,
    .sets = sets,
    .dataset = dataset,
    .reload = reload,
    .raw_fields = raw_fields,
    .preprocess = preprocess,
    .save_preprocessing = save_preprocessing,
    .loading = loading,
    .report = report,
    .memory = memory,
    .left_out = left_out,
};

const KilnComponent kiln_datamodule_image_folder = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "image_folder",
    .summary = "Images (PNG, JPEG, WebP) in one folder per class",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .init = init,
    .release = release,
    .ops.datamodule = &ops,
};

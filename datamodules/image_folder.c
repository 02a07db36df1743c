/* Images in folders: train/<class>/<name>.jpg, and optionally the same in val/ and test/; on disk
 * or in a tar. A folder of classes alone is all training images. Files are decoded when a sample is
 * read. */
#include "kiln.h"
#include "kiln/files/tar.h"
#include "kiln/images/image_data.h"
#include "kiln/tools/text_data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KILN_IMAGE_OPTIONS;
    char *root;
    double val_fraction;
    KilnPairStr *val_folders, *test_folders;
    size_t val_folders_count, test_folders_count;
    int64_t on_error;
    char *cache;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "64"),
    KILN_FIELD_PATH(Opts, root, NULL,
                    "folder, or a .tar, .tar.gz or .tar.zst file, with train/<class>/* (PNG, JPEG, "
                    "WebP), and optionally val/ and test/; or a folder with <class>/* for training "
                    "alone"),
    KILN_IMAGE_FIELDS(Opts, "applied to each image in this order"),
    KILN_FIELD_F64(Opts, val_fraction, "0.1", 0, 0.9,
                   "fraction of train/ held out for validation if there is no val/"),
    KILN_FIELD_PATH_MAP(Opts, val_folders, "{}",
                        "further folders with <class>/* for validation, by name; their metrics "
                        "are val/loss/NAME"),
    KILN_FIELD_PATH_MAP(Opts, test_folders, "{}",
                        "further folders for the test, by name; their metrics are test/loss/NAME"),
    KILN_FIELD_ENUM(Opts, on_error, "stop", kiln_on_error_choices,
                    "at an unreadable file: stop the run, or leave the file out and count it"),
    KILN_FIELD_OUTPUT_OPT(Opts, cache, "null",
                          "folder for decoded images, for later epochs and runs, or for a tar that "
                          "is unpacked; null: "
                          "decode them each time"),
    KILN_FIELD_END,
};

/* What is below a folder of classes. */
typedef struct Folder {
    struct State *state;
    KilnImageSet files; /* zeroed: no such folder */
    KilnCache *cache;   /* of their images; NULL: none */
} Folder;

typedef struct State {
    KilnImageState image;
    const Opts *opts;
    const KilnPoll *poll;
    Folder folders[KILN_SPLIT_COUNT][KILN_MAX_SETS]; /* the first is below root */
    KilnTar *tar;                                    /* root; NULL: it is a folder */
    bool is_flat; /* root has the folders of the classes itself */
    const char *names[KILN_SPLIT_COUNT][KILN_MAX_SETS];
    int64_t n_classes;
    const char **class_names;
} State;

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    if (kiln_image_check_channels(opts->channels, ret_option, err) < 0)
        return KILN_E_RANGE;
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
    const KilnImageForm form = KILN_IMAGE_FORM(opts, opts->on_error == KILN_ON_ERROR_SKIP);

    state->opts = opts;
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        for (size_t set = 0; set < KILN_MAX_SETS; set++)
            state->folders[split][set].state = state;
    return kiln_image_data_new(self, &form, &state->image.data, err);
}

/* Of the folders, for scanning them again. */
static void forget(State *state)
{
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        for (size_t set = 0; set < KILN_MAX_SETS; set++) {
            kiln_image_set_release(&state->folders[split][set].files);
            kiln_cache_close(state->folders[split][set].cache);
            state->folders[split][set] = (Folder) { .state = state };
        }
    kiln_tar_close(state->tar);
    state->tar = NULL;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    forget(state);
    kiln_image_data_free(state->image.data);
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

/* Without folders of splits, root may be the folder of the training classes. */
static KilnStatus scan_flat(State *state, KilnError *err)
{
    const char *root = state->opts->root;
    KilnError why = { 0 };

    state->is_flat = state->tar == NULL &&
                     kiln_image_set_scan(root, NULL, state->poll, files_of(state, KILN_TRAIN),
                                         &why) >= 0;
    if (state->is_flat || why.status == KILN_E_INTERRUPTED || why.status == KILN_E_NOMEM)
        return state->is_flat ? KILN_OK : kiln_error_set(err, why.status, "%s", why.text);
    return kiln_error_set(err, KILN_E_IO,
                          "datamodule image_folder: %s has no folder train/; expected "
                          "train/<class>/* in it%s%s%s",
                          root, state->tar == NULL ? ", or <class>/* alone (" : "",
                          state->tar == NULL ? why.text : "", state->tar == NULL ? ")" : "");
}

static KilnStatus scan(State *state, KilnStage stage, KilnError *err)
{
    const char *root = state->opts->root;
    KilnImageSet *train = files_of(state, KILN_TRAIN);
    KilnStatus status = open_root(state, err);

    state->is_flat = false;
    for (int i = 0; i < KILN_SPLIT_COUNT && status >= 0; i++) {
        status = state->is_flat ? KILN_OK : scan_split(state, (KilnSplit)i, err);
        if (status >= 0 && i == KILN_TRAIN && train->count == 0)
            status = scan_flat(state, err);
        if (status >= 0 && i == KILN_TRAIN && train->n_classes < 2)
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s%s: needs at least two classes, has only \"%s\"", root,
                                    state->is_flat ? "" : "/train", train->classes[0]);
        if (status >= 0)
            status = scan_more(state, (KilnSplit)i, err);
    }
    if (status >= 0 && stage == KILN_STAGE_TEST && files_of(state, KILN_TEST)->count == 0 &&
        state->opts->test_folders_count == 0)
        status = kiln_error_set(
            err, KILN_E_IO, "datamodule image_folder: %s has no folder test/ to test with", root);
    return status;
}

static bool in_tar(const State *state, size_t set)
{
    return state->tar != NULL && set == 0;
}

/* Image i of a folder on disk, or in the tar. */
static void get_path(void *ctx, int64_t i, KilnRawValue *ret)
{
    const Folder *folder = ctx;

    *ret = (KilnRawValue) { .type = KILN_RAW_PATH, .text = folder->files.paths[i] };
}

static void get_member(void *ctx, int64_t i, KilnRawValue *ret)
{
    const Folder *folder = ctx;
    const State *state = folder->state;
    const char *path = folder->files.paths[i];
    const int64_t at = kiln_tar_find(state->tar, path + strlen(state->opts->root) + 1);
    const KilnTarMember member = kiln_tar_member(state->tar, at);

    *ret = (KilnRawValue) {
        .type = KILN_RAW_BYTES, .name = path, .data = member.data, .bytes = member.size
    };
}

static void put_images(State *state)
{
    kiln_image_data_clear(state->image.data);
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        for (size_t set = 0; set < KILN_MAX_SETS; set++) {
            Folder *folder = &state->folders[split][set];

            kiln_image_data_put(state->image.data, (KilnSplit)split, set,
                                &(KilnImageSamples) {
                                    .images = { .count = folder->files.count,
                                                .ctx = folder,
                                                .get = in_tar(state, set) ? get_member : get_path },
                                    .classes = folder->files.labels });
        }
}

/* ---- The cache ------------------------------------------------------------------------------ */

/* Decoded and scaled images of a set. Those of a tar are not kept: it is read as fast. */
static KilnStatus open_cache(State *state, KilnSplit split, size_t set, KilnError *err)
{
    Folder *folder = &state->folders[split][set];
    const int64_t *decoded = kiln_image_data_decoded(state->image.data);

    if (state->opts->cache == NULL || folder->cache != NULL || folder->files.count == 0 ||
        in_tar(state, set))
        return KILN_OK;
    KilnStatus status = kiln_image_cache_open(
        &(KilnImageCacheSpec) {
            .folder = state->opts->cache,
            .root = state->opts->root,
            .split = split,
            .set = state->names[split][set],
            .count = folder->files.count,
            .size = { decoded[0], decoded[1], decoded[2] },
        },
        &folder->cache, err);
    kiln_image_data_set_cache(state->image.data, split, set, folder->cache);
    return status;
}

static KilnStatus check_cache(const State *state, KilnError *err)
{
    return state->opts->cache == NULL || state->tar != NULL ||
                   kiln_image_data_decoded(state->image.data)[0] > 0
               ? KILN_OK
               : kiln_error_set(err, KILN_E_SHAPE,
                                "datamodule.cache needs images of one size before the transforms; "
                                "set datamodule.size");
}

static void report(KilnInstance *self, void (*say)(void *ctx, const char *message), void *ctx)
{
    State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        for (size_t set = 0; set < KILN_MAX_SETS; set++)
            kiln_cache_report(state->folders[split][set].cache, "datamodule.cache", say, ctx);
}

/* ---- Setup ---------------------------------------------------------------------------------- */

/* Classes must not change during a run. */
static KilnStatus check_classes(State *state, KilnError *err)
{
    const KilnImageSet *train = files_of(state, KILN_TRAIN);
    bool same = train->n_classes == state->n_classes;

    for (int64_t i = 0; i < state->n_classes && same; i++)
        same = strcmp(train->classes[i], state->class_names[i]) == 0;
    return same ? KILN_OK
                : kiln_error_set(err, KILN_E_FORMAT,
                                 "%s/train: the class folders changed during the run; files may "
                                 "change, classes may not",
                                 state->opts->root);
}

static KilnStatus reload(KilnInstance *self, int64_t epoch, KilnError *err)
{
    State *state = kiln_state(self);

    (void)epoch;
    kiln_image_data_clear(state->image.data);
    forget(state);
    KilnStatus status = scan(state, KILN_STAGE_FIT, err);
    if (status >= 0)
        status = check_classes(state, err);
    put_images(state);
    if (status >= 0)
        status = kiln_image_data_reload(state->image.data, state->opts->val_fraction, err);
    return status >= 0 ? check_cache(state, err) : status;
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const bool predicts = context->stage == KILN_STAGE_PREDICT;
    const KilnImageSet *train = files_of(state, KILN_TRAIN);

    state->poll = context->poll;
    name_folders(state);
    KilnStatus status = predicts ? KILN_OK : scan(state, context->stage, err);
    put_images(state);
    if (status >= 0)
        status = kiln_image_data_setup(state->image.data, context, state->opts->val_fraction, err);
    if (status >= 0 && !predicts)
        status = check_cache(state, err);
    if (status < 0)
        return status;
    state->n_classes = predicts ? context->remembered->n_classes : train->n_classes;
    state->class_names = kiln_class_names_copy(
        predicts ? context->remembered->class_names : train->classes, state->n_classes);
    return state->class_names != NULL ? KILN_OK : kiln_error_nomem(err, (size_t)state->n_classes);
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    state->image.features[0] = kiln_image_data_feature(state->image.data);
    state->image.features[1] =
        (KilnFeature) { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 };
    *ret = (KilnDataSpec) {
        .features = state->image.features,
        .n_features = KILN_COUNT(state->image.features),
        .n_classes = state->n_classes,
        .class_names = state->class_names,
    };
    return KILN_OK;
}

/* ---- Samples -------------------------------------------------------------------------------- */

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
    const bool held_out = split == KILN_VAL && set == 0 &&
                          kiln_image_data_holds_out(state->image.data);

    kiln_image_data_dataset(state->image.data, split, set, ret);
    return open_cache(state, held_out ? KILN_TRAIN : split, set, err);
}

/* ---- What is left out ----------------------------------------------------------------------- */

static void left_out(KilnInstance *self, void (*add)(void *ctx, const KilnOmission *omission),
                     void *ctx)
{
    State *state = kiln_state(self);
    const char *more_folders[KILN_SPLIT_COUNT * KILN_MAX_SETS];
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
    const bool has_splits = state->tar == NULL && !state->is_flat;
    if (has_splits && files_of(state, KILN_TRAIN)->count > 0) /* not prediction alone */
        kiln_split_folders_left_out(state->opts->root, more_folders, n_more, add, ctx);
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static const KilnTensorSpec features[] = {
    KILN_IMAGE_SPEC,
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
    .reload = reload,
    .raw_fields = kiln_image_raw_fields,
    .preprocess = kiln_image_preprocess,
    .save_preprocessing = kiln_image_save_preprocessing,
    .loading = loading,
    .report = report,
    .memory = kiln_image_memory,
    .left_out = left_out,
    .check = kiln_image_check,
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

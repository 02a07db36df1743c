/* Images in folders: train/<class>/<name>.png and, if there, the same below val/
 * and test/. Files are decoded when a sample is asked for. */
#include "kiln.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum OnError { STOP, SKIP } OnError;

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    char *root;
    int64_t channels;
    int64_t *size;
    size_t size_count;
    KilnInstance **transforms;
    size_t transforms_count;
    double val_fraction;
    int64_t on_error;
    char *cache;
} Opts;

static const KilnChoice on_errors[] = { { "stop", STOP }, { "skip", SKIP }, { NULL, 0 } };

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "64"),
    KILN_FIELD_PATH(Opts, root, NULL,
                    "folder with train/<class>/*.png and, if there, val/ and test/ alike"),
    KILN_FIELD_I64(Opts, channels, "3", 1, 3,
                   "1: grey, 3: colour; files of the other kind are converted"),
    KILN_FIELD_I64_LIST(
        Opts, size, "[]", 1, 16384,
        "scale to [height, width], or [n] for both, before the transforms; empty: as "
        "the files are"),
    KILN_FIELD_COMPONENT_LIST(Opts, transforms, KILN_KIND_TRANSFORM, "[]",
                              "applied to each image in this order"),
    KILN_FIELD_F64(Opts, val_fraction, "0.1", 0, 0.9,
                   "share of train/ that is set aside for validation when there is no val/"),
    KILN_FIELD_ENUM(Opts, on_error, "stop", on_errors,
                    "what a file that can't be read does: stop the run, or skip it with a warning"),
    KILN_FIELD_PATH_OPT(Opts, cache, "null",
                        "folder to keep decoded images in, for later epochs and runs; null: decode "
                        "them each time"),
    KILN_FIELD_END,
};

/* Images that one call of get works with. */
typedef struct Scratch {
    KilnImage image, spare;
    struct Scratch *next;
} Scratch;

typedef struct Samples Samples;

typedef struct State {
    const Opts *opts;
    KilnImageSet sets[KILN_SPLIT_COUNT]; /* zeroed: no such folder */
    KilnImageSet input;
    int32_t *order; /* of sets[KILN_TRAIN]: for training first, then for validation */
    int64_t n_train, n_val;
    int64_t shape[3];   /* of a sample: height, width, channels */
    int64_t decoded[3]; /* of an image before the transforms; -1: differs by file */
    KilnCache *caches[KILN_SPLIT_COUNT]; /* of the sets; NULL: none */
    int64_t n_classes;
    const char **class_names;
    /* What the datasets point to. */
    struct Samples {
        struct State *state;
        const KilnImageSet *set;
        KilnCache *cache;     /* of the set; NULL: none */
        const int32_t *order; /* NULL: as in the set */
        bool training;
    } samples[KILN_SPLIT_COUNT], input_samples;
    /* Spare scratch images; get runs in several threads. */
    pthread_mutex_t lock;
    bool has_lock;
    Scratch *spare;
} State;

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "channels";
    if (opts->channels == 2)
        return kiln_error_set(err, KILN_E_RANGE, "expected 1 (grey) or 3 (colour), got 2");
    *ret_option = "size";
    if (opts->size_count > 2)
        return kiln_error_set(err, KILN_E_RANGE,
                              "expected [height, width], [n] for both, or [], got %zu numbers",
                              opts->size_count);
    return KILN_OK;
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    State *state = kiln_state(self);

    state->opts = kiln_opts(self);
    if (pthread_mutex_init(&state->lock, NULL) != 0)
        return kiln_error_nomem(err, sizeof(state->lock));
    state->has_lock = true;
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int i = 0; i < KILN_SPLIT_COUNT; i++) {
        kiln_image_set_release(&state->sets[i]);
        kiln_cache_close(state->caches[i]);
    }
    kiln_image_set_release(&state->input);
    while (state->spare != NULL) {
        Scratch *next = state->spare->next;

        kiln_image_release(&state->spare->image);
        kiln_image_release(&state->spare->spare);
        free(state->spare);
        state->spare = next;
    }
    if (state->has_lock)
        pthread_mutex_destroy(&state->lock);
    free(state->order);
    free(state->class_names);
}

/* ---- Finding the files ---------------------------------------------------------------- */

/* Scan root/<split>; leaves the set zeroed when the folder is not there. */
static KilnStatus scan_split(State *state, KilnSplit split, KilnError *err)
{
    const KilnImageSet *known = split == KILN_TRAIN ? NULL : &state->sets[KILN_TRAIN];
    char path[4096];
    struct stat st;
    int length = snprintf(path, sizeof(path), "%s/%s", state->opts->root, kiln_split_name(split));

    if (length < 0 || (size_t)length >= sizeof(path))
        return kiln_error_set(err, KILN_E_RANGE, "root: the path is longer than %zu bytes",
                              sizeof(path));
    if (stat(path, &st) != 0) {
        if (errno != ENOENT)
            return kiln_error_errno(err, path);
        return KILN_OK;
    }
    return kiln_image_set_scan(path, known, &state->sets[split], err);
}

static KilnStatus scan(State *state, KilnStage stage, KilnError *err)
{
    const char *root = state->opts->root;
    KilnImageSet *train = &state->sets[KILN_TRAIN];
    KilnStatus status = KILN_OK;
    struct stat st;

    if (stat(root, &st) != 0 || !S_ISDIR(st.st_mode))
        return kiln_error_set(err, KILN_E_IO,
                              "datamodule image_folder: root: %s: no such folder; expected one "
                              "with train/<class>/*.png",
                              root);
    for (int i = 0; i < KILN_SPLIT_COUNT && status >= 0; i++) {
        status = scan_split(state, (KilnSplit)i, err);
        if (status >= 0 && i == KILN_TRAIN && train->count == 0)
            status = kiln_error_set(err, KILN_E_IO,
                                    "datamodule image_folder: %s has no folder train/; expected "
                                    "train/<class>/*.png in it",
                                    root);
        if (status >= 0 && i == KILN_TRAIN && train->n_classes < 2)
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s/train: needs at least two classes, has only \"%s\"", root,
                                    train->classes[0]);
    }
    if (status >= 0 && stage == KILN_STAGE_TEST && state->sets[KILN_TEST].count == 0)
        status = kiln_error_set(
            err, KILN_E_IO, "datamodule image_folder: %s has no folder test/ to test with", root);
    return status;
}

/* Without val/ a part of train/ is for validation. */
static KilnStatus split_train(State *state, uint64_t seed, KilnError *err)
{
    int64_t n = state->sets[KILN_TRAIN].count, n_val = 0;

    if (state->sets[KILN_VAL].count == 0 && state->opts->val_fraction > 0.0) {
        n_val = (int64_t)((double)n * state->opts->val_fraction + 0.5);
        n_val = n_val < 1 ? 1 : n_val;
    }
    if (n > INT32_MAX || n_val >= n)
        return kiln_error_set(err, KILN_E_RANGE,
                              "%s/train: %lld files; too %s to be split with val_fraction=%g",
                              state->opts->root, (long long)n, n_val >= n ? "few" : "many",
                              state->opts->val_fraction);
    state->order = malloc((size_t)n * sizeof(*state->order));
    if (state->order == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*state->order));
    state->n_train = n - n_val;
    state->n_val = n_val;
    return kiln_hold_out(n, n_val, seed, state->order, err);
}

/* ---- The shape of a sample -------------------------------------------------------------- */

/* What the transforms make of an image of that size; -1: any. */
static KilnStatus transformed_shape(const Opts *opts, int64_t size[3], KilnError *err)
{
    for (size_t i = 0; i < opts->transforms_count; i++) {
        KilnInstance *transform = opts->transforms[i];
        const KilnTransformOps *ops = kiln_instance_component(transform)->ops.transform;
        KilnStatus status = ops->shape != NULL ? ops->shape(transform, size, err) : KILN_OK;

        if (status < 0)
            return status;
    }
    return KILN_OK;
}

/* All files must have one size, which goes to `size`. Files that can't be read
 * are left for get when they are to be skipped. */
static KilnStatus common_size(const State *state, int64_t size[3], KilnError *err)
{
    const char *first = NULL;

    for (int i = 0; i < KILN_SPLIT_COUNT; i++)
        for (int64_t k = 0; k < state->sets[i].count; k++) {
            const char *path = state->sets[i].paths[k];
            int64_t found[3];
            KilnStatus status = kiln_image_png_size(path, found, err);

            if (status < 0 && state->opts->on_error == SKIP)
                continue;
            if (status < 0)
                return status;
            if (first == NULL) {
                first = path;
                size[0] = found[0];
                size[1] = found[1];
            }
            if (found[0] != size[0] || found[1] != size[1])
                return kiln_error_set(
                    err, KILN_E_SHAPE,
                    "%s is %lld x %lld but %s is %lld x %lld: without datamodule.size all images "
                    "must have one size; try datamodule.size=[%lld,%lld]",
                    path, (long long)found[0], (long long)found[1], first, (long long)size[0],
                    (long long)size[1], (long long)size[0], (long long)size[1]);
        }
    return first != NULL
               ? KILN_OK
               : kiln_error_set(err, KILN_E_FORMAT, "%s: none of its PNG files can be read",
                                state->opts->root);
}

/* Where the transforms lead to one size from any, the first file still shows
 * whether they suit the data at all. */
static KilnStatus probe_first(const State *state, KilnError *err)
{
    const char *path = state->sets[KILN_TRAIN].paths[0];
    int64_t size[3];
    KilnStatus status = kiln_image_png_size(path, size, err);

    if (status < 0)
        return state->opts->on_error == SKIP ? KILN_OK : status;
    size[2] = state->opts->channels;
    status = transformed_shape(state->opts, size, err);
    if (status < 0)
        kiln_error_prefix(err, "%s: ", path);
    return status;
}

/* The headers of all files are read only if the options leave the size open. */
static KilnStatus find_shape(State *state, KilnError *err)
{
    const Opts *opts = state->opts;
    int64_t size[3] = { -1, -1, opts->channels };
    KilnStatus status;

    if (opts->size_count > 0) {
        size[0] = opts->size[0];
        size[1] = opts->size[opts->size_count - 1];
    }
    memcpy(state->shape, size, sizeof(size));
    memcpy(state->decoded, size, sizeof(size));
    status = transformed_shape(opts, state->shape, err);
    if (status < 0)
        return status;
    if (state->shape[0] > 0 && state->shape[1] > 0)
        return opts->size_count > 0 ? KILN_OK : probe_first(state, err);
    status = common_size(state, size, err);
    if (status < 0)
        return status;
    memcpy(state->shape, size, sizeof(size));
    memcpy(state->decoded, size, sizeof(size));
    return transformed_shape(opts, state->shape, err);
}

/* ---- The cache ------------------------------------------------------------------------------ */

static KilnStatus check_cache(const State *state, KilnError *err)
{
    if (state->opts->cache == NULL || state->decoded[0] > 0)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_SHAPE,
                          "datamodule.cache needs images of one size before the transforms: give "
                          "datamodule.size");
}

/* Decoded and scaled images of a set. What they are depends on the file, which entries are
 * marked with, and on these. */
static KilnStatus open_cache(State *state, KilnSplit set, KilnError *err)
{
    struct {
        int64_t version, size[3];
    } made = { .version = 1 };
    const char *root = state->opts->root;
    char here[4096] = "";

    if (state->opts->cache == NULL || state->caches[set] != NULL || state->sets[set].count == 0)
        return KILN_OK;
    if (root[0] != '/' && getcwd(here, sizeof(here)) == NULL)
        return kiln_error_errno(err, root);
    memcpy(made.size, state->decoded, sizeof(made.size));
    uint64_t key = kiln_hash(&made, sizeof(made), (uint64_t)set);
    key = kiln_hash(root, strlen(root), kiln_hash(here, strlen(here), key));
    return kiln_cache_open(
        &(KilnCacheSpec) {
            .folder = state->opts->cache,
            .name = kiln_split_name(set),
            .key = key,
            .count = state->sets[set].count,
            .bytes = (size_t)(made.size[0] * made.size[1] * made.size[2]) * sizeof(float),
        },
        &state->caches[set], err);
}

static void report(KilnInstance *self, void (*say)(void *ctx, const char *message), void *ctx)
{
    State *state = kiln_state(self);

    for (int i = 0; i < KILN_SPLIT_COUNT; i++)
        kiln_cache_report(state->caches[i], "datamodule.cache", say, ctx);
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

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const char *const *names;
    KilnStatus status;

    if (context->stage == KILN_STAGE_PREDICT) {
        status = setup_predict(state, context->remembered, err);
        names = context->remembered->class_names;
    } else {
        status = scan(state, context->stage, err);
        if (status >= 0)
            status = find_shape(state, err);
        if (status >= 0)
            status = check_cache(state, err);
        if (status >= 0)
            status = split_train(state, context->seed, err);
        state->n_classes = state->sets[KILN_TRAIN].n_classes;
        names = state->sets[KILN_TRAIN].classes;
    }
    if (status < 0)
        return status;
    state->class_names = kiln_class_names_copy(names, state->n_classes);
    return state->class_names != NULL ? KILN_OK : kiln_error_nomem(err, (size_t)state->n_classes);
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    const State *state = kiln_state(self);

    (void)err;
    *ret = (KilnDataSpec){
        .n_features = 2,
        .features = {
            { .name = "image", .dtype = KILN_F32, .shape = KILN_SHAPE(state->shape[0], state->shape[1], state->shape[2]) },
            { .name = "label", .dtype = KILN_I32, .shape = KILN_SCALAR },
        },
        .n_classes = state->n_classes,
        .class_names = state->class_names,
    };
    return KILN_OK;
}

/* ---- Samples ----------------------------------------------------------------------------------
 */

static Scratch *take_scratch(State *state)
{
    pthread_mutex_lock(&state->lock);
    Scratch *scratch = state->spare;
    if (scratch != NULL)
        state->spare = scratch->next;
    pthread_mutex_unlock(&state->lock);
    return scratch != NULL ? scratch : calloc(1, sizeof(*scratch));
}

static void give_scratch(State *state, Scratch *scratch)
{
    pthread_mutex_lock(&state->lock);
    scratch->next = state->spare;
    state->spare = scratch;
    pthread_mutex_unlock(&state->lock);
}

/* Read and scale the image of `path`. */
static KilnStatus decode(const Opts *opts, const char *path, Scratch *scratch, KilnError *err)
{
    KilnImage *image = &scratch->image;
    KilnStatus status = kiln_image_read_png(path, opts->channels, image, err);

    if (status < 0)
        return status == KILN_E_NOMEM || opts->on_error == STOP ? status : KILN_E_SKIP;
    if (opts->size_count > 0 &&
        (image->height != opts->size[0] || image->width != opts->size[opts->size_count - 1])) {
        KilnImage before = *image;

        status = kiln_image_scale(&before, opts->size[0], opts->size[opts->size_count - 1],
                                  &scratch->spare, err);
        *image = scratch->spare;
        scratch->spare = before;
        if (status < 0)
            kiln_error_prefix(err, "%s: ", path);
    }
    return status;
}

/* The same through the cache, in which it is number `at`. */
static KilnStatus decode_cached(const State *state, KilnCache *cache, int64_t at, const char *path,
                                Scratch *scratch, KilnError *err)
{
    const int64_t *size = state->decoded;
    KilnImage *image = &scratch->image;
    uint64_t source;

    if (cache == NULL || !kiln_file_identity(path, &source))
        return decode(state->opts, path, scratch, err);
    KilnStatus status = kiln_image_resize_buffer(image, size[0], size[1], size[2], err);
    if (status < 0 || kiln_cache_get(cache, at, source, image->data))
        return status;
    status = decode(state->opts, path, scratch, err);
    if (status >= 0 && image->height == size[0] && image->width == size[1] &&
        image->channels == size[2])
        kiln_cache_put(cache, at, source, image->data);
    return status;
}

/* Transform scratch->image. */
static KilnStatus transform(const Opts *opts, const char *path, Scratch *scratch, KilnRng *rng,
                            bool training, KilnError *err)
{
    KilnImage *image = &scratch->image;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < opts->transforms_count && status >= 0; i++) {
        KilnInstance *one = opts->transforms[i];
        const KilnTransformOps *ops = kiln_instance_component(one)->ops.transform;

        status = ops->apply(one, image, &scratch->spare, rng, training, err);
    }
    if (status < 0)
        kiln_error_prefix(err, "%s: ", path);
    return status;
}

/* Image `at` of the set, as the spec says. */
static KilnStatus load(const Samples *samples, int64_t at, Scratch *scratch, KilnRng *rng,
                       float *to, KilnError *err)
{
    const State *state = samples->state;
    const char *path = samples->set->paths[at];
    KilnImage *image = &scratch->image;
    KilnStatus status = decode_cached(state, samples->cache, at, path, scratch, err);

    if (status >= 0)
        status = transform(state->opts, path, scratch, rng, samples->training, err);
    if (status < 0)
        return status;
    if (image->height != state->shape[0] || image->width != state->shape[1] ||
        image->channels != state->shape[2])
        return kiln_error_set(err, KILN_E_SHAPE,
                              "%s: %lld x %lld x %lld after the transforms, expected %lld x %lld x "
                              "%lld; datamodule.size brings all images to one size",
                              path, (long long)image->height, (long long)image->width,
                              (long long)image->channels, (long long)state->shape[0],
                              (long long)state->shape[1], (long long)state->shape[2]);
    memcpy(to, image->data, (size_t)(image->height * image->width * image->channels) * sizeof(*to));
    return KILN_OK;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Samples *samples = ctx;
    const KilnImageSet *set = samples->set;
    int64_t at = samples->order != NULL ? samples->order[index] : index;
    Scratch *scratch = take_scratch(samples->state);
    KilnStatus status;

    if (scratch == NULL)
        return kiln_error_nomem(err, sizeof(*scratch));
    status = load(samples, at, scratch, rng, sample->data[0], err);
    if (status >= 0 && set->labels != NULL)
        *(int32_t *)sample->data[1] = set->labels[at];
    if (status == KILN_E_SKIP && err != NULL)
        err->status = status;
    give_scratch(samples->state, scratch);
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

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);
    Samples *samples = &state->samples[split];
    bool from_train = split == KILN_TRAIN ||
                      (split == KILN_VAL && state->sets[KILN_VAL].count == 0);

    const KilnSplit from = from_train ? KILN_TRAIN : split;
    KilnStatus status = open_cache(state, from, err);

    (void)set;

    if (status < 0)
        return status;
    *samples = (Samples) {
        .state = state,
        .set = &state->sets[from],
        .cache = state->caches[from],
        .training = split == KILN_TRAIN,
    };
    *ret = (KilnDataset) {
        .count = samples->set->count, .ctx = samples, .get = get, .name = name, .label = label
    };
    if (from_train) {
        samples->order = state->order;
        ret->count = state->n_train;
    }
    if (from_train && split == KILN_VAL) {
        samples->order = state->order + state->n_train;
        ret->count = state->n_val;
    }
    return KILN_OK;
}

static KilnStatus open_input(KilnInstance *self, const char *path, KilnDataset *ret, KilnError *err)
{
    State *state = kiln_state(self);
    KilnStatus status;

    kiln_image_set_release(&state->input);
    status = kiln_image_set_find(path, &state->input, err);
    if (status < 0)
        return status;
    state->input_samples = (Samples) { .state = state, .set = &state->input };
    *ret = (KilnDataset) {
        .count = state->input.count, .ctx = &state->input_samples, .get = get, .name = name
    };
    return KILN_OK;
}

static KilnLoading loading(const KilnInstance *self)
{
    const Opts *opts = kiln_opts(self);

    return KILN_LOADING(opts);
}

static const KilnDataModuleOps ops = {
    .setup = setup,
    .spec = spec,
    .dataset = dataset,
    .open_input = open_input,
    .loading = loading,
    .report = report,
};

const KilnComponent kiln_datamodule_image_folder = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "image_folder",
    .summary = "PNG images in one folder per class",
    .fields = fields,
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .init = init,
    .release = release,
    .ops.datamodule = &ops,
};

/* MNIST and any data set in its format: four idx files of grey images and labels, plain or gzip.
 * The bytes are kept in memory and converted to floats per sample. */
#include "kiln.h"
#include "kiln/files/idx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    char *root;
    int64_t val_count;
    int64_t classes;
    int64_t shift;
    double mean;
    double std;
    KilnPairStr *val_folders, *test_folders;
    size_t val_folders_count, test_folders_count;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "64"),
    KILN_FIELD_PATH(Opts, root, NULL,
                    "folder with train-images-idx3-ubyte[.gz], train-labels-idx1-ubyte[.gz] and "
                    "the same for t10k"),
    KILN_FIELD_I64(Opts, val_count, "5000", 0, 1e9, "training images held out for validation"),
    KILN_FIELD_I64(Opts, classes, "0", 0, 256,
                   "number of classes; 0: the largest training label plus one"),
    KILN_FIELD_I64(Opts, shift, "0", 0, 64,
                   "shift training images randomly by up to this many pixels"),
    KILN_FIELD_F64(Opts, mean, "0.1307", -1e6, 1e6, "subtracted from pixel values of 0..1"),
    KILN_FIELD_F64(Opts, std, "0.3081", 1e-6, 1e6, "divided by afterwards"),
    KILN_FIELD_PATH_MAP(Opts, val_folders, "{}",
                        "further folders whose t10k files are for validation, by name; their "
                        "metrics are val/loss/NAME"),
    KILN_FIELD_PATH_MAP(Opts, test_folders, "{}",
                        "further folders whose t10k files are for the test, by name; their metrics "
                        "are test/loss/NAME"),
    KILN_FIELD_END,
};

/* A pair of files: images [n, h, w] and labels [n]. */
typedef struct Files {
    const char *root;
    KilnIdx images, labels;
} Files;

typedef struct Samples Samples;

typedef struct State {
    const Opts *opts;
    Files train;
    Files test[KILN_SPLIT_COUNT][KILN_MAX_SETS]; /* t10k files: the first is root's, of the test */
    const char *names[KILN_SPLIT_COUNT][KILN_MAX_SETS];
    int32_t *order; /* indices of the training images, then those for validation */
    int64_t n_train, n_val;
    bool has_test;
    bool augments; /* the samples of training */
    int64_t height, width, n_classes;
    const char **class_names;
    KilnFeature features[2]; /* of a sample */
    float value[256];        /* of each grey level, normalized */
    /* What the datasets point to. */
    struct Samples {
        const struct State *state;
        const Files *files;
        const int32_t *order; /* NULL: as in the files */
        bool training;
    } samples[KILN_SPLIT_COUNT][KILN_MAX_SETS];
    const KilnPoll *poll;
} State;

/* ---- Reading -------------------------------------------------------------------- */

static KilnStatus read_file(const char *root, const char *prefix, const char *what, int rank,
                            KilnIdx *ret, KilnError *err)
{
    char path[4096];
    int length = snprintf(path, sizeof(path), "%s/%s-%s-idx%d-ubyte", root, prefix, what, rank);

    if (length < 0 || (size_t)length >= sizeof(path))
        return kiln_error_set(err, KILN_E_RANGE, "root: the path is longer than %zu bytes",
                              sizeof(path));
    return kiln_idx_read(path, rank, ret, err);
}

static int64_t label_max(const KilnIdx *labels)
{
    int max = 0;

    for (int64_t i = 0; i < labels->dim[0]; i++)
        max = labels->data[i] > max ? labels->data[i] : max;
    return max;
}

static KilnStatus check_labels(const State *state, const char *prefix, const Files *files,
                               KilnError *err)
{
    const KilnIdx *labels = &files->labels;

    for (int64_t i = 0; i < labels->dim[0]; i++)
        if (labels->data[i] >= state->n_classes)
            return kiln_error_set(err, KILN_E_FORMAT,
                                  "%s/%s-labels-idx1-ubyte: label %d of item %lld, expected 0 to "
                                  "%lld (classes=%lld)",
                                  files->root, prefix, labels->data[i], (long long)i,
                                  (long long)state->n_classes - 1, (long long)state->n_classes);
    return KILN_OK;
}

/* Read one pair, labels first: they are small and fail fast. */
static KilnStatus read_pair(const char *prefix, Files *files, KilnError *err)
{
    KilnStatus status = KILN_OK;

    if (files->labels.data == NULL)
        status = read_file(files->root, prefix, "labels", 1, &files->labels, err);
    if (status >= 0 && files->images.data == NULL)
        status = read_file(files->root, prefix, "images", 3, &files->images, err);
    if (status >= 0 && files->images.dim[0] != files->labels.dim[0])
        status = kiln_error_set(
            err, KILN_E_FORMAT,
            "%s: %lld %s images but %lld labels; both files must belong to the same set",
            files->root, (long long)files->images.dim[0], prefix, (long long)files->labels.dim[0]);
    return status;
}

static KilnStatus read_train(State *state, KilnError *err)
{
    KilnStatus status = read_pair("train", &state->train, err);

    if (status < 0)
        return status;
    state->height = state->train.images.dim[1];
    state->width = state->train.images.dim[2];
    state->n_classes = state->opts->classes > 0 ? state->opts->classes
                                                : label_max(&state->train.labels) + 1;
    return check_labels(state, "train", &state->train, err);
}

static KilnStatus read_test(State *state, Files *files, KilnError *err)
{
    KilnStatus status = read_pair("t10k", files, err);
    const int64_t *dim = files->images.dim;

    if (status < 0)
        return status;
    if (state->height == 0) {
        state->height = dim[1];
        state->width = dim[2];
    }
    if (dim[1] != state->height || dim[2] != state->width)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: test images of %lld x %lld, expected %lld x %lld as in training",
                              files->root, (long long)dim[1], (long long)dim[2],
                              (long long)state->height, (long long)state->width);
    return check_labels(state, "t10k", files, err);
}

/* ---- Setup ------------------------------------------------------------------------ */

static KilnStatus split(State *state, uint64_t seed, KilnError *err)
{
    int64_t n = state->train.images.dim[0], n_val = state->opts->val_count;

    if (n > INT32_MAX)
        return kiln_error_set(err, KILN_E_RANGE, "%s: %lld images; at most %d are read",
                              state->opts->root, (long long)n, INT32_MAX);
    if (n_val >= n)
        return kiln_error_set(err, KILN_E_RANGE,
                              "val_count=%lld leaves no training image: %s has %lld in all",
                              (long long)n_val, state->opts->root, (long long)n);
    state->order = malloc((size_t)n * sizeof(*state->order));
    if (state->order == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*state->order));
    state->n_train = n - n_val;
    state->n_val = n_val;
    return kiln_hold_out(n, n_val, seed, state->order, err);
}

/* Whether the file exists, plain or as .gz. */
static bool present(const char *root, const char *what, int rank)
{
    static const char *const suffixes[] = { "", ".gz" };
    struct stat st;

    for (size_t i = 0; i < KILN_COUNT(suffixes); i++) {
        char path[4096];

        snprintf(path, sizeof(path), "%s/t10k-%s-idx%d-ubyte%s", root, what, rank, suffixes[i]);
        if (stat(path, &st) == 0)
            return true;
    }
    return false;
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
    state->train.root = state->opts->root;
    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        size_t n = 0;
        const KilnPairStr *more = more_of(state->opts, (KilnSplit)split, &n);

        state->names[split][0] = "";
        state->test[split][0].root = state->opts->root;
        for (size_t i = 0; i < n; i++) {
            state->names[split][i + 1] = more[i].key;
            state->test[split][i + 1].root = more[i].value;
        }
    }
}

static KilnStatus check_more(const State *state, KilnError *err)
{
    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        size_t n = 0;
        const KilnPairStr *more = more_of(state->opts, (KilnSplit)split, &n);

        for (size_t i = 0; i < n; i++)
            if (!present(more[i].value, "images", 3) || !present(more[i].value, "labels", 1))
                return kiln_error_set(err, KILN_E_IO,
                                      "datamodule mnist: %s_folders.%s: %s has no "
                                      "t10k-images-idx3-ubyte[.gz] with its labels",
                                      kiln_split_name((KilnSplit)split), more[i].key,
                                      more[i].value);
    }
    return KILN_OK;
}

/* The test files are read after training, but a missing one must be reported now. */
static KilnStatus setup_fit(State *state, uint64_t seed, KilnError *err)
{
    const char *root = state->opts->root;
    bool images = present(root, "images", 3), labels = present(root, "labels", 1);
    KilnStatus status = check_more(state, err);

    if (status < 0)
        return status;

    if (images != labels)
        return kiln_error_set(err, KILN_E_IO,
                              "%s: has t10k-%s but not t10k-%s[.gz]; expected both test files, or "
                              "none for no test split",
                              root, images ? "images-idx3-ubyte" : "labels-idx1-ubyte",
                              images ? "labels-idx1-ubyte" : "images-idx3-ubyte");
    state->has_test = images;
    status = read_train(state, err);
    return status < 0 ? status : split(state, seed, err);
}

/* Read only the training labels, for the number of classes. */
static KilnStatus setup_test(State *state, KilnError *err)
{
    KilnStatus status = KILN_OK;

    state->has_test = true;
    state->n_classes = state->opts->classes;
    if (state->n_classes == 0)
        status = read_file(state->opts->root, "train", "labels", 1, &state->train.labels, err);
    if (status < 0)
        return status;
    if (state->n_classes == 0)
        state->n_classes = label_max(&state->train.labels) + 1;
    status = check_more(state, err);
    return status >= 0 ? read_test(state, &state->test[KILN_TEST][0], err) : status;
}

static KilnStatus setup_predict(State *state, const KilnDataSpec *spec, KilnError *err)
{
    const KilnFeature *image = kiln_spec_feature(spec, "image");

    if (image == NULL || image->shape.rank != 3 || image->shape.dim[2] != 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "datamodule mnist: the checkpoint was not trained on grey images");
    state->height = image->shape.dim[0];
    state->width = image->shape.dim[1];
    state->n_classes = spec->n_classes;
    return KILN_OK;
}

static KilnStatus check_root(const Opts *opts, KilnError *err)
{
    struct stat st;
    bool there = stat(opts->root, &st) == 0;

    if (there && S_ISDIR(st.st_mode))
        return KILN_OK;
    return kiln_error_set(err, KILN_E_IO,
                          "root: %s %s; expected the folder with "
                          "train-images-idx3-ubyte[.gz] and the other idx files",
                          opts->root, there ? "is a file" : "is not there");
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const char *const *names = NULL;
    KilnStatus status = KILN_OK;

    state->opts = kiln_opts(self);
    state->poll = context->poll;
    name_folders(state);
    state->augments = context->stage == KILN_STAGE_FIT;
    for (int i = 0; i < 256; i++)
        state->value[i] = ((float)i / 255.0f - (float)state->opts->mean) / (float)state->opts->std;
    if (context->stage != KILN_STAGE_PREDICT)
        status = check_root(state->opts, err);
    if (status < 0)
        return status;
    if (context->stage == KILN_STAGE_PREDICT) {
        status = setup_predict(state, context->remembered, err);
        names = context->remembered->class_names;
    } else if (context->stage == KILN_STAGE_TEST) {
        status = setup_test(state, err);
    } else {
        status = setup_fit(state, context->seed, err);
    }
    if (status < 0)
        return status;
    state->class_names = kiln_class_names_copy(names, state->n_classes);
    return state->class_names != NULL ? KILN_OK : kiln_error_nomem(err, (size_t)state->n_classes);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    kiln_idx_release(&state->train.images);
    kiln_idx_release(&state->train.labels);
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        for (size_t set = 0; set < KILN_MAX_SETS; set++) {
            kiln_idx_release(&state->test[split][set].images);
            kiln_idx_release(&state->test[split][set].labels);
        }
    free(state->order);
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

/* ---- Samples ------------------------------------------------------------------------ */

/* The image shifted down and right; the border is black. */
static void put_shifted(const State *state, const uint8_t *from, int64_t down, int64_t right,
                        float *to)
{
    for (int64_t y = 0; y < state->height; y++)
        for (int64_t x = 0; x < state->width; x++) {
            int64_t fy = y - down, fx = x - right;
            bool inside = fy >= 0 && fy < state->height && fx >= 0 && fx < state->width;

            *to++ = state->value[inside ? from[fy * state->width + fx] : 0];
        }
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Samples *samples = ctx;
    const State *state = samples->state;
    int64_t at = samples->order != NULL ? samples->order[index] : index;
    int64_t pixels = state->height * state->width, shift = state->opts->shift;
    const uint8_t *from = samples->files->images.data + at * pixels;
    float *to = sample->data[0];

    (void)err;
    if (samples->training && shift > 0) {
        uint32_t places = (uint32_t)(2 * shift + 1);
        int64_t down = (int64_t)kiln_rng_below(rng, places) - shift;
        int64_t right = (int64_t)kiln_rng_below(rng, places) - shift;

        put_shifted(state, from, down, right, to);
    } else {
        for (int64_t i = 0; i < pixels; i++)
            to[i] = state->value[from[i]];
    }
    *(int32_t *)sample->data[1] = samples->files->labels.data[at];
    return KILN_OK;
}

static int64_t label(void *ctx, int64_t index)
{
    const Samples *samples = ctx;
    int64_t at = samples->order != NULL ? samples->order[index] : index;

    return samples->files->labels.data[at];
}

/* The split's own set, and those that the options name. */
static size_t sets(KilnInstance *self, KilnSplit which, const char *const **ret_names)
{
    State *state = kiln_state(self);
    size_t n;

    (void)more_of(state->opts, which, &n);
    *ret_names = state->names[which];
    return n + 1;
}

static KilnStatus dataset(KilnInstance *self, KilnSplit which, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);
    Samples *samples = &state->samples[which][set];
    int64_t count = 0;

    *samples = (Samples) { .state = state, .training = which == KILN_TRAIN && state->augments };
    if (set > 0 || (which == KILN_TEST && state->has_test)) {
        KilnStatus status = read_test(state, &state->test[which][set], err);

        if (status < 0)
            return status;
        samples->files = &state->test[which][set];
        count = samples->files->images.dim[0];
    } else if (which != KILN_TEST) {
        samples->files = &state->train;
        samples->order = which == KILN_TRAIN || state->order == NULL
                             ? state->order
                             : state->order + state->n_train;
        count = which == KILN_TRAIN ? state->n_train : state->n_val;
    }
    *ret = (KilnDataset) { .count = count, .ctx = samples, .get = get, .label = label };
    return KILN_OK;
}

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;
    const bool val = opts->val_folders_count >= KILN_MAX_SETS;

    *ret_option = val ? "val_folders" : "test_folders";
    return val || opts->test_folders_count >= KILN_MAX_SETS
               ? kiln_error_set(err, KILN_E_RANGE, "at most %d more sets are possible",
                                KILN_MAX_SETS - 1)
               : KILN_OK;
}

/* ---- Images of a user ----------------------------------------------------------------- */

static size_t raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    (void)self;
    *ret = &kiln_raw_image;
    return 1;
}

/* The image as those of the files, scaled to their size. */
static KilnStatus preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                             KilnError *err)
{
    const State *state = kiln_state(self);
    const Opts *opts = state->opts;
    const KilnPngForm form = { .channels = 1, .height = state->height, .width = state->width };
    KilnImage image = { 0 };
    KilnStatus status = kiln_image_read_raw(&values[0], &form, &image, err);

    if (status >= 0)
        for (int64_t i = 0; i < state->height * state->width; i++)
            ((float *)sample->data[0])[i] = (image.data[i] - (float)opts->mean) / (float)opts->std;
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

const KilnComponent kiln_datamodule_mnist = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "mnist",
    .summary = "MNIST, or any set of grey images in its idx format",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.datamodule = &ops,
};

/* Images with a class, or with any number of labels, that a list names: CSV, TSV, JSON lines. The
 * images are files, or members of a tar. They are decoded when a sample is read. */
#include "kiln.h"
#include "kiln/files/tar.h"
#include "kiln/tools/row_labels.h"
#include "kiln/tools/text_data.h"

#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KILN_TEXT_OPTIONS;
    char *root, *image, *label, *label_separator;
    char **classes, **label_columns;
    size_t classes_count, label_columns_count;
    bool multilabel;
    int64_t channels;
    KilnSize *size;
    KilnInstance **transforms;
    size_t transforms_count;
    int64_t max_pixels;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "64"),
    KILN_TEXT_FIELDS(Opts),
    KILN_FIELD_PATH(Opts, root, ".",
                    "the folder that paths in the list are relative to, or a .tar, .tar.gz or "
                    ".tar.zst file that has them"),
    KILN_FIELD_STR(Opts, image, "image", "the column of the image's path"),
    KILN_FIELD_STR(Opts, label, "label", "the column of the class, or of the labels"),
    KILN_FIELD_BOOL(Opts, multilabel, "false",
                    "an image has any number of labels: a list of JSON, or as the next two options "
                    "say"),
    KILN_FIELD_STR_OPT(
        Opts, label_separator, "null",
        "with multilabel: the text between the labels in their column, such as \"|\""),
    KILN_FIELD_STR_LIST(
        Opts, label_columns, "[]",
        "with multilabel: a column for each label, with 1 where an image has it and 0 "
        "where not, instead of the column label"),
    KILN_FIELD_STR_LIST(Opts, classes, "[]",
                        "names of the classes; empty: those of the training files, sorted"),
    KILN_FIELD_I64(Opts, channels, "3", 1, 3,
                   "1: grey, 3: colour; other files are converted, transparency is laid over "
                   "black"),
    KILN_FIELD_IMAGE_SIZE_OPT(Opts, size, "null", 1, 16384,
                              "scale to [height, width], or one number for both, before the "
                              "transforms; null: do not scale"),
    KILN_FIELD_COMPONENT_LIST(Opts, transforms, KILN_KIND_TRANSFORM, "[]",
                              "applied to each image in this order"),
    KILN_FIELD_I64(Opts, max_pixels, "89478485", 1, 4294967296.0,
                   "largest image to read, in pixels; a small file can hold very many"),
    KILN_FIELD_END,
};

/* The columns that are read: the path, the labels. */
enum { IMAGE_COLUMN, LABEL_COLUMN };
enum { IMAGE, LABEL, FEATURES };
static const char classes_file[] = "classes.txt";

typedef struct State State;

/* The samples of a split. */
typedef struct Samples {
    State *state;
    KilnText paths;  /* one after the other, each with its NUL */
    int64_t *starts; /* of each path */
    int64_t n;
    KilnLabelNumbers labels; /* without multilabel one each */
    bool training;
} Samples;

struct State {
    const Opts *opts;
    KilnTextData *data;
    KilnTar *tar; /* NULL: root is a folder */
    KilnImageReader *reader;
    KilnLabelFormat format; /* of labels; without multilabel one in a column */
    KilnNameList classes;
    bool collects;        /* classes, from the training rows */
    const char **columns; /* [LABEL_COLUMN + columns of labels] */
    size_t n_columns;
    Samples samples[KILN_SPLIT_COUNT];
    KilnImageSource sources[KILN_SPLIT_COUNT];
    int64_t shape[3]; /* of a sample: height, width, channels */
    KilnFeature features[FEATURES];
    uint64_t seed;
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "channels";
    if (opts->channels == 2)
        return kiln_error_set(err, KILN_E_RANGE, "expected 1 (grey) or 3 (colour), got 2");
    *ret_option = opts->label_columns_count > 0 ? "label_columns" : "label_separator";
    if (!opts->multilabel && (opts->label_columns_count > 0 || opts->label_separator != NULL))
        return kiln_error_set(err, KILN_E_RANGE, "needs multilabel=true");
    if (opts->label_columns_count > 0 && opts->classes_count > 0)
        return kiln_error_set(err, KILN_E_RANGE,
                              "the columns are the classes; leave the option classes out");
    return opts->label_columns_count == 0 || opts->label_separator == NULL
               ? KILN_OK
               : kiln_error_set(err, KILN_E_RANGE,
                                "the columns have 0 or 1; leave label_separator out");
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    state->opts = opts;
    state->format = (KilnLabelFormat) { .separator = opts->label_separator,
                                        .columns = (const char *const *)opts->label_columns,
                                        .n_columns = opts->label_columns_count };
    return kiln_image_reader_new(
        &(KilnImageForm) {
            .channels = opts->channels,
            .height = opts->size != NULL ? opts->size->height : -1,
            .width = opts->size != NULL ? opts->size->width : -1,
            .transforms = opts->transforms,
            .n_transforms = opts->transforms_count,
            .max_pixels = opts->max_pixels,
            .skips = opts->on_error == KILN_ON_ERROR_SKIP,
        },
        &state->reader, err);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        kiln_text_release(&state->samples[split].paths);
        free(state->samples[split].starts);
        kiln_label_numbers_release(&state->samples[split].labels);
    }
    kiln_name_list_release(&state->classes);
    free(state->columns);
    kiln_text_data_free(state->data);
    kiln_tar_close(state->tar);
    kiln_image_reader_free(state->reader);
}

/* ---- Rows -------------------------------------------------------------------------------------
 */

/* What a row's path is below. */
static void append_path(const State *state, KilnString path, KilnText *to)
{
    const char *root = state->opts->root;

    if ((path.data[0] != '/' && strcmp(root, ".") != 0) || state->tar != NULL) {
        kiln_text_append(to, root);
        kiln_text_char(to, '/');
    }
    kiln_text_append_n(to, path.data, path.length);
}

/* The member of the tar that a sample's path names. */
static int64_t member_of(const State *state, const char *path)
{
    return kiln_tar_find(state->tar, path + strlen(state->opts->root) + 1);
}

static KilnStatus check_image(State *state, KilnString path, KilnError *err)
{
    KilnText full = { 0 };
    KilnStatus status = KILN_OK;

    if (kiln_text_is_blank(path))
        return kiln_error_set(err, KILN_E_MISSING, "the path (column \"%s\") is empty",
                              state->opts->image);
    if (state->tar == NULL)
        return KILN_OK;
    append_path(state, path, &full);
    if (full.failed)
        status = kiln_error_nomem(err, path.length);
    else if (member_of(state, full.data) < 0)
        status = kiln_error_set(err, KILN_E_KEY, "\"%.*s\" is not in %s",
                                (int)(path.length < 256 ? path.length : 256), path.data,
                                state->opts->root);
    kiln_text_release(&full);
    return status;
}

static KilnStatus check_row(void *ctx, KilnSplit split, const KilnRecord *record, KilnError *err)
{
    State *state = ctx;
    const Opts *opts = state->opts;
    KilnStatus status = check_image(state, record->fields[IMAGE_COLUMN], err);

    return status >= 0
               ? kiln_row_labels_check(&(KilnLabelRule) { .format = &state->format,
                                                          .several = opts->multilabel,
                                                          .column = opts->label,
                                                          .given = opts->classes_count > 0 },
                                       record->fields + LABEL_COLUMN, &state->classes,
                                       state->collects && split == KILN_TRAIN, err)
               : status;
}

static KilnStatus read_row(State *state, Samples *samples, KilnSplit split, int64_t i,
                           KilnRecord *record, KilnError *err)
{
    KilnStatus status = kiln_text_data_read(state->data, split, i, record, err);

    if (status >= 0)
        status = kiln_label_numbers_add(&samples->labels, &state->format,
                                        record->fields + LABEL_COLUMN, &state->classes, err);
    if (status < 0)
        return status;
    samples->starts[i] = (int64_t)samples->paths.length;
    append_path(state, record->fields[IMAGE_COLUMN], &samples->paths);
    kiln_text_char(&samples->paths, '\0');
    return samples->paths.failed ? kiln_error_nomem(err, samples->paths.length) : KILN_OK;
}

static KilnStatus read_split(State *state, KilnSplit split, const KilnPoll *poll, KilnError *err)
{
    Samples *samples = &state->samples[split];
    KilnRecord record = { 0 };
    KilnStatus status = KILN_OK;

    samples->state = state;
    samples->n = kiln_text_data_count(state->data, split);
    samples->starts = malloc((size_t)(samples->n + 1) * sizeof(*samples->starts));
    if (samples->starts == NULL)
        return kiln_error_nomem(err, (size_t)samples->n * sizeof(*samples->starts));
    for (int64_t i = 0; i < samples->n && status >= 0; i++) {
        status = kiln_poll_check(poll, "reading the list of images", i, samples->n, err);
        if (status >= 0)
            status = read_row(state, samples, split, i, &record, err);
    }
    kiln_record_release(&record);
    return status;
}

/* ---- Setup ------------------------------------------------------------------------------------
 */

/* The columns to read, and the options that name them. */
static KilnStatus choose_columns(State *state, const char ***ret_options, KilnError *err)
{
    const Opts *opts = state->opts;
    const bool flags = opts->label_columns_count > 0;

    state->n_columns = LABEL_COLUMN + (flags ? opts->label_columns_count : 1);
    state->columns = calloc(state->n_columns, sizeof(*state->columns));
    *ret_options = calloc(state->n_columns, sizeof(**ret_options));
    if (state->columns == NULL || *ret_options == NULL)
        return kiln_error_nomem(err, state->n_columns * sizeof(*state->columns));
    state->columns[IMAGE_COLUMN] = opts->image;
    (*ret_options)[IMAGE_COLUMN] = "image";
    for (size_t i = LABEL_COLUMN; i < state->n_columns; i++) {
        state->columns[i] = flags ? opts->label_columns[i - LABEL_COLUMN] : opts->label;
        (*ret_options)[i] = flags ? "label_columns" : "label";
    }
    return KILN_OK;
}

static KilnStatus open_data(State *state, const KilnDataContext *context, KilnError *err)
{
    const KilnTextSource source = KILN_TEXT_SOURCE(state->opts);
    const char **options = NULL;
    KilnStatus status = choose_columns(state, &options, err);

    if (status >= 0)
        status = kiln_text_data_open(&source,
                                     &(KilnTextWanted) { .columns = state->columns,
                                                         .options = options,
                                                         .n_columns = state->n_columns,
                                                         .check = check_row,
                                                         .ctx = state },
                                     context, &state->data, err);
    free(options);
    return status;
}

/* The classes: of the checkpoint, of the options, or collected from the rows. */
static KilnStatus prepare_classes(State *state, const KilnDataContext *context, KilnError *err)
{
    const Opts *opts = state->opts;
    const bool flags = opts->label_columns_count > 0;
    char *const *given = flags ? opts->label_columns : opts->classes;
    const size_t n = flags ? opts->label_columns_count : opts->classes_count;
    KilnStatus status = KILN_OK;

    if (context->fitted != NULL)
        return kiln_name_list_read(&state->classes, context->fitted, classes_file, err);
    for (size_t i = 0; i < n && status >= 0; i++)
        status = kiln_name_list_add(&state->classes, (KilnString) { given[i], strlen(given[i]) },
                                    err);
    state->collects = state->classes.sorted = n == 0;
    return status;
}

/* Image i of a split. */
static void get_image(void *ctx, int64_t i, KilnRawValue *ret)
{
    const Samples *samples = ctx;
    const State *state = samples->state;
    const char *path = samples->paths.data + samples->starts[i];

    if (state->tar == NULL) {
        *ret = (KilnRawValue) { .type = KILN_RAW_PATH, .text = path };
        return;
    }
    const KilnTarMember member = kiln_tar_member(state->tar, member_of(state, path));
    *ret = (KilnRawValue) {
        .type = KILN_RAW_BYTES, .name = path, .data = member.data, .bytes = member.size
    };
}

/* The size of samples; of the checkpoint in prediction. */
static KilnStatus find_shape(State *state, const KilnDataContext *context, KilnError *err)
{
    int64_t decoded[3];
    size_t n = 0;

    if (context->stage == KILN_STAGE_PREDICT) {
        const KilnFeature *image = kiln_spec_feature(context->remembered, "image");

        if (image == NULL || image->shape.rank != 3)
            return kiln_error_set(
                err, KILN_E_SHAPE,
                "datamodule image_list: the checkpoint was not trained on images");
        memcpy(state->shape, image->shape.dim, sizeof(state->shape));
        return KILN_OK;
    }
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        if (state->samples[split].n > 0)
            state->sources[n++] = (KilnImageSource) { .count = state->samples[split].n,
                                                      .ctx = &state->samples[split],
                                                      .get = get_image };
    if (n == 0)
        return kiln_error_set(err, KILN_E_FORMAT, "files: the list has no images");
    return kiln_image_reader_shape_of(state->reader, state->sources, n, context->poll, decoded,
                                      state->shape, err);
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const Opts *opts = state->opts;
    KilnStatus status = prepare_classes(state, context, err);

    state->seed = context->seed;
    if (status >= 0 && kiln_is_tar(opts->root) && context->stage != KILN_STAGE_PREDICT)
        status = kiln_tar_open(opts->root, opts->cache, context->poll, &state->tar, err);
    if (status >= 0)
        status = open_data(state, context, err);
    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++)
        status = read_split(state, (KilnSplit)split, context->poll, err);
    state->samples[KILN_TRAIN].training = context->stage == KILN_STAGE_FIT;
    if (status >= 0)
        status = find_shape(state, context, err);
    if (status < 0)
        return status;
    const Samples *train = &state->samples[KILN_TRAIN];
    const KilnImageSource images = { .count = train->n, .ctx = (void *)train, .get = get_image };
    return context->fitted != NULL
               ? kiln_image_reader_open(state->reader, context->fitted, err)
               : kiln_image_reader_fit(state->reader, &images, NULL, train->n, context->poll, err);
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    state->features[IMAGE] =
        (KilnFeature) { .name = "image",
                        .content = KILN_IMAGE,
                        .dtype = KILN_F32,
                        .shape = KILN_SHAPE(state->shape[0], state->shape[1], state->shape[2]) };
    state->features[LABEL] =
        state->opts->multilabel
            ? (KilnFeature) { .name = "labels",
                              .content = KILN_LABEL,
                              .dtype = KILN_F32,
                              .shape = KILN_SHAPE((int64_t)state->classes.n) }
            : (KilnFeature) { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 };
    *ret = (KilnDataSpec) { .features = state->features,
                            .n_features = FEATURES,
                            .n_classes = (int64_t)state->classes.n,
                            .class_names = (const char *const *)state->classes.names };
    return KILN_OK;
}

static int64_t memory(KilnInstance *self)
{
    const State *state = kiln_state(self);
    size_t n = 0;

    while (n < KILN_SPLIT_COUNT && state->sources[n].get != NULL)
        n++;
    return kiln_image_reader_memory_of(state->reader, state->sources, n);
}

/* ---- Samples ----------------------------------------------------------------------------------
 */

static KilnStatus read_image(const Samples *samples, int64_t index, KilnRng *rng, float *to,
                             KilnError *err)
{
    const State *state = samples->state;
    KilnRawValue raw;

    get_image((void *)samples, index, &raw);
    const KilnImageFile file = { .path = samples->paths.data + samples->starts[index],
                                 .raw = &raw,
                                 .shape = state->shape,
                                 .training = samples->training };
    return kiln_image_reader_read(state->reader, &file, rng, to, err);
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Samples *samples = ctx;
    const State *state = samples->state;
    KilnStatus status = KILN_OK;

    if (sample->data[IMAGE] != NULL)
        status = read_image(samples, index, rng, sample->data[IMAGE], err);
    if (status >= 0 && sample->data[LABEL] != NULL && state->opts->multilabel)
        kiln_label_numbers_flags(&samples->labels, index, state->classes.n, sample->data[LABEL]);
    else if (status >= 0 && sample->data[LABEL] != NULL)
        *(int32_t *)sample->data[LABEL] = samples->labels.numbers[index];
    return status;
}

static const char *name(void *ctx, int64_t index)
{
    const Samples *samples = ctx;

    return samples->paths.data + samples->starts[index];
}

static int64_t label(void *ctx, int64_t index)
{
    return ((const Samples *)ctx)->labels.numbers[index];
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);

    (void)set;
    (void)err;
    *ret = (KilnDataset) { .count = state->samples[split].n,
                           .ctx = &state->samples[split],
                           .get = get,
                           .name = name,
                           .label = state->opts->multilabel ? NULL : label };
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
    return kiln_image_reader_read(state->reader, &file, &unused, sample->data[IMAGE], err);
}

static KilnStatus save_preprocessing(KilnInstance *self, const char *dir, KilnError *err)
{
    const State *state = kiln_state(self);
    KilnStatus status = kiln_name_list_write(&state->classes, dir, classes_file, err);

    return status >= 0 ? kiln_image_reader_save(state->reader, dir, err) : status;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static void left_out(KilnInstance *self, void (*add)(void *ctx, const KilnOmission *omission),
                     void *ctx)
{
    kiln_text_data_left_out(((const State *)kiln_state(self))->data, add, ctx);
}

static void files(KilnInstance *self, void (*add)(void *ctx, const char *text), void *ctx)
{
    kiln_text_data_files(((const State *)kiln_state(self))->data, add, ctx);
}

static const KilnTensorSpec declared[] = {
    { .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "height width channels" },
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "", .optional = true },
    { .name = "labels",
      .content = KILN_LABEL,
      .dtype = KILN_F32,
      .axes = "classes",
      .optional = true },
};

static const KilnDataModuleOps ops = {
    .features = declared,
    .n_features = KILN_COUNT(declared),
    .setup = setup,
    .spec = spec,
    .dataset = dataset,
    .raw_fields = raw_fields,
    .preprocess = preprocess,
    .save_preprocessing = save_preprocessing,
    .loading = loading,
    .memory = memory,
    .left_out = left_out,
    .files = files,
};

const KilnComponent kiln_datamodule_image_list = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "image_list",
    .summary = "Images with a class, or several labels, that a list names: CSV, TSV, JSON lines",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .init = init,
    .release = release,
    .ops.datamodule = &ops,
};

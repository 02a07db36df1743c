/* Images with a class, or with any number of labels, in tar files as webdataset writes them:
 * KEY.jpg beside KEY.cls or KEY.json. They are read where they are, and decoded when a sample is
 * read. */
#include "kiln.h"
#include "kiln/tools/row_labels.h"
#include "kiln/tools/tar_samples.h"
#include "kiln/tools/text_data.h"

#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KilnTextFiles files;
    char *label, *label_key, **classes;
    size_t classes_count;
    bool multilabel;
    double val_fraction;
    int64_t on_error, channels;
    KilnSize *size;
    KilnInstance **transforms;
    size_t transforms_count;
    int64_t max_pixels;
    char *cache;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "64"),
    KILN_FIELD_STRUCT(Opts, files, KilnTextFiles, kiln_text_files_fields,
                      "the .tar, .tar.gz or .tar.zst files of each split"),
    KILN_FIELD_STR(Opts, label, "cls", "the ending of the file with the class: a name or a number"),
    KILN_FIELD_STR_OPT(Opts, label_key, "null",
                       "the key of the class, or of the list of labels, in a JSON file; null: the "
                       "file is the class"),
    KILN_FIELD_BOOL(Opts, multilabel, "false", "an image has any number of labels, a list of JSON"),
    KILN_FIELD_STR_LIST(Opts, classes, "[]",
                        "names of the classes; empty: those of the training files, sorted; of "
                        "numbers all from 0 to the largest"),
    KILN_FIELD_F64(Opts, val_fraction, "0.1", 0.0, 0.9,
                   "training samples held out for validation, if there are no files for it"),
    KILN_FIELD_ENUM(Opts, on_error, "stop", kiln_on_error_choices,
                    "what a sample does whose label is wrong or whose image can't be read: stop "
                    "the run, or be left out and counted"),
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
    KILN_FIELD_OUTPUT_OPT(Opts, cache, "null",
                          "folder for unpacked archives, used again by later runs; null: temporary "
                          "files"),
    KILN_FIELD_END,
};

enum { IMAGE, LABEL, FEATURES };
static const char classes_file[] = "classes.txt";

typedef struct State State;

/* An image in an archive. */
typedef struct Item {
    const KilnTar *tar;
    int64_t member, name, labels, labels_size; /* the last three in Split.text */
} Item;

/* All samples of the files of a split. */
typedef struct Split {
    State *state;
    KilnTar **tars;
    size_t n_tars;
    const char *path; /* of the archive that is being read */
    Item *items;
    int64_t n, capacity;
    KilnText text;           /* names, with a NUL each, and labels */
    KilnLabelNumbers labels; /* without multilabel one each */
    int64_t skipped;
    char example[256], reason[256]; /* of the first one skipped */
} Split;

/* What a dataset points to. */
typedef struct Samples {
    const Split *split;
    const int32_t *order; /* NULL: as in the files */
    bool training;
} Samples;

struct State {
    const Opts *opts;
    KilnImageReader *reader;
    KilnLabelFormat format;
    KilnNameList classes;
    bool collects; /* classes, from the training samples */
    Split splits[KILN_SPLIT_COUNT];
    Samples samples[KILN_SPLIT_COUNT];
    int32_t *order; /* of the training files: for training first, then for validation */
    int64_t n_train, n_val;
    int64_t shape[3]; /* of a sample: height, width, channels */
    KilnFeature features[FEATURES];
    KilnImageSource sources[KILN_SPLIT_COUNT];
    size_t n_sources;
    uint64_t seed;
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "channels";
    if (opts->channels == 2)
        return kiln_error_set(err, KILN_E_RANGE, "expected 1 (grey) or 3 (colour), got 2");
    *ret_option = "multilabel";
    return opts->multilabel && opts->label_key == NULL
               ? kiln_error_set(err, KILN_E_RANGE, "needs label_key, of a list in a JSON file")
               : KILN_OK;
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    state->opts = opts;
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

    for (int i = 0; i < KILN_SPLIT_COUNT; i++) {
        Split *split = &state->splits[i];

        for (size_t k = 0; k < split->n_tars; k++)
            kiln_tar_close(split->tars[k]);
        free(split->tars);
        free(split->items);
        kiln_text_release(&split->text);
        kiln_label_numbers_release(&split->labels);
    }
    kiln_name_list_release(&state->classes);
    kiln_image_reader_free(state->reader);
    free(state->order);
}

/* ---- Reading the archives ---------------------------------------------------------------------
 */

static KilnStatus append_item(Split *split, const KilnTarSample *sample, KilnError *err)
{
    KilnText *text = &split->text;

    if (split->n == split->capacity) {
        const int64_t capacity = split->capacity == 0 ? 1024 : 2 * split->capacity;
        Item *items = realloc(split->items, (size_t)capacity * sizeof(*items));

        if (items == NULL)
            return kiln_error_nomem(err, (size_t)capacity * sizeof(*items));
        split->items = items;
        split->capacity = capacity;
    }
    Item *item = &split->items[split->n];
    *item = (Item) { .tar = split->tars[split->n_tars - 1],
                     .member = sample->image,
                     .name = (int64_t)text->length };
    kiln_text_append(text, split->path);
    kiln_text_char(text, '/');
    kiln_text_append(text, sample->name);
    kiln_text_char(text, '\0');
    item->labels = (int64_t)text->length;
    item->labels_size = (int64_t)sample->labels.length;
    kiln_text_append_n(text, sample->labels.data, sample->labels.length);
    if (text->failed)
        return kiln_error_nomem(err, text->length);
    split->n++;
    return KILN_OK;
}

/* Without line ends and blanks around it. */
static KilnString trim(KilnString text)
{
    while (text.length > 0 && strchr(" \t\r\n", text.data[text.length - 1]) != NULL)
        text.length--;
    while (text.length > 0 && strchr(" \t\r\n", text.data[0]) != NULL) {
        text.data++;
        text.length--;
    }
    return text;
}

static KilnStatus check_sample(Split *split, const KilnTarSample *sample, KilnError *err)
{
    State *state = split->state;
    const Opts *opts = state->opts;

    if (sample->labels.data == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "no file with the same name that ends in .%s (datamodule.label)",
                              opts->label);
    return kiln_row_labels_check(
        &(KilnLabelRule) { .format = &state->format,
                           .several = opts->multilabel,
                           .column = opts->label_key != NULL ? opts->label_key : opts->label,
                           .given = opts->classes_count > 0 },
        &sample->labels, &state->classes, state->collects && split == &state->splits[KILN_TRAIN],
        err);
}

static KilnStatus take_sample(void *ctx, const KilnTarSample *found, KilnError *err)
{
    Split *split = ctx;
    KilnTarSample sample = *found;
    KilnError why = { 0 };

    sample.labels = sample.labels.data != NULL ? trim(sample.labels) : sample.labels;
    KilnStatus status = check_sample(split, &sample, &why);
    if (status >= 0)
        return append_item(split, &sample, err);
    if (split->state->opts->on_error == KILN_ON_ERROR_STOP || status == KILN_E_NOMEM)
        return kiln_error_set(err, status, "%s/%s: %s (on_error=skip leaves such samples out)",
                              split->path, sample.name, why.text);
    if (split->skipped++ == 0) {
        snprintf(split->example, sizeof(split->example), "%s/%s", split->path, sample.name);
        snprintf(split->reason, sizeof(split->reason), "%.255s", why.text);
    }
    return KILN_OK;
}

static KilnStatus read_split(State *state, KilnSplit number, const KilnPoll *poll, KilnError *err)
{
    const KilnTextFiles *files = &state->opts->files;
    char *const *const lists[] = { files->train, files->val, files->test };
    const size_t counts[] = { files->train_count, files->val_count, files->test_count };
    Split *split = &state->splits[number];
    KilnStatus status = KILN_OK;

    split->state = state;
    split->tars = calloc(counts[number] + 1, sizeof(*split->tars));
    if (split->tars == NULL)
        return kiln_error_nomem(err, counts[number] * sizeof(*split->tars));
    for (size_t i = 0; i < counts[number] && status >= 0; i++) {
        split->path = lists[number][i];
        status = kiln_tar_open(split->path, state->opts->cache, poll, &split->tars[i], err);
        if (status < 0)
            break;
        split->n_tars++;
        status = kiln_tar_samples(split->tars[i], split->path,
                                  &(KilnTarSampleSpec) { .endings = kiln_raw_image.endings,
                                                         .label = state->opts->label,
                                                         .key = state->opts->label_key,
                                                         .take = take_sample,
                                                         .ctx = split },
                                  err);
    }
    if (status >= 0 && counts[number] > 0 && split->n == 0)
        status = kiln_error_set(err, KILN_E_FORMAT, "%s: no sample with an image",
                                lists[number][0]);
    return status;
}

/* ---- Classes ----------------------------------------------------------------------------------
 */

static KilnStatus given_classes(State *state, const KilnDataContext *context, KilnError *err)
{
    const Opts *opts = state->opts;
    KilnStatus status = KILN_OK;

    if (context->fitted != NULL)
        return kiln_name_list_read(&state->classes, context->fitted, classes_file, err);
    for (size_t i = 0; i < opts->classes_count && status >= 0; i++)
        status = kiln_name_list_add(
            &state->classes, (KilnString) { opts->classes[i], strlen(opts->classes[i]) }, err);
    state->collects = state->classes.sorted = opts->classes_count == 0;
    return status;
}

/* The largest of the names as numbers; -1: one of them is none. */
static int64_t largest_number(const KilnNameList *names)
{
    enum { DIGITS = 6 };
    int64_t largest = -1;

    for (size_t i = 0; i < names->n; i++) {
        const char *name = names->names[i];
        const size_t n = strlen(name);

        if (n > DIGITS || strspn(name, "0123456789") != n || (n > 1 && name[0] == '0'))
            return -1;
        const int64_t number = strtoll(name, NULL, 10);
        largest = number > largest ? number : largest;
    }
    return largest;
}

/* Classes that are numbers keep them. */
static KilnStatus order_numbers(State *state, KilnError *err)
{
    const int64_t largest = state->collects ? largest_number(&state->classes) : -1;
    KilnStatus status = KILN_OK;

    if (largest < 0)
        return KILN_OK;
    kiln_name_list_release(&state->classes);
    for (int64_t i = 0; i <= largest && status >= 0; i++) {
        char name[24];

        snprintf(name, sizeof(name), "%lld", (long long)i);
        status = kiln_name_list_add(&state->classes, (KilnString) { name, strlen(name) }, err);
    }
    return status;
}

static KilnStatus number_labels(State *state, Split *split, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; i < split->n && status >= 0; i++) {
        const Item *item = &split->items[i];
        const KilnString labels = { split->text.data + item->labels, (size_t)item->labels_size };

        status = kiln_label_numbers_add(&split->labels, &state->format, &labels, &state->classes,
                                        err);
    }
    return status;
}

/* ---- Setup ------------------------------------------------------------------------------------
 */

static const char *name_of(const Split *split, int64_t i)
{
    return split->text.data + split->items[i].name;
}

static void get_image(void *ctx, int64_t i, KilnRawValue *ret)
{
    const Split *split = ctx;
    const KilnTarMember member = kiln_tar_member(split->items[i].tar, split->items[i].member);

    *ret = (KilnRawValue) {
        .type = KILN_RAW_BYTES, .name = name_of(split, i), .data = member.data, .bytes = member.size
    };
}

/* Without files for validation, hold out a part of the training samples. */
static KilnStatus hold_out(State *state, KilnError *err)
{
    const int64_t n = state->splits[KILN_TRAIN].n;
    const double fraction = state->opts->val_fraction;
    const bool holds = state->splits[KILN_VAL].n == 0 && fraction > 0.0 && n > 1;
    const int64_t part = (int64_t)((double)n * fraction + 0.5);

    state->n_val = holds ? (part > 1 ? part : 1) : 0;
    state->n_train = n - state->n_val;
    if (n > INT32_MAX)
        return kiln_error_set(err, KILN_E_RANGE, "%lld samples are too many", (long long)n);
    state->order = malloc((size_t)(n + 1) * sizeof(*state->order));
    return state->order != NULL ? kiln_hold_out(n, state->n_val, state->seed, state->order, err)
                                : kiln_error_nomem(err, (size_t)n * sizeof(*state->order));
}

/* The size of samples; of the checkpoint in prediction. */
static KilnStatus find_shape(State *state, const KilnDataContext *context, KilnError *err)
{
    int64_t decoded[3];

    if (context->stage == KILN_STAGE_PREDICT) {
        const KilnFeature *image = kiln_spec_feature(context->remembered, "image");

        if (image == NULL || image->shape.rank != 3)
            return kiln_error_set(
                err, KILN_E_SHAPE,
                "datamodule image_shards: the checkpoint was not trained on images");
        memcpy(state->shape, image->shape.dim, sizeof(state->shape));
        return KILN_OK;
    }
    for (int i = 0; i < KILN_SPLIT_COUNT; i++)
        if (state->splits[i].n > 0)
            state->sources[state->n_sources++] = (KilnImageSource) { .count = state->splits[i].n,
                                                                     .ctx = &state->splits[i],
                                                                     .get = get_image };
    if (state->n_sources == 0)
        return kiln_error_set(err, KILN_E_MISSING, "files: expected tar files for training");
    return kiln_image_reader_shape_of(state->reader, state->sources, state->n_sources,
                                      context->poll, decoded, state->shape, err);
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const bool has_files = context->stage != KILN_STAGE_PREDICT;
    KilnStatus status = given_classes(state, context, err);

    state->seed = context->seed;
    for (int i = 0; i < KILN_SPLIT_COUNT && has_files && status >= 0; i++)
        status = read_split(state, (KilnSplit)i, context->poll, err);
    if (status >= 0)
        status = order_numbers(state, err);
    for (int i = 0; i < KILN_SPLIT_COUNT && status >= 0; i++)
        status = number_labels(state, &state->splits[i], err);
    if (status >= 0)
        status = hold_out(state, err);
    state->samples[KILN_TRAIN].training = context->stage == KILN_STAGE_FIT;
    if (status >= 0)
        status = find_shape(state, context, err);
    if (status < 0)
        return status;
    const Split *train = &state->splits[KILN_TRAIN];
    const KilnImageSource images = { .count = train->n, .ctx = (void *)train, .get = get_image };
    return context->fitted != NULL ? kiln_image_reader_open(state->reader, context->fitted, err)
                                   : kiln_image_reader_fit(state->reader, &images, state->order,
                                                           state->n_train, context->poll, err);
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

    return kiln_image_reader_memory_of(state->reader, state->sources, state->n_sources);
}

/* ---- Samples ----------------------------------------------------------------------------------
 */

static int64_t place(const Samples *samples, int64_t index)
{
    return samples->order != NULL ? samples->order[index] : index;
}

static KilnStatus read_image(const Samples *samples, int64_t i, KilnRng *rng, float *to,
                             KilnError *err)
{
    const State *state = samples->split->state;
    KilnRawValue raw;

    get_image((void *)samples->split, i, &raw);
    const KilnImageFile file = {
        .path = raw.name, .raw = &raw, .shape = state->shape, .training = samples->training
    };
    return kiln_image_reader_read(state->reader, &file, rng, to, err);
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Samples *samples = ctx;
    const Split *split = samples->split;
    const int64_t i = place(samples, index);
    KilnStatus status = KILN_OK;

    if (sample->data[IMAGE] != NULL)
        status = read_image(samples, i, rng, sample->data[IMAGE], err);
    if (status >= 0 && sample->data[LABEL] != NULL && split->state->opts->multilabel)
        kiln_label_numbers_flags(&split->labels, i, split->state->classes.n, sample->data[LABEL]);
    else if (status >= 0 && sample->data[LABEL] != NULL)
        *(int32_t *)sample->data[LABEL] = split->labels.numbers[i];
    return status;
}

static const char *name(void *ctx, int64_t index)
{
    const Samples *samples = ctx;

    return name_of(samples->split, place(samples, index));
}

static int64_t label(void *ctx, int64_t index)
{
    const Samples *samples = ctx;

    return samples->split->labels.numbers[place(samples, index)];
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);
    Samples *samples = &state->samples[split];
    const bool held_out = split == KILN_VAL && state->n_val > 0;

    (void)set;
    (void)err;
    samples->split = &state->splits[held_out ? KILN_TRAIN : split];
    samples->order = held_out              ? state->order + state->n_train
                     : split == KILN_TRAIN ? state->order
                                           : NULL;
    *ret = (KilnDataset) { .count = held_out              ? state->n_val
                                    : split == KILN_TRAIN ? state->n_train
                                                          : samples->split->n,
                           .ctx = samples,
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
    const State *state = kiln_state(self);

    for (int i = 0; i < KILN_SPLIT_COUNT; i++)
        if (state->splits[i].skipped > 0)
            add(ctx, &(KilnOmission) { .count = state->splits[i].skipped,
                                       .what = "samples",
                                       .example = state->splits[i].example,
                                       .reason = state->splits[i].reason });
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
};

const KilnComponent kiln_datamodule_image_shards = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "image_shards",
    .summary = "Images with a class, or several labels, in tar files as webdataset writes them",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .init = init,
    .release = release,
    .ops.datamodule = &ops,
};

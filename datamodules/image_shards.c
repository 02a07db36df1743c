/* Images with a class, or with any number of labels, in tar files as webdataset writes them:
 * KEY.jpg beside KEY.cls or KEY.json. They are read where they are, and decoded when a sample is
 * read. */
#include "kiln.h"
#include "kiln/images/image_data.h"
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
    int64_t on_error;
    KILN_IMAGE_OPTIONS;
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
    KILN_IMAGE_FIELDS(Opts, "applied to each image in this order"),
    KILN_FIELD_OUTPUT_OPT(Opts, cache, "null",
                          "folder for unpacked archives, used again by later runs; null: temporary "
                          "files"),
    KILN_FIELD_END,
};

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
    KilnText text; /* names, with a NUL each, and labels */
    int64_t skipped;
    char example[256], reason[256]; /* of the first one skipped */
} Split;

struct State {
    KilnImageState image;
    const Opts *opts;
    Split splits[KILN_SPLIT_COUNT];
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    if (kiln_image_check_channels(opts->channels, ret_option, err) < 0)
        return KILN_E_RANGE;
    *ret_option = "multilabel";
    return opts->multilabel && opts->label_key == NULL
               ? kiln_error_set(err, KILN_E_RANGE, "needs label_key, of a list in a JSON file")
               : KILN_OK;
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnImageForm form = KILN_IMAGE_FORM(opts, opts->on_error == KILN_ON_ERROR_SKIP);

    state->opts = opts;
    return kiln_image_data_new(self, &form, &state->image.data, err);
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
    }
    kiln_data_labels_release(&state->image.labels);
    kiln_image_data_free(state->image.data);
}

/* ---- Reading the archives ------------------------------------------------------------------- */

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

static KilnSplit number_of(const Split *split)
{
    return (KilnSplit)(split - split->state->splits);
}

static KilnStatus check_sample(Split *split, const KilnTarSample *sample, KilnError *err)
{
    State *state = split->state;
    const Opts *opts = state->opts;

    if (sample->labels.data == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "no file with the same name that ends in .%s (datamodule.label)",
                              opts->label);
    return kiln_data_labels_check(&state->image.labels, number_of(split), &sample->labels, err);
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

/* ---- Classes -------------------------------------------------------------------------------- */

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
    KilnNameList *classes = &state->image.labels.classes;
    const int64_t largest = state->image.labels.collects ? largest_number(classes) : -1;
    KilnStatus status = KILN_OK;

    if (largest < 0)
        return KILN_OK;
    kiln_name_list_release(classes);
    for (int64_t i = 0; i <= largest && status >= 0; i++) {
        char name[24];

        snprintf(name, sizeof(name), "%lld", (long long)i);
        status = kiln_name_list_add(classes, (KilnString) { name, strlen(name) }, err);
    }
    return status;
}

static KilnStatus number_labels(State *state, Split *split, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; i < split->n && status >= 0; i++) {
        const Item *item = &split->items[i];
        const KilnString labels = { split->text.data + item->labels, (size_t)item->labels_size };

        status = kiln_data_labels_add(&state->image.labels, number_of(split), &labels, err);
    }
    return status;
}

/* ---- Setup ---------------------------------------------------------------------------------- */

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

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const Opts *opts = state->opts;
    const KilnLabelSource labels = { .label = opts->label_key != NULL ? opts->label_key
                                                                      : opts->label,
                                     .classes = opts->classes,
                                     .n_classes = opts->classes_count,
                                     .several = opts->multilabel };
    const bool has_files = context->stage != KILN_STAGE_PREDICT;
    KilnStatus status = kiln_data_labels_open(&state->image.labels, &labels, context, err);

    for (int i = 0; i < KILN_SPLIT_COUNT && has_files && status >= 0; i++)
        status = read_split(state, (KilnSplit)i, context->poll, err);
    if (status >= 0)
        status = order_numbers(state, err);
    for (int i = 0; i < KILN_SPLIT_COUNT && status >= 0; i++) {
        Split *split = &state->splits[i];

        status = number_labels(state, split, err);
        kiln_image_data_put(state->image.data, (KilnSplit)i, 0,
                            &(KilnImageSamples) { .images = { split->n, split, get_image },
                                                  .labels = &state->image.labels });
    }
    return status >= 0 ? kiln_image_data_setup(state->image.data, context, opts->val_fraction, err)
                       : status;
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

static const KilnTensorSpec declared[] = { KILN_IMAGE_SPEC, KILN_LABEL_SPECS };

static const KilnDataModuleOps ops = {
    .shareable = true,
    .features = declared,
    .n_features = KILN_COUNT(declared),
    .setup = setup,
    .spec = kiln_image_spec,
    .dataset = kiln_image_dataset,
    .raw_fields = kiln_image_raw_fields,
    .preprocess = kiln_image_preprocess,
    .save_preprocessing = kiln_image_save_preprocessing,
    .loading = loading,
    .memory = kiln_image_memory,
    .check = kiln_image_check,
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

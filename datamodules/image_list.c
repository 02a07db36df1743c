/* Images with a class, or with any number of labels, that a list names: CSV, TSV, JSON lines. The
 * images are files, or members of a tar. They are decoded when a sample is read. */
#include "kiln.h"
#include "kiln/files/tar.h"
#include "kiln/images/image_data.h"
#include "kiln/tools/text_data.h"

#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KILN_TEXT_OPTIONS;
    KILN_LABEL_OPTIONS;
    KILN_IMAGE_OPTIONS;
    char *root, *image;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "64"),
    KILN_TEXT_FIELDS(Opts),
    KILN_FIELD_PATH_OPT(Opts, root, "null",
                        "the folder that paths in the list are relative to, or a .tar, .tar.gz or "
                        ".tar.zst file that has them; null: the folder of the list"),
    KILN_FIELD_STR(Opts, image, "image", "the column of the image's path"),
    KILN_LABEL_FIELDS(Opts, "an image", ""),
    KILN_IMAGE_FIELDS(Opts, "applied to each image in this order"),
    KILN_FIELD_END,
};

/* The columns that are read: the path, the labels. */
enum { IMAGE_COLUMN, LABEL_COLUMN };

typedef struct State State;

/* The samples of a split. */
typedef struct Samples {
    State *state;
    KilnText paths;  /* one after the other, each with its NUL */
    int64_t *starts; /* of each path */
    int64_t n;
} Samples;

struct State {
    KilnImageState image;
    const Opts *opts;
    KilnTextData *rows;
    KilnTar *tar;         /* NULL: root is a folder */
    const char **columns; /* [LABEL_COLUMN + columns of labels] */
    size_t n_columns;
    Samples samples[KILN_SPLIT_COUNT];
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;
    const KilnLabelSource labels = KILN_LABEL_SOURCE(opts);
    KilnStatus status = kiln_image_check_channels(opts->channels, ret_option, err);

    return status >= 0 ? kiln_label_source_check(&labels, ret_option, err) : status;
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

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        kiln_text_release(&state->samples[split].paths);
        free(state->samples[split].starts);
    }
    kiln_data_labels_release(&state->image.labels);
    free(state->columns);
    kiln_text_data_free(state->rows);
    kiln_tar_close(state->tar);
    kiln_image_data_free(state->image.data);
}

/* ---- Rows ----------------------------------------------------------------------------------- */

/* Append the path of a row's image: a file, or the tar and its member. */
static void append_path(const State *state, const KilnRecord *record, KilnText *to)
{
    const KilnString path = record->fields[IMAGE_COLUMN];

    if (state->tar != NULL)
        kiln_text_printf(to, "%s/%.*s", state->opts->root, (int)path.length, path.data);
    else
        kiln_record_append_path(record, state->n_columns, IMAGE_COLUMN, state->opts->root, to);
}

/* The member of the tar that a sample's path names. */
static int64_t member_of(const State *state, const char *path)
{
    return kiln_tar_find(state->tar, path + strlen(state->opts->root) + 1);
}

static KilnStatus check_image(State *state, const KilnRecord *record, KilnError *err)
{
    const KilnString path = record->fields[IMAGE_COLUMN];
    KilnText full = { 0 };
    KilnStatus status = KILN_OK;

    if (kiln_text_is_blank(path))
        return kiln_error_set(err, KILN_E_MISSING, "the path (column \"%s\") is empty",
                              state->opts->image);
    if (state->tar == NULL)
        return KILN_OK;
    append_path(state, record, &full);
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
    KilnStatus status = check_image(state, record, err);

    return status >= 0 ? kiln_data_labels_check(&state->image.labels, split,
                                                record->fields + LABEL_COLUMN, err)
                       : status;
}

static KilnStatus read_row(State *state, KilnSplit split, int64_t i, KilnRecord *record,
                           KilnError *err)
{
    Samples *samples = &state->samples[split];
    KilnStatus status = kiln_text_data_read(state->rows, split, i, record, err);

    if (status >= 0)
        status = kiln_data_labels_add(&state->image.labels, split, record->fields + LABEL_COLUMN,
                                      err);
    if (status < 0)
        return status;
    samples->starts[i] = (int64_t)samples->paths.length;
    append_path(state, record, &samples->paths);
    kiln_text_char(&samples->paths, '\0');
    return samples->paths.failed ? kiln_error_nomem(err, samples->paths.length) : KILN_OK;
}

static KilnStatus read_split(State *state, KilnSplit split, const KilnPoll *poll, KilnError *err)
{
    Samples *samples = &state->samples[split];
    KilnRecord record = { 0 };
    KilnStatus status = KILN_OK;

    samples->state = state;
    samples->n = kiln_text_data_count(state->rows, split);
    samples->starts = malloc((size_t)(samples->n + 1) * sizeof(*samples->starts));
    if (samples->starts == NULL)
        return kiln_error_nomem(err, (size_t)samples->n * sizeof(*samples->starts));
    for (int64_t i = 0; i < samples->n && status >= 0; i++) {
        status = kiln_poll_check(poll, "reading the list of images", i, samples->n, err);
        if (status >= 0)
            status = read_row(state, split, i, &record, err);
    }
    kiln_record_release(&record);
    return status;
}

/* ---- Setup ---------------------------------------------------------------------------------- */

static KilnStatus open_rows(State *state, const KilnDataContext *context, KilnError *err)
{
    const KilnTextSource source = KILN_TEXT_SOURCE(state->opts);
    const KilnLabelSource *labels = &state->image.labels.source;
    const size_t n = state->n_columns = LABEL_COLUMN + kiln_label_source_width(labels);
    const char **options = calloc(n, sizeof(*options));
    KilnStatus status;

    state->columns = calloc(n, sizeof(*state->columns));
    if (state->columns == NULL || options == NULL) {
        free(options);
        return kiln_error_nomem(err, n * sizeof(*options));
    }
    state->columns[IMAGE_COLUMN] = state->opts->image;
    options[IMAGE_COLUMN] = "image";
    kiln_label_source_columns(labels, state->columns + LABEL_COLUMN, options + LABEL_COLUMN);
    status = kiln_text_data_open(&source,
                                 &(KilnTextWanted) { .columns = state->columns,
                                                     .options = options,
                                                     .n_columns = n,
                                                     .check = check_row,
                                                     .ctx = state },
                                 context, &state->rows, err);
    free(options);
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

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const Opts *opts = state->opts;
    const KilnLabelSource labels = KILN_LABEL_SOURCE(opts);
    KilnStatus status = kiln_data_labels_open(&state->image.labels, &labels, context, err);

    if (status >= 0 && opts->root != NULL && kiln_is_tar(opts->root) &&
        context->stage != KILN_STAGE_PREDICT)
        status = kiln_tar_open(opts->root, opts->cache, context->poll, &state->tar, err);
    if (status >= 0)
        status = open_rows(state, context, err);
    for (int i = 0; i < KILN_SPLIT_COUNT && status >= 0; i++) {
        Samples *samples = &state->samples[i];

        status = read_split(state, (KilnSplit)i, context->poll, err);
        kiln_image_data_put(state->image.data, (KilnSplit)i, 0,
                            &(KilnImageSamples) { .images = { samples->n, samples, get_image },
                                                  .labels = &state->image.labels });
    }
    return status >= 0 ? kiln_image_data_setup(state->image.data, context, 0.0, err) : status;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static void left_out(KilnInstance *self, void (*add)(void *ctx, const KilnOmission *omission),
                     void *ctx)
{
    kiln_text_data_left_out(((const State *)kiln_state(self))->rows, add, ctx);
}

static void files(KilnInstance *self, void (*add)(void *ctx, const char *text), void *ctx)
{
    kiln_text_data_files(((const State *)kiln_state(self))->rows, add, ctx);
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
    .left_out = left_out,
    .files = files,
    .check = kiln_image_check,
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

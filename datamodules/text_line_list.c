/* Images of text lines that a list names, each with its text: CSV, TSV, JSON lines. They are
 * decoded when a sample is read. */
#include "kiln.h"
#include "kiln/images/line_images.h"

#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KILN_LENGTH_OPTIONS;
    KILN_LINE_OPTIONS;
    KILN_TEXT_OPTIONS;
    char *root, *image, *text;
    int64_t max_pixels;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "32"),
    KILN_LENGTH_FIELDS(Opts),
    KILN_LINE_FIELDS(Opts),
    KILN_TEXT_FIELDS(Opts),
    KILN_FIELD_PATH_OPT(Opts, root, "null",
                        "the folder that paths in the list are relative to; null: that of the "
                        "list"),
    KILN_FIELD_STR(Opts, image, "image", "the column of the image's path"),
    KILN_FIELD_STR(Opts, text, "text", "the column of its text"),
    KILN_FIELD_I64(Opts, max_pixels, "89478485", 1, 4294967296.0,
                   "largest image to read, in pixels; a small file can hold very many"),
    KILN_FIELD_END,
};

enum { IMAGE_COLUMN, TEXT_COLUMN, COLUMNS };

typedef struct State State;

typedef struct Line {
    size_t path, text; /* where they begin in Samples.strings */
    int64_t width, characters;
} Line;

/* The lines of a split. */
typedef struct Samples {
    const State *state;
    KilnSplit split;
    KilnText strings; /* paths and texts, each with its NUL */
    Line *lines;
    int64_t n;
} Samples;

struct State {
    KilnLineImages lines;
    const Opts *opts;
    KilnTextData *rows;
    Samples samples[KILN_SPLIT_COUNT];
};

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    (void)err;
    state->opts = opts;
    kiln_line_images_init(&state->lines, opts->height, opts->max_width);
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        kiln_text_release(&state->samples[split].strings);
        free(state->samples[split].lines);
    }
    kiln_text_data_free(state->rows);
    kiln_line_images_release(&state->lines);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Append the path of a row's image, with a NUL. */
static void append_path(const State *state, const KilnRecord *record, KilnText *to)
{
    kiln_record_append_path(record, COLUMNS, IMAGE_COLUMN, state->opts->root, to);
    kiln_text_char(to, '\0');
}

/* The width that an image file has as a line. */
static KilnStatus measure(const State *state, const char *path, int64_t *ret, KilnError *err)
{
    int64_t size[3];
    KilnStatus status = kiln_image_size(path, state->opts->max_pixels, size, err);

    if (status < 0)
        return status;
    status = kiln_line_images_width(&state->lines, size[0], size[1], ret, err);
    return status < 0 ? kiln_error_prefix(err, "%s: ", path) : status;
}

static KilnStatus check_image(const State *state, const KilnRecord *record, int64_t *ret_width,
                              KilnError *err)
{
    KilnText full = { 0 };
    KilnStatus status;

    if (kiln_text_is_blank(record->fields[IMAGE_COLUMN]))
        return kiln_error_set(err, KILN_E_MISSING, "the path (column \"%s\") is empty",
                              state->opts->image);
    append_path(state, record, &full);
    status = full.failed ? kiln_error_nomem(err, full.length)
                         : measure(state, full.data, ret_width, err);
    kiln_text_release(&full);
    if (status >= 0 || status == KILN_E_NOMEM)
        return status;
    if (err != NULL)
        err->status = KILN_E_FORMAT;
    return KILN_E_FORMAT;
}

static KilnStatus check_row(void *ctx, KilnSplit split, const KilnRecord *record, KilnError *err)
{
    State *state = ctx;
    const KilnString text = record->fields[TEXT_COLUMN];
    int64_t width = 0;
    KilnStatus status = check_image(state, record, &width, err);

    if (status >= 0)
        status = kiln_line_images_check(&state->lines, text, width, split == KILN_TRAIN, err);
    return status >= 0 && split == KILN_TRAIN ? kiln_line_images_collect(&state->lines, text, err)
                                              : status;
}

static KilnStatus read_row(State *state, KilnSplit split, int64_t i, KilnRecord *record,
                           KilnError *err)
{
    Samples *samples = &state->samples[split];
    Line *line = &samples->lines[i];
    KilnStatus status = kiln_text_data_read(state->rows, split, i, record, err);

    if (status < 0)
        return status;
    const KilnString text = record->fields[TEXT_COLUMN];
    line->path = samples->strings.length;
    append_path(state, record, &samples->strings);
    line->text = samples->strings.length;
    kiln_text_append_n(&samples->strings, text.data, text.length);
    kiln_text_char(&samples->strings, '\0');
    if (samples->strings.failed)
        return kiln_error_nomem(err, samples->strings.length);
    line->characters = kiln_line_images_count(text);
    return measure(state, samples->strings.data + line->path, &line->width, err);
}

static KilnStatus read_split(State *state, KilnSplit split, const KilnPoll *poll, KilnError *err)
{
    Samples *samples = &state->samples[split];
    KilnRecord record = { 0 };
    KilnStatus status = KILN_OK;

    samples->state = state;
    samples->split = split;
    samples->n = kiln_text_data_count(state->rows, split);
    samples->lines = malloc((size_t)(samples->n + 1) * sizeof(*samples->lines));
    if (samples->lines == NULL)
        return kiln_error_nomem(err, (size_t)samples->n * sizeof(*samples->lines));
    for (int64_t i = 0; i < samples->n && status >= 0; i++) {
        status = kiln_poll_check(poll, "reading the list of lines", i, samples->n, err);
        if (status >= 0)
            status = read_row(state, split, i, &record, err);
    }
    kiln_record_release(&record);
    return status;
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const Opts *opts = state->opts;
    const KilnTextSource source = KILN_TEXT_SOURCE(opts);
    const char *const columns[COLUMNS] = { opts->image, opts->text };
    static const char *const options[COLUMNS] = { "image", "text" };
    KilnStatus status = kiln_line_images_open(&state->lines, context, err);

    if (status >= 0)
        status = kiln_text_data_open(&source,
                                     &(KilnTextWanted) { .columns = columns,
                                                         .options = options,
                                                         .n_columns = COLUMNS,
                                                         .check = check_row,
                                                         .ctx = state },
                                     context, &state->rows, err);
    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++)
        status = read_split(state, (KilnSplit)split, context->poll, err);
    return status >= 0 ? kiln_line_images_ready(&state->lines, err) : status;
}

/* ---- Samples --------------------------------------------------------------------------------- */

static KilnStatus read_line(const Samples *samples, int64_t i, float *to, KilnError *err)
{
    const State *state = samples->state;
    const Line *line = &samples->lines[i];
    const KilnRawValue image = { .type = KILN_RAW_PATH,
                                 .text = samples->strings.data + line->path };
    const KilnStatus status = kiln_line_images_read(&state->lines, &image, state->opts->max_pixels,
                                                    line->width, to, err);
    char at[256];

    if (status >= 0 || status == KILN_E_NOMEM)
        return status;
    if (state->opts->on_error != KILN_ON_ERROR_SKIP)
        return kiln_error_prefix(
            err, "%s: ", kiln_text_data_location(state->rows, samples->split, i, at, sizeof(at)));
    if (err != NULL)
        err->status = KILN_E_SKIP;
    return KILN_E_SKIP;
}

static KilnStatus get(void *ctx, int64_t i, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Samples *samples = ctx;
    const char *text = samples->strings.data + samples->lines[i].text;
    KilnStatus status = KILN_OK;

    (void)rng;
    if (sample->data[KILN_LINE_PIXELS] != NULL)
        status = read_line(samples, i, sample->data[KILN_LINE_PIXELS], err);
    return status >= 0 ? kiln_line_images_write(&samples->state->lines, text, sample, err) : status;
}

static void lengths(void *ctx, int64_t i, int64_t *ret)
{
    const Samples *samples = ctx;

    ret[KILN_LINE_PIXELS] = samples->lines[i].width;
    ret[KILN_LINE_CHARACTERS] = samples->lines[i].characters;
}

static const char *name(void *ctx, int64_t i)
{
    const Samples *samples = ctx;

    return samples->strings.data + samples->lines[i].path;
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    static const char *const texts[] = { "true_text", NULL };
    State *state = kiln_state(self);

    (void)set;
    (void)err;
    *ret = (KilnDataset) { .count = state->samples[split].n,
                           .ctx = &state->samples[split],
                           .get = get,
                           .name = name,
                           .lengths = lengths,
                           .absent = split == KILN_TRAIN ? texts : NULL };
    return KILN_OK;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state((KilnInstance *)self);

    *ret = KILN_LENGTH_LOADING(opts);
    kiln_text_buckets_set(&state->lines.buckets, ret);
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

static KilnString get_text(void *ctx, int64_t i, int64_t *ret_width)
{
    const Samples *samples = ctx;
    const char *text = samples->strings.data + samples->lines[i].text;

    *ret_width = samples->lines[i].width;
    return (KilnString) { text, strlen(text) };
}

static KilnStatus check_data(KilnInstance *self, const KilnPoll *poll,
                             void (*add)(void *ctx, const KilnDataFinding *finding), void *ctx,
                             KilnError *err)
{
    State *state = kiln_state(self);
    KilnLineTexts texts[KILN_SPLIT_COUNT];

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        texts[split] = (KilnLineTexts) { .count = state->samples[split].n,
                                         .ctx = &state->samples[split],
                                         .get = get_text,
                                         .name = name };
    return kiln_line_images_check_data(&state->lines, texts, poll, add, ctx, err);
}

static const KilnTensorSpec declared[] = { KILN_LINE_SPECS };

static const KilnDataModuleOps ops = {
    .shareable = true,
    .features = declared,
    .n_features = KILN_COUNT(declared),
    .setup = setup,
    .spec = kiln_line_spec,
    .dataset = dataset,
    .raw_fields = kiln_line_raw_fields,
    .preprocess = kiln_line_preprocess,
    .save_preprocessing = kiln_line_save_preprocessing,
    .loading = loading,
    .left_out = left_out,
    .files = files,
    .check = check_data,
};

const KilnComponent kiln_datamodule_text_line_list = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "text_line_list",
    .summary = "Images of text lines and their texts, which a list names: CSV, TSV, JSON lines",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .init = init,
    .release = release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_text_line_list, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

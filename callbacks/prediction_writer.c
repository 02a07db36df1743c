/* Writes predictions, a row per sample, as JSON lines, CSV or safetensors. */
#include "kiln.h"
#include "kiln/files/safetensors.h"
#include "kiln/tools/prediction_json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { JSONL, CSV, SAFETENSORS };
enum { EACH_BATCH, AT_END };

typedef struct Opts {
    char *path;
    int64_t *format;
    int64_t *interval;
} Opts;

static const KilnChoice formats[] = {
    { "jsonl", JSONL }, { "csv", CSV }, { "safetensors", SAFETENSORS }, { NULL, 0 }
};
static const KilnChoice intervals[] = { { "batch", EACH_BATCH }, { "epoch", AT_END }, { NULL, 0 } };

static const KilnField fields[] = {
    KILN_FIELD_OUTPUT(Opts, path, "'-'",
                      "file to write (further sets append their name); -: standard output"),
    KILN_FIELD_ENUM_OPT(Opts, format, "null", formats,
                        "null: by the file's ending; jsonl for standard output"),
    KILN_FIELD_ENUM_OPT(
        Opts, interval, "null", intervals,
        "batch: write after each batch, safetensors as one file each (-000001 after the name); "
        "epoch: "
        "everything at the end; null: lines after each batch, safetensors at the end"),
    KILN_FIELD_END,
};

/* All rows of an output, kept until the end for safetensors. */
typedef struct Column {
    char *name;
    KilnShape shape; /* of a row */
    float *data;
    size_t capacity;
} Column;

typedef struct State {
    KilnTrainer *trainer;
    int64_t format;
    int64_t set;      /* which one is written, */
    char path[4096];  /* and where */
    FILE *file;       /* NULL: standard output */
    KilnText text;    /* the current line, or all lines until the end */
    bool each_batch;  /* write after each */
    bool has_head;    /* of CSV */
    int64_t n_values; /* cells after the common ones */
    Column columns[KILN_STEP_OUTPUTS];
    size_t n_columns, n_rows;
    int64_t *samples, *labels; /* of these rows; label -1: not known */
    size_t samples_capacity, labels_capacity;
    bool has_labels;
    int64_t files; /* written, of safetensors */
} State;

/* ---- Text -------------------------------------------------------------------------------- */

static KilnStatus check_text(const State *state, KilnError *err)
{
    return state->text.failed ? kiln_error_nomem(err, state->text.length + 1) : KILN_OK;
}

/* Write the complete lines. */
static KilnStatus flush(State *state, KilnError *err)
{
    KilnText *text = &state->text;
    KilnStatus status = check_text(state, err);

    if (status < 0 || text->length == 0)
        return status;
    errno = EIO;
    if (state->file == NULL)
        status = kiln_trainer_output(state->trainer, text->data, err);
    else if (fwrite(text->data, 1, text->length, state->file) != text->length ||
             fflush(state->file) != 0)
        status = kiln_error_errno(err, state->path);
    kiln_text_clear(text);
    return status;
}

/* The name of a row's true class; NULL: unknown. */
static const char *label_of(const State *state, int64_t row)
{
    const int64_t label = kiln_trainer_row_label(state->trainer, row);

    return label < 0 ? NULL : kiln_trainer_spec(state->trainer)->class_names[label];
}

static int64_t width_of(const KilnOutputView *output)
{
    return output->shape.dim[0] > 0 ? kiln_shape_count(&output->shape) / output->shape.dim[0] : 0;
}

/* A file name's ending without the dot; "" if it has none. */
static const char *ending_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');

    return dot != NULL && (slash == NULL || dot > slash) ? dot + 1 : "";
}

/* `path` with -TEXT before its ending; unchanged without text. */
static void with_suffix(const char *path, const char *text, char *buf, size_t size)
{
    const size_t ending = strlen(ending_of(path));
    const size_t stem = strlen(path) - (ending > 0 ? ending + 1 : 0);

    snprintf(buf, size, "%.*s%s%s%s", (int)stem, path, text[0] != '\0' ? "-" : "", text,
             path + stem);
}

/* The class with the largest probability; NULL if the output is not per class. */
static const char *class_of(const State *state, const KilnOutputView *output, int64_t row)
{
    const int64_t width = width_of(output);

    return kiln_prediction_class(kiln_trainer_spec(state->trainer), output->name,
                                 output->data + row * width, width);
}

/* ---- JSON lines --------------------------------------------------------------------------- */

/* Begin a line with the members that identify the sample. */
static void begin_line(State *state, int64_t sample)
{
    const char *set = kiln_trainer_dataloader_name(state->trainer);

    kiln_prediction_json_begin(&state->text, sample,
                               kiln_trainer_sample_name(state->trainer, sample));
    kiln_prediction_json_text(&state->text, "set", set[0] != '\0' ? set : NULL);
}

static void put_line(State *state, const KilnOutputView *outputs, size_t n, int64_t sample,
                     int64_t row)
{
    const KilnDataSpec *spec = kiln_trainer_spec(state->trainer);
    KilnText *line = &state->text;

    begin_line(state, sample);
    kiln_prediction_json_text(line, "label", label_of(state, row));
    for (size_t i = 0; i < spec->n_features; i++)
        kiln_prediction_json_text(line, spec->features[i].name,
                                  kiln_trainer_text(state->trainer, spec->features[i].name, row));
    for (size_t i = 0; kiln_trainer_result_name(state->trainer, i) != NULL; i++)
        kiln_prediction_json_value(line, kiln_trainer_result_name(state->trainer, i),
                                   kiln_trainer_result(state->trainer, i, row));
    for (size_t i = 0; i < n; i++) {
        const int64_t width = width_of(&outputs[i]);

        kiln_prediction_json_output(line, spec, outputs[i].name, outputs[i].data + row * width,
                                    width);
    }
    kiln_prediction_json_end(line);
}

/* ---- CSV ------------------------------------------------------------------------------------ */

/* A cell with its separator. */
static void add_cell(State *state, const char *before, const char *text)
{
    const char *quote = strpbrk(text, ",\"\r\n") != NULL ? "\"" : "";

    kiln_text_printf(&state->text, "%s%s", before, quote);
    for (const char *c = text; *c != '\0'; c++)
        kiln_text_append_n(&state->text, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
    kiln_text_append(&state->text, quote);
}

static void add_head(State *state, const KilnOutputView *outputs, size_t n)
{
    const KilnDataSpec *spec = kiln_trainer_spec(state->trainer);

    kiln_text_append(&state->text, "index,file,error,label,class");
    for (size_t i = 0; i < spec->n_features; i++)
        if (spec->features[i].content == KILN_TEXT) {
            add_cell(state, ",", spec->features[i].name);
            state->n_values++;
        }
    for (size_t i = 0; kiln_trainer_result_name(state->trainer, i) != NULL; i++) {
        add_cell(state, ",", kiln_trainer_result_name(state->trainer, i));
        state->n_values++;
    }
    for (size_t i = 0; i < n; i++) {
        const int64_t width = width_of(&outputs[i]);

        for (int64_t j = 0; j < width; j++) {
            char index[32], name[512];

            snprintf(index, sizeof(index), "%" PRId64, j);
            snprintf(name, sizeof(name), "%s/%s", outputs[i].name,
                     width == spec->n_classes ? spec->class_names[j] : index);
            add_cell(state, ",", width > 1 ? name : outputs[i].name);
            state->n_values++;
        }
    }
    state->has_head = true;
    kiln_text_char(&state->text, '\n');
}

/* The cells "index,file". */
static void add_sample(State *state, int64_t sample)
{
    const char *name = kiln_trainer_sample_name(state->trainer, sample);

    kiln_text_printf(&state->text, "%" PRId64, sample);
    add_cell(state, ",", name != NULL ? name : "");
}

/* The cell of a result: a JSON text without its quotes, else the JSON. */
static void add_result(State *state, const char *value)
{
    json_t *json = value != NULL ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;

    add_cell(state, ",",
             json_is_string(json) ? json_string_value(json)
             : value != NULL      ? value
                                  : "");
    json_decref(json);
}

static void add_csv_row(State *state, const KilnOutputView *outputs, size_t n, int64_t sample,
                        int64_t row)
{
    const KilnDataSpec *spec = kiln_trainer_spec(state->trainer);
    const char *class = NULL, *label = label_of(state, row);

    add_sample(state, sample);
    for (size_t i = 0; i < n; i++)
        class = class_of(state, &outputs[i], row) != NULL ? class_of(state, &outputs[i], row)
                                                          : class;
    add_cell(state, ",,", label != NULL ? label : "");
    add_cell(state, ",", class != NULL ? class : "");
    for (size_t i = 0; i < spec->n_features; i++) {
        const char *text = kiln_trainer_text(state->trainer, spec->features[i].name, row);

        if (spec->features[i].content == KILN_TEXT)
            add_cell(state, ",", text != NULL ? text : "");
    }
    for (size_t i = 0; kiln_trainer_result_name(state->trainer, i) != NULL; i++)
        add_result(state, kiln_trainer_result(state->trainer, i, row));
    for (size_t i = 0; i < n; i++) {
        const int64_t width = width_of(&outputs[i]);

        for (int64_t j = 0; j < width; j++)
            kiln_text_printf(&state->text, ",%.9g", (double)outputs[i].data[row * width + j]);
    }
    kiln_text_char(&state->text, '\n');
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static void put_unread(State *state, const KilnUnreadSample *unread)
{
    if (state->format == JSONL) {
        begin_line(state, unread->sample);
        kiln_prediction_json_text(&state->text, "error", unread->message);
        kiln_prediction_json_end(&state->text);
        return;
    }
    add_sample(state, unread->sample);
    add_cell(state, ",", unread->message);
    for (int64_t i = 0; i < 2 + state->n_values; i++)
        kiln_text_char(&state->text, ',');
    kiln_text_char(&state->text, '\n');
}

/* The batch's rows and the samples that could not be read, in the input's order. */
static KilnStatus put_batch(State *state, const KilnOutputView *outputs, size_t n, KilnError *err)
{
    const KilnUnreadSample *unread;
    size_t n_unread = kiln_trainer_unread(state->trainer, &unread), done = 0;
    int64_t rows;
    const int64_t *samples = kiln_trainer_batch_samples(state->trainer, &rows);

    if (state->format == CSV && !state->has_head)
        add_head(state, outputs, n);
    for (int64_t row = 0; row < rows; row++) {
        for (; done < n_unread && unread[done].sample < samples[row]; done++)
            put_unread(state, &unread[done]);
        if (state->format == CSV)
            add_csv_row(state, outputs, n, samples[row], row);
        else
            put_line(state, outputs, n, samples[row], row);
    }
    for (; done < n_unread; done++)
        put_unread(state, &unread[done]);
    return check_text(state, err);
}

/* ---- safetensors -------------------------------------------------------------------- */

static KilnStatus keep_column(State *state, const KilnOutputView *output, size_t i, size_t rows,
                              KilnError *err)
{
    Column *column = &state->columns[i];
    const size_t width = (size_t)width_of(output);
    const bool first = column->name == NULL;

    if (first) {
        column->name = strdup(output->name);
        column->shape = output->shape;
        if (column->name == NULL)
            return kiln_error_nomem(err, strlen(output->name));
    }
    for (int axis = 1; axis < column->shape.rank; axis++)
        if (column->shape.dim[axis] != output->shape.dim[axis])
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "%s has a different shape than in earlier batches, and one "
                                  "tensor cannot hold both; use "
                                  "format=jsonl, or interval=batch",
                                  output->name);
    if (!KILN_RESERVE(column->data, column->capacity, (state->n_rows + rows) * width))
        return kiln_error_nomem(err, (state->n_rows + rows) * width * sizeof(float));
    memcpy(column->data + state->n_rows * width, output->data, rows * width * sizeof(float));
    return KILN_OK;
}

static KilnStatus keep_batch(State *state, const KilnOutputView *outputs, size_t n, KilnError *err)
{
    int64_t rows;
    const int64_t *samples = kiln_trainer_batch_samples(state->trainer, &rows);
    const size_t all = state->n_rows + (size_t)rows;
    KilnStatus status = KILN_OK;

    if (!KILN_RESERVE(state->samples, state->samples_capacity, all) ||
        !KILN_RESERVE(state->labels, state->labels_capacity, all))
        return kiln_error_nomem(err, all * sizeof(*samples));
    for (int64_t row = 0; row < rows; row++) {
        const int64_t label = kiln_trainer_row_label(state->trainer, row);

        state->samples[state->n_rows + (size_t)row] = samples[row];
        state->labels[state->n_rows + (size_t)row] = label;
        state->has_labels |= label >= 0;
    }
    for (size_t i = 0; i < n && status >= 0; i++)
        status = keep_column(state, &outputs[i], i, (size_t)rows, err);
    state->n_columns = n;
    state->n_rows += (size_t)rows;
    return status;
}

/* "out.safetensors", or "out-000001.safetensors" for the first batch. */
static void file_name(const State *state, int64_t number, char *buf, size_t size)
{
    char text[32];

    snprintf(text, sizeof(text), "%06" PRId64, number);
    with_suffix(state->path, state->each_batch ? text : "", buf, size);
}

/* The metadata has the names of the classes, as a JSON list. */
static KilnStatus write_file(const State *state, const char *path, const KilnStView *views,
                             size_t n, KilnError *err)
{
    const KilnDataSpec *spec = kiln_trainer_spec(state->trainer);
    json_t *names = json_array();

    for (int64_t i = 0; i < spec->n_classes; i++)
        json_array_append_new(names, json_string(spec->class_names[i]));
    char *text = json_dumps(names, 0);
    KilnStatus status = text != NULL
                            ? kiln_safetensors_write(path, views, n,
                                                     &(KilnStText) { "classes", text }, 1, err)
                            : kiln_error_nomem(err, 1);
    json_decref(names);
    free(text);
    return status;
}

static KilnStatus write_columns(State *state, KilnError *err)
{
    const KilnShape rows = KILN_SHAPE((int64_t)state->n_rows);
    KilnStView views[KILN_STEP_OUTPUTS + 2];
    size_t n = state->n_columns;
    char path[4096];

    if (state->n_rows == 0)
        return KILN_OK;
    for (size_t i = 0; i < state->n_columns; i++) {
        Column *column = &state->columns[i];

        column->shape.dim[0] = (int64_t)state->n_rows;
        views[i] = (KilnStView) { column->name, KILN_F32, column->shape, column->data };
    }
    views[n++] = (KilnStView) { "index", KILN_I64, rows, state->samples };
    if (state->has_labels)
        views[n++] = (KilnStView) { "label", KILN_I64, rows, state->labels };
    file_name(state, ++state->files, path, sizeof(path));
    KilnStatus status = write_file(state, path, views, n, err);
    for (size_t i = 0; i < state->n_columns; i++) {
        free(state->columns[i].name);
        state->columns[i].name = NULL;
    }
    state->n_rows = 0;
    state->has_labels = false;
    return status;
}

/* ---- Hooks -------------------------------------------------------------------------- */

/* -1: unknown ending. */
static int64_t format_of(const Opts *opts)
{
    const char *ending = ending_of(opts->path);

    if (opts->format != NULL)
        return *opts->format;
    if (strcmp(opts->path, "-") == 0)
        return JSONL;
    for (size_t i = 0; formats[i].name != NULL; i++)
        if (strcasecmp(ending, formats[i].name) == 0)
            return formats[i].value;
    return -1;
}

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;
    const char *ending = ending_of(opts->path);

    *ret_option = "path";
    if (format_of(opts) < 0)
        return kiln_error_set(
            err, KILN_E_RANGE,
            "%s%s; expected a file that ends in .jsonl, .csv or .safetensors, or set "
            "callbacks.prediction_writer.format",
            ending[0] != '\0' ? "unknown ending ." : "no ending", ending);
    if (format_of(opts) != SAFETENSORS || strcmp(opts->path, "-") != 0)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_RANGE, "- is for lines; safetensors need a file");
}

/* A file per set; standard output takes all of them. */
static KilnStatus begin_set(const Opts *opts, State *state, KilnError *err)
{
    const bool prints = strcmp(opts->path, "-") == 0;

    state->set = kiln_trainer_dataloader(state->trainer);
    state->has_head = false;
    state->n_values = 0;
    state->files = 0;
    with_suffix(opts->path, prints ? "" : kiln_trainer_dataloader_name(state->trainer), state->path,
                sizeof(state->path));
    if (state->format == SAFETENSORS || prints)
        return KILN_OK;
    state->file = fopen(state->path, "we");
    return state->file != NULL ? KILN_OK : kiln_error_errno(err, state->path);
}

/* Samples after the last batch may have been unreadable, too. */
static KilnStatus end_set(State *state, KilnError *err)
{
    const KilnUnreadSample *unread;
    const size_t n = kiln_trainer_unread(state->trainer, &unread);

    if (state->format == SAFETENSORS)
        return write_columns(state, err);
    if (state->format == CSV && !state->has_head)
        add_head(state, NULL, 0);
    for (size_t i = 0; i < n; i++)
        put_unread(state, &unread[i]);
    KilnStatus status = flush(state, err);
    errno = EIO;
    if (state->file != NULL && fclose(state->file) != 0 && status >= 0)
        status = kiln_error_errno(err, state->path);
    state->file = NULL;
    return status;
}

static KilnStatus on_predict_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    state->trainer = trainer;
    state->format = format_of(opts);
    state->each_batch = opts->interval != NULL ? *opts->interval == EACH_BATCH
                                               : state->format != SAFETENSORS;
    if (state->format == CSV && strcmp(opts->path, "-") == 0 &&
        kiln_trainer_dataloaders(trainer) > 1)
        return kiln_error_set(err, KILN_E_RANGE,
                              "path: - has room for one table, and there are %" PRId64
                              " sets; name a file, which becomes one for each, or use "
                              "format=jsonl",
                              kiln_trainer_dataloaders(trainer));
    return begin_set(opts, state, err);
}

static KilnStatus on_predict_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnOutputView outputs[KILN_STEP_OUTPUTS];
    const size_t n = kiln_trainer_outputs(trainer, outputs);
    KilnStatus status = KILN_OK;

    if (kiln_trainer_dataloader(trainer) != state->set) {
        status = end_set(state, err);
        if (status >= 0)
            status = begin_set(opts, state, err);
    }
    if (status >= 0)
        status = state->format == SAFETENSORS ? keep_batch(state, outputs, n, err)
                                              : put_batch(state, outputs, n, err);
    if (status < 0 || !state->each_batch)
        return status;
    return state->format == SAFETENSORS ? write_columns(state, err) : flush(state, err);
}

static KilnStatus on_predict_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)trainer;
    return end_set(kiln_state(self), err);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    if (state->file != NULL)
        (void)fclose(state->file);
    for (size_t i = 0; i < KILN_STEP_OUTPUTS; i++) {
        free(state->columns[i].name);
        free(state->columns[i].data);
    }
    free(state->samples);
    free(state->labels);
    kiln_text_release(&state->text);
}

static const KilnCallbackOps ops = {
    .on_predict_start = on_predict_start,
    .on_predict_batch_end = on_predict_batch_end,
    .on_predict_end = on_predict_end,
};

const KilnComponent kiln_callback_prediction_writer = {
    .kind = KILN_KIND_CALLBACK,
    .name = "prediction_writer",
    .summary = "Write predictions as JSON lines, CSV or safetensors",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_prediction_writer, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

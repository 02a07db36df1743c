/* Sparse rows of numbers in LibSVM's format, with a class, a number, or the relevance for a query.
 */
#include "kiln.h"
#include "kiln/files/libsvm.h"
#include "kiln/tools/name_list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AUTO, CLASSES, NUMBER };
enum { NAN_VALUE, ZERO_VALUE };
enum { MOST_CLASSES = 20 }; /* that auto takes for classes */

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KilnTextFiles files;
    int64_t target_type, absent, *first_index, on_error;
    double val_fraction;
    char *cache;
} Opts;

static const KilnChoice target_types[] = {
    { "auto", AUTO }, { "classes", CLASSES }, { "number", NUMBER }, { NULL, 0 }
};
static const KilnChoice absent_values[] = { { "missing", NAN_VALUE },
                                            { "zero", ZERO_VALUE },
                                            { NULL, 0 } };

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "256"),
    KILN_FIELD_STRUCT(Opts, files, KilnTextFiles, kiln_text_files_fields,
                      "the files of each split, packed (.gz, .zst) or not; FILE.query and "
                      "FILE.weight beside them are read, too"),
    KILN_FIELD_ENUM(Opts, target_type, "auto", target_types,
                    "classes give the feature label, a number gives target; auto: at most 20 "
                    "different whole numbers are classes, unless the rows have queries"),
    KILN_FIELD_ENUM(Opts, absent, "missing", absent_values,
                    "the value of an index that a row lacks: missing (NaN, for trees) or zero"),
    KILN_FIELD_I64_OPT(Opts, first_index, "null", 0, 1,
                       "the index of the first column; null: 0 if a training row has it, else 1"),
    KILN_FIELD_F64(Opts, val_fraction, "0.1", 0.0, 0.9,
                   "training rows held out for validation, if there are no files for it; of rows "
                   "with queries, whole queries"),
    KILN_FIELD_ENUM(Opts, on_error, "stop", kiln_on_error_choices,
                    "what a bad row does: stop with its file and line, or skip it and count it"),
    KILN_FIELD_OUTPUT_OPT(Opts, cache, "null",
                          "folder for unpacked files and row indexes, used again by later runs"),
    KILN_FIELD_END,
};

typedef struct State State;

/* The samples of a split. */
typedef struct Samples {
    const State *state;
    const KilnLibsvm *rows;
    int64_t *list; /* [count]: their rows; NULL: all in order */
    int64_t count;
    const char *absent[3]; /* features that they lack */
    char place[512];       /* of the sample whose name was asked for last */
} Samples;

enum { X, TARGET, EXTRA, FEATURES = 4 };

struct State {
    const Opts *opts;
    KilnLibsvm rows[KILN_SPLIT_COUNT];
    Samples samples[KILN_SPLIT_COUNT];
    /* Fitted to the training rows. */
    int64_t first, columns;
    bool classes, queries, weights;
    KilnNameList names; /* of the classes */
    float *labels;      /* [names.n], ascending */
    KilnFeature features[FEATURES];
    size_t n_features;
    KilnRawField raw;
    KilnRecords *input; /* of a user */
};

/* ---- What is fitted -------------------------------------------------------------------- */

static const char plan_file[] = "libsvm.txt", classes_file[] = "classes.txt";

static int compare(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return x < y ? -1 : x > y ? 1 : 0;
}

/* Different labels in ascending order; returns their number. */
static int64_t distinct_labels(const KilnLibsvm *rows, float *sorted)
{
    int64_t n = 0;

    memcpy(sorted, rows->labels, (size_t)rows->n * sizeof(*sorted));
    qsort(sorted, (size_t)rows->n, sizeof(*sorted), compare);
    for (int64_t i = 0; i < rows->n; i++)
        if (n == 0 || sorted[i] != sorted[n - 1])
            sorted[n++] = sorted[i];
    return n;
}

static bool are_classes(const Opts *opts, const KilnLibsvm *rows, const float *labels, int64_t n)
{
    bool whole = true;

    for (int64_t i = 0; i < n; i++)
        whole = whole && labels[i] == floorf(labels[i]);
    return opts->target_type == CLASSES ||
           (opts->target_type == AUTO && rows->queries == NULL && whole && n <= MOST_CLASSES);
}

static KilnStatus name_classes(State *state, int64_t n, KilnError *err)
{
    KilnStatus status = KILN_OK;
    char name[32];

    for (int64_t i = 0; i < n && status >= 0; i++) {
        snprintf(name, sizeof(name), "%.9g", (double)state->labels[i]);
        status = kiln_name_list_add(&state->names, (KilnString) { name, strlen(name) }, err);
    }
    return status;
}

static KilnStatus fit(State *state, KilnError *err)
{
    const KilnLibsvm *rows = &state->rows[KILN_TRAIN];
    const int64_t *first = state->opts->first_index;

    state->first = first != NULL ? *first : rows->least == 0 ? 0 : 1;
    if (rows->least >= 0 && rows->least < state->first)
        return kiln_error_set(err, KILN_E_RANGE, "first_index: 1, but a training row has index 0");
    state->columns = rows->largest < state->first ? 1 : rows->largest - state->first + 1;
    state->queries = rows->queries != NULL;
    state->weights = rows->weights != NULL;
    state->labels = malloc((size_t)rows->n * sizeof(*state->labels) + 1);
    if (state->labels == NULL)
        return kiln_error_nomem(err, (size_t)rows->n * sizeof(*state->labels));
    const int64_t n = distinct_labels(rows, state->labels);
    state->classes = are_classes(state->opts, rows, state->labels, n);
    return state->classes ? name_classes(state, n, err) : KILN_OK;
}

static KilnStatus save_preprocessing(KilnInstance *self, const char *dir, KilnError *err)
{
    const State *state = kiln_state(self);
    const int64_t numbers[] = { state->first, state->columns, state->classes, state->queries,
                                state->weights };
    KilnNameList plan = { 0 };
    KilnStatus status = KILN_OK;
    char text[48];

    for (size_t i = 0; i < KILN_COUNT(numbers) && status >= 0; i++) {
        snprintf(text, sizeof(text), "%zu %lld", i, (long long)numbers[i]);
        status = kiln_name_list_add(&plan, (KilnString) { text, strlen(text) }, err);
    }
    if (status >= 0)
        status = kiln_name_list_write(&plan, dir, plan_file, err);
    kiln_name_list_release(&plan);
    return status >= 0 && state->classes
               ? kiln_name_list_write(&state->names, dir, classes_file, err)
               : status;
}

/* Number i of the plan; -1: it is not there. */
static int64_t plan_number(const KilnNameList *plan, size_t i)
{
    const char *space = i < plan->n ? strchr(plan->names[i], ' ') : NULL;
    char *end = NULL;
    const long long number = space != NULL ? strtoll(space + 1, &end, 10) : -1;

    return end != NULL && *end == '\0' ? number : -1;
}

static KilnStatus read_classes(State *state, const char *dir, KilnError *err)
{
    KilnStatus status = kiln_name_list_read(&state->names, dir, classes_file, err);

    if (status < 0)
        return status;
    state->labels = malloc(state->names.n * sizeof(*state->labels) + 1);
    if (state->labels == NULL)
        return kiln_error_nomem(err, state->names.n * sizeof(*state->labels));
    for (size_t i = 0; i < state->names.n; i++)
        state->labels[i] = strtof(state->names.names[i], NULL);
    return KILN_OK;
}

static KilnStatus read_fitted(State *state, const char *dir, KilnError *err)
{
    KilnNameList plan = { 0 };
    KilnStatus status = kiln_name_list_read(&plan, dir, plan_file, err);

    if (status >= 0) {
        state->first = plan_number(&plan, 0);
        state->columns = plan_number(&plan, 1);
        state->classes = plan_number(&plan, 2) == 1;
        state->queries = plan_number(&plan, 3) == 1;
        state->weights = plan_number(&plan, 4) == 1;
        if (state->first < 0 || state->first > 1 || state->columns < 1 ||
            state->columns > INT32_MAX)
            status = kiln_error_set(err, KILN_E_FORMAT, "%s/%s: is damaged", dir, plan_file);
    }
    kiln_name_list_release(&plan);
    return status >= 0 && state->classes ? read_classes(state, dir, err) : status;
}

/* The class of a label; -1: no training row has it. */
static int32_t class_of(const State *state, float label)
{
    const float *found = bsearch(&label, state->labels, state->names.n, sizeof(*state->labels),
                                 compare);

    return found != NULL ? (int32_t)(found - state->labels) : -1;
}

static KilnStatus check_classes(const State *state, const KilnLibsvm *rows, KilnError *err)
{
    char place[512];

    for (int64_t i = 0; i < rows->n && state->classes; i++)
        if (class_of(state, rows->labels[i]) < 0)
            return kiln_error_set(
                err, KILN_E_KEY,
                "%s: the label %g is not one of the %zu classes of the training "
                "rows",
                kiln_records_location(rows->records, rows->lines[i], place, sizeof(place)),
                (double)rows->labels[i], state->names.n);
    return KILN_OK;
}

/* ---- Splits --------------------------------------------------------------------------- */

static bool needs(KilnStage stage, int split)
{
    return stage == KILN_STAGE_FIT || (stage == KILN_STAGE_TEST && split == KILN_TEST) ||
           (stage == KILN_STAGE_VALIDATE && split != KILN_TEST);
}

static KilnStatus read_split(State *state, int split, const KilnPoll *poll, KilnError *err)
{
    const KilnTextFiles *files = &state->opts->files;
    char **const paths[] = { files->train, files->val, files->test };
    const size_t n[] = { files->train_count, files->val_count, files->test_count };
    const KilnLibsvmSpec spec = { .paths = (const char *const *)paths[split],
                                  .n_paths = n[split],
                                  .on_error = (KilnOnError)state->opts->on_error,
                                  .cache = state->opts->cache,
                                  .poll = poll };

    if (n[split] == 0)
        return KILN_OK;
    KilnStatus status = kiln_libsvm_read(&spec, &state->rows[split], err);
    state->samples[split].rows = &state->rows[split];
    state->samples[split].count = state->rows[split].n;
    return status;
}

/* Hold rows out for validation, of queries whole ones. */
static KilnStatus hold_out(State *state, uint64_t seed, KilnError *err)
{
    Samples *train = &state->samples[KILN_TRAIN], *val = &state->samples[KILN_VAL];
    KilnStatus status = kiln_libsvm_hold_out(train->rows, state->opts->val_fraction, seed,
                                             &train->list, &train->count, &val->list, &val->count,
                                             err);

    if (status >= 0 && val->count > 0)
        val->rows = train->rows;
    return status;
}

static void note_absent(State *state, Samples *samples)
{
    size_t n = 0;

    samples->state = state;
    if (samples->rows == NULL)
        return;
    if (state->queries && samples->rows->queries == NULL)
        samples->absent[n++] = "query";
    if (state->weights && samples->rows->weights == NULL)
        samples->absent[n++] = "weight";
}

static void make_features(State *state)
{
    size_t n = EXTRA;

    state->features[X] = (KilnFeature) {
        .name = "x", .content = KILN_VECTOR, .dtype = KILN_F32, .shape = KILN_SHAPE(state->columns)
    };
    state->features[TARGET] =
        state->classes
            ? (KilnFeature) { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 }
            : (KilnFeature) { .name = "target", .content = KILN_LABEL, .dtype = KILN_F32 };
    if (state->queries)
        state->features[n++] =
            (KilnFeature) { .name = "query", .content = KILN_LABEL, .dtype = KILN_I32 };
    if (state->weights)
        state->features[n++] =
            (KilnFeature) { .name = "weight", .content = KILN_LABEL, .dtype = KILN_F32 };
    state->n_features = n;
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    state->opts = kiln_opts(self);
    state->raw = (KilnRawField) { .name = "x",
                                  .types = KILN_RAW_TEXT | KILN_RAW_ARRAY,
                                  .help = "a row INDEX:VALUE ..., or all its numbers" };
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const KilnTextFiles *files = &state->opts->files;
    KilnStatus status = KILN_OK;

    if (context->stage == KILN_STAGE_FIT && files->train_count == 0)
        return kiln_error_set(err, KILN_E_MISSING,
                              "files.train: no files; set datamodule.files.train=[FILE]");
    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++)
        if (needs(context->stage, split))
            status = read_split(state, split, context->poll, err);
    if (status >= 0 && context->fitted != NULL)
        status = read_fitted(state, context->fitted, err);
    else if (status >= 0 && state->rows[KILN_TRAIN].n > 0)
        status = fit(state, err);
    else if (status >= 0)
        status = kiln_error_set(err, KILN_E_MISSING,
                                "the checkpoint does not say what its rows look like; use one of "
                                "a run with this datamodule");
    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++)
        status = check_classes(state, &state->rows[split], err);
    if (status >= 0 && state->rows[KILN_TRAIN].n > 0 && files->val_count == 0)
        status = hold_out(state, context->seed, err);
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        note_absent(state, &state->samples[split]);
    make_features(state);
    return status;
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    const State *state = kiln_state(self);

    (void)err;
    *ret = (KilnDataSpec) { .features = state->features,
                            .n_features = state->n_features,
                            .n_classes = (int64_t)state->names.n,
                            .class_names = (const char *const *)state->names.names };
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        kiln_libsvm_release(&state->rows[split]);
        free(state->samples[split].list);
    }
    kiln_name_list_release(&state->names);
    free(state->labels);
    kiln_records_close(state->input);
}

/* ---- Samples ----------------------------------------------------------------------------- */

/* All numbers of a sparse row; an index that no training row has is left out. */
static void fill(const State *state, const int32_t *indices, const float *values, int64_t n,
                 float *ret)
{
    const float absent = state->opts->absent == NAN_VALUE ? NAN : 0.0f;

    for (int64_t c = 0; c < state->columns; c++)
        ret[c] = absent;
    for (int64_t i = 0; i < n; i++)
        if (indices[i] >= state->first && indices[i] - state->first < state->columns)
            ret[indices[i] - state->first] = values[i];
}

static void put_extra(const State *state, const KilnLibsvm *rows, int64_t row,
                      const KilnSample *sample)
{
    for (size_t f = EXTRA; f < state->n_features; f++) {
        if (sample->data[f] == NULL)
            continue;
        if (state->features[f].dtype == KILN_I32 && rows->queries != NULL)
            *(int32_t *)sample->data[f] = rows->queries[row];
        else if (state->features[f].dtype == KILN_F32 && rows->weights != NULL)
            *(float *)sample->data[f] = rows->weights[row];
    }
}

static int64_t row_of(const Samples *samples, int64_t index)
{
    return samples->list != NULL ? samples->list[index] : index;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Samples *samples = ctx;
    const State *state = samples->state;
    const KilnLibsvm *rows = samples->rows;
    const int64_t row = row_of(samples, index), start = rows->starts[row];

    (void)rng;
    (void)err;
    if (sample->data[X] != NULL)
        fill(state, rows->indices + start, rows->values + start, rows->starts[row + 1] - start,
             sample->data[X]);
    if (sample->data[TARGET] != NULL && state->classes)
        *(int32_t *)sample->data[TARGET] = class_of(state, rows->labels[row]);
    else if (sample->data[TARGET] != NULL)
        *(float *)sample->data[TARGET] = rows->labels[row];
    put_extra(state, rows, row, sample);
    return KILN_OK;
}

static int64_t label(void *ctx, int64_t index)
{
    const Samples *samples = ctx;

    return class_of(samples->state, samples->rows->labels[row_of(samples, index)]);
}

static const char *name(void *ctx, int64_t index)
{
    Samples *samples = ctx;

    return kiln_records_location(samples->rows->records,
                                 samples->rows->lines[row_of(samples, index)], samples->place,
                                 sizeof(samples->place));
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);
    Samples *samples = &state->samples[split];

    (void)set;
    (void)err;
    *ret = (KilnDataset) { .count = samples->count,
                           .ctx = samples,
                           .get = get,
                           .name = name,
                           .label = state->classes ? label : NULL,
                           .absent = samples->absent };
    return KILN_OK;
}

/* ---- Rows of a user ----------------------------------------------------------------------- */

static size_t raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    *ret = &((const State *)kiln_state(self))->raw;
    return 1;
}

static KilnStatus take_array(const State *state, const KilnRawValue *value, float *ret,
                             KilnError *err)
{
    if (kiln_shape_count(&value->shape) != state->columns)
        return kiln_error_set(err, KILN_E_SHAPE, "the row has %lld numbers; expected %lld",
                              (long long)kiln_shape_count(&value->shape),
                              (long long)state->columns);
    return kiln_raw_convert(value, KILN_F32, ret, err);
}

static KilnStatus preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                             KilnError *err)
{
    const State *state = kiln_state(self);
    KilnLibsvmRow row = { 0 };

    if (values[0].type == KILN_RAW_ARRAY)
        return take_array(state, &values[0], sample->data[X], err);
    KilnStatus status = kiln_libsvm_parse((KilnString) { values[0].text, strlen(values[0].text) },
                                          &row, err);
    if (status >= 0)
        fill(state, row.indices, row.values, row.n, sample->data[X]);
    kiln_libsvm_row_release(&row);
    return status;
}

static KilnStatus open_input(KilnInstance *self, const char *path, KilnRawSet *ret, KilnError *err)
{
    State *state = kiln_state(self);

    kiln_records_close(state->input);
    state->input = NULL;
    return kiln_libsvm_open_input(path, &state->input, ret, err);
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

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        kiln_libsvm_left_out(&state->rows[split], (KilnSplit)split, add, ctx);
}

/* What no option says. */
static void files(KilnInstance *self, void (*add)(void *ctx, const char *text), void *ctx)
{
    const State *state = kiln_state(self);
    char text[256];

    snprintf(text, sizeof(text), "%lld columns from index %lld, targets are %s%s%s",
             (long long)state->columns, (long long)state->first,
             state->classes ? "classes" : "numbers", state->queries ? ", with queries" : "",
             state->weights ? ", with weights" : "");
    add(ctx, text);
}

static const KilnTensorSpec declared[] = {
    { .name = "x", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "columns" },
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "", .optional = true },
    { .name = "target", .content = KILN_LABEL, .dtype = KILN_F32, .axes = "", .optional = true },
    { .name = "query", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "", .optional = true },
    { .name = "weight", .content = KILN_LABEL, .dtype = KILN_F32, .axes = "", .optional = true },
};

static const KilnDataModuleOps ops = {
    .shareable = true,
    .features = declared,
    .n_features = KILN_COUNT(declared),
    .setup = setup,
    .spec = spec,
    .dataset = dataset,
    .raw_fields = raw_fields,
    .preprocess = preprocess,
    .open_input = open_input,
    .save_preprocessing = save_preprocessing,
    .loading = loading,
    .left_out = left_out,
    .files = files,
};

const KilnComponent kiln_datamodule_libsvm = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "libsvm",
    .summary = "Sparse rows in LibSVM's format, with a class, a number, or a relevance for a query",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .init = init,
    .release = release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_libsvm, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

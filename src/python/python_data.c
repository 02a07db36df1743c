/* Datamodules in Python: their splits and samples, and samples of a user. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/system/file.h"
#include "base/text.h"
#include "kiln/loading.h"
#include "kiln/tools/feature_fields.h"
#include "python/python_raw.h"
#include "python/python_spec.h"

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KILN_LENGTH_OPTIONS;
    double val_fraction, timeout;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "${oc.select:batch_size,64}"),
    KILN_LENGTH_FIELDS(Opts),
    KILN_FIELD_F64(Opts, val_fraction, "0.1", 0.0, 0.9,
                   "training samples held out for validation, if the class has no split of its own "
                   "for it"),
    KILN_PYTHON_TIMEOUT_FIELD(Opts),
    KILN_FIELD_END,
};

typedef struct State State;

/* The samples of a split. */
typedef struct Samples {
    State *state;
    const char *source;   /* the split whose object has them */
    const int32_t *order; /* NULL: those of the object in order */
    int64_t *labels;      /* by the object's index; NULL: unknown without reading */
    int64_t **lengths;    /* of each varying feature, likewise */
    int64_t count;
    const char **absent; /* NULL: none is absent */
} Samples;

struct State {
    KilnPythonHost *host;
    const char *name; /* of the class */
    KilnArena arena;  /* of the spec */
    KilnDataSpec spec;
    Samples samples[KILN_SPLIT_COUNT];
    int32_t *order; /* training samples, then those held out */
};

/* ---- Samples -------------------------------------------------------------------------------- */

static int64_t place_of(const Samples *samples, int64_t index)
{
    return samples->order != NULL ? samples->order[index] : index;
}

/* Does a value have the shape that the first sample's had, or at most its length? */
static KilnStatus check_shape(const KilnFeature *feature, const KilnShape *shape, KilnError *err)
{
    KilnShape got = *shape;
    char want_text[KILN_SHAPE_TEXT], got_text[KILN_SHAPE_TEXT];

    if (got.rank + 1 == feature->shape.rank && feature->shape.dim[got.rank] == 1)
        got.dim[got.rank++] = 1; /* an image without channels */
    if (kiln_feature_fits(feature, &got))
        return KILN_OK;
    return kiln_error_set(
        err, KILN_E_SHAPE, "\"%s\" is %s; expected %s%s%s", feature->name,
        kiln_shape_text(shape, got_text, sizeof(got_text)), feature->varies ? "at most " : "",
        kiln_shape_text(&feature->shape, want_text, sizeof(want_text)),
        feature->varies || feature->shape.rank == 0
            ? ""
            : ", as the first sample has it; if its length varies, declare the longest in the "
              "class: features = {\"NAME\": {\"length\": N}}");
}

static KilnStatus check_id(const State *state, const KilnFeature *feature, const int32_t *ids,
                           int64_t count, KilnError *err)
{
    const char *const *names;
    const int64_t n = kiln_spec_ids(&state->spec, feature, &names);

    for (int64_t i = 0; i < count && n > 0; i++)
        if (ids[i] >= n || (ids[i] < 0 && feature->content != KILN_LABEL))
            return kiln_error_set(err, KILN_E_RANGE, "\"%s\" is %d; expected 0 to %lld",
                                  feature->name, ids[i], (long long)n - 1);
    return KILN_OK;
}

static KilnStatus put_array(const Samples *samples, size_t f, const KilnPythonArray *array,
                            KilnSample *sample, KilnError *err)
{
    const KilnFeature *feature = &samples->state->spec.features[f];
    const KilnRawValue value = {
        .type = KILN_RAW_ARRAY, .data = array->data, .dtype = array->dtype, .shape = array->shape
    };
    const int64_t count = kiln_shape_count(&array->shape);
    float *numbers = sample->data[f];
    KilnStatus status = check_shape(feature, &array->shape, err);

    if (status < 0)
        return status;
    if (kiln_raw_convert(&value, feature->dtype, sample->data[f], err) < 0)
        return err != NULL ? kiln_error_prefix(err, "\"%s\": ", feature->name) : KILN_E_RANGE;
    for (int64_t i = 0; feature->content == KILN_IMAGE && array->dtype == KILN_U8 && i < count; i++)
        numbers[i] /= 255.0F;
    if (feature->varies && samples->lengths == NULL)
        sample->lengths[f] = array->shape.dim[0];
    else if (feature->varies && sample->lengths[f] != array->shape.dim[0])
        return kiln_error_set(
            err, KILN_E_SHAPE, "\"%s\" has length %lld, but `lengths` of the class says %lld",
            feature->name, (long long)array->shape.dim[0], (long long)sample->lengths[f]);
    return feature->dtype == KILN_I32
               ? check_id(samples->state, feature, sample->data[f], count, err)
               : KILN_OK;
}

static KilnStatus put_text(const KilnPythonArray *array, char **to, KilnError *err)
{
    KilnText text = { 0 };

    kiln_text_append_n(&text, array->data, array->bytes);
    *to = kiln_text_take(&text);
    return *to != NULL ? KILN_OK : kiln_error_nomem(err, array->bytes);
}

static KilnStatus put_feature(const Samples *samples, size_t f, const json_t *place,
                              KilnSample *sample, KilnError *err)
{
    const State *state = samples->state;
    const KilnFeature *feature = &state->spec.features[f];
    const bool text = feature->content == KILN_TEXT;
    KilnPythonArray array;

    if (sample->data[f] == NULL || (text && json_is_null(place)))
        return KILN_OK;
    if (json_is_null(place))
        return kiln_error_set(err, KILN_E_MISSING, "it has no \"%s\"", feature->name);
    KilnStatus status = kiln_python_array(state->host, place, &array, err);
    if (status >= 0 && array.text != text)
        status = kiln_error_set(err, KILN_E_TYPE, "\"%s\" is %s; expected %s", feature->name,
                                array.text ? "a text" : "a number or an array",
                                text ? "a text" : "numbers");
    if (status < 0)
        return status;
    return text ? put_text(&array, sample->data[f], err)
                : put_array(samples, f, &array, sample, err);
}

/* The features of a sample, of which `places` names the arrays. */
static KilnStatus put_sample(const Samples *samples, const json_t *places, KilnSample *sample,
                             KilnError *err)
{
    const State *state = samples->state;
    KilnStatus status = KILN_OK;

    for (size_t f = 0; f < state->spec.n_features && status >= 0; f++)
        status = put_feature(samples, f, json_array_get(places, f), sample, err);
    if (status < 0 && err != NULL)
        (void)kiln_error_prefix(err, "%s: ", state->name);
    return status;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Samples *samples = ctx;
    const State *state = samples->state;
    const uint32_t low = kiln_rng_u32(rng), high = kiln_rng_u32(rng) >> 1;
    const int64_t at = place_of(samples, index);
    json_t *reply = NULL;
    const KilnPythonCall call = {
        .what = "__getitem__",
        .request = json_pack("{s:s, s:s, s:I, s:I}", "call", "get", "split", samples->source,
                             "index", (json_int_t)at, "seed",
                             (json_int_t)((uint64_t)high << 32 | low)),
    };

    kiln_python_host_lock(state->host);
    KilnStatus status = kiln_python_call(state->host, &call, &reply, err);
    const json_t *places = json_object_get(reply, "places");
    if (status >= 0 && places == NULL)
        status = kiln_error_set(err, KILN_E_SKIP, "__getitem__(%lld) returned None", (long long)at);
    if (status >= 0)
        status = put_sample(samples, places, sample, err);
    kiln_python_host_unlock(state->host);
    json_decref(reply);
    if (status < 0 && status != KILN_E_SKIP && err != NULL)
        (void)kiln_error_prefix(err, "sample %lld of %s: ", (long long)at, samples->source);
    return status;
}

static int64_t label(void *ctx, int64_t index)
{
    const Samples *samples = ctx;
    const int64_t class = samples->labels[place_of(samples, index)];

    return class >= 0 && class < samples->state->spec.n_classes ? class : -1;
}

static void lengths(void *ctx, int64_t index, int64_t *ret)
{
    const Samples *samples = ctx;

    for (size_t f = 0; f < samples->state->spec.n_features; f++)
        if (samples->lengths[f] != NULL)
            ret[f] = samples->lengths[f][place_of(samples, index)];
}

/* ---- A user's samples ----------------------------------------------------------------------- */

static size_t raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    const KilnPythonClass *class = kiln_python_class_of(self);

    *ret = class->raw_fields;
    return class->n_raw_fields;
}

static KilnStatus preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                             KilnError *err)
{
    const State *state = kiln_state(self);
    json_t *reply = NULL;

    kiln_python_host_lock(state->host);
    const KilnPythonCall call = {
        .what = "preprocess",
        .request =
            json_pack("{s:s, s:o}", "call", "preprocess", "given",
                      kiln_python_raw_values(state->host, kiln_python_class_of(self), values)),
    };
    KilnStatus status = kiln_python_call(state->host, &call, &reply, err);
    if (status >= 0)
        status = put_sample(&state->samples[KILN_TEST], json_object_get(reply, "places"), sample,
                            err);
    kiln_python_host_unlock(state->host);
    json_decref(reply);
    return status;
}

/* ---- What the training object fitted ----------------------------------------------------------
 */

/* Its state, a text, is a file of each checkpoint. */
#define STATE_FILE "python.json"
enum { LARGEST_STATE = 1 << 30 };

static KilnStatus save_preprocessing(KilnInstance *self, const char *dir, KilnError *err)
{
    const State *state = kiln_state(self);
    const KilnPythonCall call = { .what = "state_dict",
                                  .request = json_pack("{s:s}", "call", "state_dict") };
    char *path = kiln_path_join(dir, STATE_FILE);
    json_t *reply = NULL;

    kiln_python_host_lock(state->host);
    KilnStatus status = kiln_python_call(state->host, &call, &reply, err);
    kiln_python_host_unlock(state->host);
    const char *text = json_string_value(json_object_get(reply, "state"));
    if (status >= 0 && path == NULL)
        status = kiln_error_nomem(err, strlen(dir));
    if (status >= 0 && text != NULL)
        status = kiln_file_write(path, text, strlen(text), err);
    free(path);
    json_decref(reply);
    return status;
}

/* What a checkpoint has of it. *ret is owned by the caller; NULL: nothing. */
static KilnStatus read_state(const KilnInstance *self, const KilnDataContext *context, char **ret,
                             KilnError *err)
{
    char *path;
    size_t size;

    if (context->fitted == NULL || !kiln_python_class_of(self)->has_state)
        return KILN_OK;
    path = kiln_path_join(context->fitted, STATE_FILE);
    const KilnStatus status = path == NULL ? kiln_error_nomem(err, strlen(context->fitted))
                              : kiln_is_file(path)
                                  ? kiln_file_read(path, LARGEST_STATE, ret, &size, err)
                                  : KILN_OK;
    free(path);
    return status;
}

/* Make the object that preprocesses; it learns how training named the features. */
static KilnStatus setup_prediction(KilnInstance *self, const KilnDataContext *context,
                                   const char *fitted, KilnError *err)
{
    State *state = kiln_state(self);
    json_t *features = json_array();

    for (size_t f = 0; f < state->spec.n_features; f++)
        kiln_json_add(&features, json_pack("[s, s]", state->spec.features[f].name,
                                           kiln_content_name(state->spec.features[f].content)));
    const KilnStatus status = kiln_python_make(self, context->seed, context->poll, &state->host,
                                               err);
    if (status < 0) {
        json_decref(features);
        return status;
    }
    return kiln_python_tell(
        state->host, "__init__",
        json_pack("{s:s, s:o, s:s?}", "call", "prepare", "features", features, "state", fitted),
        err);
}

/* ---- Splits
 * ------------------------------------------------------------------------------------------ */

static bool has_name(const json_t *names, const char *name)
{
    bool found = false;

    for (size_t i = 0; i < json_array_size(names); i++)
        found = found || strcmp(json_string_value(json_array_get(names, i)), name) == 0;
    return found;
}

/* Note the features that the first sample of a split lacks. */
static void set_absent(State *state, const json_t *opened, Samples *samples)
{
    const json_t *present = json_object_get(json_object_get(opened, "present"), samples->source);
    const char **absent = kiln_arena_alloc(&state->arena,
                                           (state->spec.n_features + 1) * sizeof(*absent));
    size_t n = 0;

    for (size_t f = 0; absent != NULL && present != NULL && f < state->spec.n_features; f++)
        if (!has_name(present, state->spec.features[f].name))
            absent[n++] = state->spec.features[f].name;
    samples->absent = n > 0 ? absent : NULL;
}

/* The numbers at a place, one for each of `count` samples; NULL: there are none. In the arena. */
static KilnStatus read_numbers(State *state, const json_t *place, int64_t count, int64_t **ret,
                               KilnError *err)
{
    KilnPythonArray array;

    if (place == NULL || json_is_null(place))
        return KILN_OK;
    KilnStatus status = kiln_python_array(state->host, place, &array, err);
    if (status < 0)
        return status;
    int64_t *numbers = kiln_arena_alloc(&state->arena, (size_t)count * sizeof(*numbers));
    if (numbers == NULL)
        return kiln_error_nomem(err, (size_t)count * sizeof(*numbers));
    if (array.dtype != KILN_I64 || array.shape.rank != 1 || array.shape.dim[0] != count)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "%s: targets or lengths: expected a whole number for each sample",
                              state->name);
    memcpy(numbers, array.data, array.bytes);
    *ret = numbers;
    return KILN_OK;
}

static KilnStatus set_lengths(State *state, Samples *samples, const json_t *known, int64_t count,
                              KilnError *err)
{
    const json_t *lengths = json_object_get(known, "lengths");
    const size_t n = state->spec.n_features;
    KilnStatus status = KILN_OK;

    if (json_object_size(lengths) == 0)
        return KILN_OK;
    samples->lengths = kiln_arena_alloc(&state->arena, (n + 1) * sizeof(*samples->lengths));
    if (samples->lengths == NULL)
        return kiln_error_nomem(err, n);
    for (size_t f = 0; f < n && status >= 0; f++)
        status = read_numbers(state, json_object_get(lengths, state->spec.features[f].name), count,
                              &samples->lengths[f], err);
    return status;
}

/* What an object says of all samples: their classes (`targets`) and lengths (`lengths`). */
static KilnStatus read_known(State *state, Samples *samples, int64_t count, KilnError *err)
{
    const KilnPythonCall call = { .what = "targets",
                                  .request = json_pack("{s:s, s:s}", "call", "known", "split",
                                                       samples->source) };
    json_t *reply = NULL;

    kiln_python_host_lock(state->host);
    KilnStatus status = kiln_python_call(state->host, &call, &reply, err);
    if (status >= 0 && kiln_spec_label(&state->spec) != NULL)
        status = read_numbers(state, json_object_get(reply, "labels"), count, &samples->labels,
                              err);
    if (status >= 0)
        status = set_lengths(state, samples, reply, count, err);
    kiln_python_host_unlock(state->host);
    json_decref(reply);
    return status;
}

/* Hold out a part of the training samples, of a class that has no validation split. */
static KilnStatus hold_out(State *state, const Opts *opts, uint64_t seed, KilnError *err)
{
    Samples *train = &state->samples[KILN_TRAIN], *val = &state->samples[KILN_VAL];
    const int64_t n = train->count, held = llround((double)n * opts->val_fraction);

    if (val->count > 0 || n == 0 || held == 0)
        return KILN_OK;
    if (held >= n)
        return kiln_error_set(err, KILN_E_RANGE,
                              "val_fraction: %g of %lld samples leaves none to train on; give more "
                              "samples, or a validation split",
                              opts->val_fraction, (long long)n);
    state->order = malloc((size_t)n * sizeof(*state->order));
    if (state->order == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*state->order));
    *val = *train;
    val->order = state->order + (n - held);
    val->count = held;
    train->order = state->order;
    train->count = n - held;
    return kiln_hold_out(n, held, seed, state->order, err);
}

static KilnStatus set_splits(State *state, const json_t *opened, KilnError *err)
{
    const json_t *counts = json_object_get(opened, "counts");
    KilnStatus status = KILN_OK;

    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++) {
        Samples *samples = &state->samples[split];
        const char *name = kiln_split_name((KilnSplit)split);
        const json_int_t count = json_integer_value(json_object_get(counts, name));

        *samples = (Samples) { .state = state, .source = name, .count = count };
        if (count < 0 || count > INT32_MAX)
            return kiln_error_set(err, KILN_E_RANGE,
                                  "the %s split has %lld samples; expected 0 to %d", name,
                                  (long long)count, INT32_MAX);
        if (count == 0)
            continue;
        set_absent(state, opened, samples);
        status = read_known(state, samples, count, err);
    }
    return status;
}

/* ---- Setup
 * --------------------------------------------------------------------------------------------- */

/* The splits that a stage reads. */
static json_t *splits_of(KilnStage stage)
{
    if (stage == KILN_STAGE_TEST)
        return json_pack("[s]", "test");
    if (stage == KILN_STAGE_VALIDATE)
        return json_pack("[s, s]", "train", "val");
    return json_pack("[s, s, s]", "train", "val", "test");
}

/* Make an object for each split. */
static KilnStatus open_splits(KilnInstance *self, const KilnDataContext *context,
                              const char *fitted, KilnError *err)
{
    State *state = kiln_state(self);
    json_t *opened = NULL;
    KilnStatus status = kiln_python_make(self, context->seed, context->poll, &state->host, err);

    if (status < 0)
        return status;
    const KilnPythonCall call = {
        .what = "__init__",
        .request = json_pack("{s:s, s:o, s:s?}", "call", "open", "splits",
                             splits_of(context->stage), "state", fitted),
        .poll = context->poll,
    };
    kiln_python_host_lock(state->host);
    status = kiln_python_call(state->host, &call, &opened, err);
    kiln_python_host_unlock(state->host);
    if (status >= 0)
        status = kiln_python_set_spec(&state->spec, &state->arena, opened, err);
    if (status >= 0)
        status = set_splits(state, opened, err);
    if (status >= 0)
        status = hold_out(state, kiln_opts(self), context->seed, err);
    if (status >= 0 && state->arena.failed)
        status = kiln_error_nomem(err, 0);
    json_decref(opened);
    return status;
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    char *fitted = NULL;
    KilnStatus status = read_state(self, context, &fitted, err);

    state->name = kiln_instance_name(self);
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        state->samples[split].state = state;
    if (context->stage == KILN_STAGE_PREDICT)
        state->spec = *context->remembered;
    if (status >= 0 && context->stage != KILN_STAGE_PREDICT)
        status = open_splits(self, context, fitted, err);
    else if (status >= 0 && kiln_python_class_of(self)->n_raw_fields > 0)
        status = setup_prediction(self, context, fitted, err);
    free(fitted);
    return status;
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    (void)err;
    *ret = ((const State *)kiln_state(self))->spec;
    return KILN_OK;
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);
    Samples *samples = &state->samples[split];

    (void)set;
    (void)err;
    *ret = (KilnDataset) {
        .count = samples->count,
        .ctx = samples,
        .get = get,
        .label = samples->labels != NULL ? label : NULL,
        .lengths = samples->lengths != NULL ? lengths : NULL,
        .absent = samples->absent,
    };
    return KILN_OK;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LENGTH_LOADING(opts);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    kiln_python_host_end(state->host);
    kiln_arena_release(&state->arena);
    free(state->order);
}

static void complete(KilnPythonClass *class, KilnArena *arena, const json_t *described)
{
    kiln_python_set_raw_fields(class, arena, described);
    class->datamodule = (KilnDataModuleOps) {
        .setup = setup,
        .spec = spec,
        .dataset = dataset,
        .loading = loading,
        .raw_fields = class->n_raw_fields > 0 ? raw_fields : NULL,
        .preprocess = class->n_raw_fields > 0 ? preprocess : NULL,
        .save_preprocessing = class->has_state ? save_preprocessing : NULL,
    };
    class->component.ops.datamodule = &class->datamodule;
}

const KilnPythonKind kiln_python_datamodule = {
    .fields = fields,
    .opts_size = sizeof(Opts),
    .timeout = offsetof(Opts, timeout),
    .state_size = sizeof(State),
    .release = release,
    .complete = complete,
};

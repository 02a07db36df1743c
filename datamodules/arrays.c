/* Arrays in memory that the program that embeds kiln owns: an array per feature and split. */
#include "kiln.h"
#include "kiln/tools/feature_fields.h"
#include "kiln/tools/standard_scaler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KILN_LENGTH_OPTIONS;
    double val_fraction;
    bool standardize;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "64"),
    KILN_LENGTH_FIELDS(Opts),
    KILN_FIELD_F64(Opts, val_fraction, "0.1", 0.0, 0.9,
                   "training samples held out for validation, if the program gives no validation "
                   "arrays"),
    KILN_FIELD_BOOL(Opts, standardize, "false",
                    "scale each column of f32 rows and vectors to mean 0 and standard deviation 1 "
                    "over the training samples"),
    KILN_FIELD_END,
};

/* The arrays of a split as the program gave them, by feature. */
typedef struct Source {
    KilnSplit split;
    int64_t n;
    const KilnArray **arrays; /* NULL: absent */
    int64_t **starts;         /* of a varying one: where each sample starts on the joined axis */
    const char **absent;      /* names of absent features, ending with NULL */
} Source;

typedef struct State State;

/* The samples of a split. */
typedef struct Samples {
    const State *state;
    const Source *source;
    const int32_t *order; /* NULL: those of the source in order */
    int64_t count;
    KilnTable *table; /* once requested */
} Samples;

struct State {
    const Opts *opts;
    KilnDataSpec spec;
    const char **class_names; /* if the program gave none */
    Source sources[KILN_SPLIT_COUNT];
    Samples samples[KILN_SPLIT_COUNT];
    int32_t *order;             /* training samples, then those held out */
    KilnStandardScaler *scaler; /* NULL: features stay as they are */
    KilnFeatureFields *raw;
    const KilnPoll *poll;
};

/* ---- Values ------------------------------------------------------------------------- */

/* The elements of a sample's first axis entry, or of the whole sample if it does not vary. */
static int64_t stride_of(const KilnFeature *feature)
{
    KilnShape shape = feature->shape;

    if (feature->varies)
        shape.dim[0] = 1;
    return kiln_shape_count(&shape);
}

/* Sample `at` of feature f, in the program's memory. */
static KilnRawValue value_at(const State *state, const Source *source, size_t f, int64_t at)
{
    const KilnFeature *feature = &state->spec.features[f];
    const KilnArray *array = source->arrays[f];
    const int64_t start = feature->varies ? source->starts[f][at] : at;
    KilnRawValue ret = {
        .name = feature->name,
        .type = KILN_RAW_ARRAY,
        .data = (const char *)array->data +
                (size_t)(start * stride_of(feature)) * kiln_dtype_size(array->dtype),
        .dtype = array->dtype,
        .shape = feature->shape,
    };

    if (feature->varies)
        ret.shape.dim[0] = array->lengths[at];
    return ret;
}

/* Refuse an id out of range; a label may be negative, which losses and metrics may ignore. */
static KilnStatus check_ids(const State *state, const KilnFeature *feature, const int32_t *ids,
                            int64_t count, KilnError *err)
{
    const char *const *names;
    const int64_t all = kiln_spec_ids(&state->spec, feature, &names);

    for (int64_t i = 0; i < count; i++) {
        const int64_t of_column = feature->columns != NULL ? feature->columns[i].n_ids : 0;
        const int64_t n = of_column > 0 ? of_column : all;

        if (n > 0 && (ids[i] >= n || (ids[i] < 0 && feature->content != KILN_LABEL)))
            return kiln_error_set(err, KILN_E_RANGE, "id %d%s%s; expected 0 to %lld", ids[i],
                                  of_column > 0 ? " in column " : "",
                                  of_column > 0 ? feature->columns[i].name : "", (long long)n - 1);
    }
    return KILN_OK;
}

/* Refuse labels that can't be trained on and ids that no name or vector exists for. */
static KilnStatus check_values(const State *state, const KilnFeature *feature, const void *values,
                               int64_t count, KilnError *err)
{
    if (feature->dtype == KILN_I32)
        return check_ids(state, feature, values, count, err);
    for (int64_t i = 0; i < count && feature->content == KILN_LABEL; i++)
        if (!isfinite(((const float *)values)[i]))
            return kiln_error_set(err, KILN_E_RANGE, "the label is %g; expected a finite number",
                                  (double)((const float *)values)[i]);
    return KILN_OK;
}

/* ---- The program's arrays ------------------------------------------------------------- */

static KilnStatus add_source_name(const Source *source, const char *array, KilnError *err)
{
    return kiln_error_prefix(err, "array \"%s\" of the %s set: ", array,
                             kiln_split_name(source->split));
}

static KilnStatus assign_array(const State *state, Source *source, const KilnArray *array,
                               KilnError *err)
{
    const KilnFeature *feature = kiln_spec_feature(&state->spec, array->name);

    if (feature == NULL)
        return kiln_error_set(err, KILN_E_KEY,
                              "no feature has this name; describe it in KilnMemoryData.spec");
    if (source->arrays[feature - state->spec.features] != NULL)
        return kiln_error_set(err, KILN_E_KEY, "it is given twice");
    if (array->data == NULL)
        return kiln_error_set(err, KILN_E_MISSING, "its data is NULL; leave an absent array out");
    if (feature->varies != (array->lengths != NULL))
        return kiln_error_set(err, KILN_E_SHAPE,
                              feature->varies ? "it has no lengths, but its feature varies"
                                              : "it has lengths, but its feature does not vary");
    source->arrays[feature - state->spec.features] = array;
    return KILN_OK;
}

/* Where each sample of a varying feature starts. */
static KilnStatus find_starts(const State *state, Source *source, size_t f, KilnError *err)
{
    const KilnFeature *feature = &state->spec.features[f];
    const int64_t *lengths = source->arrays[f]->lengths;
    int64_t *starts = malloc(((size_t)source->n + 1) * sizeof(*starts));

    source->starts[f] = starts;
    if (starts == NULL)
        return kiln_error_nomem(err, (size_t)source->n * sizeof(*starts));
    starts[0] = 0;
    for (int64_t i = 0; i < source->n; i++) {
        if (lengths[i] < 1 || lengths[i] > feature->shape.dim[0])
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "sample %lld has length %lld; expected 1 to %lld, the longest of "
                                  "the feature",
                                  (long long)i, (long long)lengths[i],
                                  (long long)feature->shape.dim[0]);
        starts[i + 1] = starts[i] + lengths[i];
    }
    return KILN_OK;
}

/* Whether an array's samples must be looked at before they are read for a batch. */
static bool needs_check(const KilnFeature *feature, const KilnArray *array)
{
    return feature->content != KILN_TEXT &&
           (array->dtype != feature->dtype || feature->dtype == KILN_I32 ||
            feature->content == KILN_LABEL);
}

static KilnStatus check_array(const State *state, const Source *source, size_t f, KilnError *err)
{
    const KilnFeature *feature = &state->spec.features[f];
    const size_t bytes = (size_t)kiln_shape_count(&feature->shape) *
                         kiln_dtype_size(feature->dtype);
    KilnStatus status = KILN_OK;

    if (!needs_check(feature, source->arrays[f]))
        return KILN_OK;
    void *values = malloc(bytes + 1);
    if (values == NULL)
        return kiln_error_nomem(err, bytes);
    for (int64_t i = 0; i < source->n && status >= 0; i++) {
        const KilnRawValue value = value_at(state, source, f, i);

        status = kiln_poll_check(state->poll, "checking arrays", i, source->n, err);
        if (status < 0)
            break;
        status = kiln_raw_convert(&value, feature->dtype, values, err);
        if (status >= 0)
            status = check_values(state, feature, values, kiln_shape_count(&value.shape), err);
        if (status < 0)
            (void)kiln_error_prefix(err, "sample %lld: ", (long long)i);
    }
    free(values);
    return status;
}

/* Check feature f of a set, or note that it is absent. */
static KilnStatus check_feature(const State *state, Source *source, size_t f, size_t *n_absent,
                                KilnError *err)
{
    const KilnFeature *feature = &state->spec.features[f];
    KilnStatus status = KILN_OK;

    if (source->arrays[f] == NULL && feature->content != KILN_LABEL &&
        feature->content != KILN_TEXT)
        return kiln_error_set(err, KILN_E_MISSING,
                              "it is missing; only labels and texts may be absent");
    if (source->arrays[f] == NULL) {
        source->absent[(*n_absent)++] = feature->name;
        return KILN_OK;
    }
    if (feature->varies)
        status = find_starts(state, source, f, err);
    return status >= 0 ? check_array(state, source, f, err) : status;
}

static KilnStatus open_source(const State *state, const KilnMemoryData *data, KilnSplit split,
                              Source *source, KilnError *err)
{
    const KilnArraySet *set = &data->sets[split];
    const size_t n_features = state->spec.n_features;
    size_t n_absent = 0;
    KilnStatus status = KILN_OK;

    *source = (Source) {
        .split = split,
        .n = set->n,
        .arrays = calloc(n_features + 1, sizeof(*source->arrays)),
        .starts = calloc(n_features + 1, sizeof(*source->starts)),
        .absent = calloc(n_features + 1, sizeof(*source->absent)),
    };
    if (source->arrays == NULL || source->starts == NULL || source->absent == NULL)
        return kiln_error_nomem(err, n_features * sizeof(*source->arrays));
    if (set->n < 0 || set->n > INT32_MAX)
        return kiln_error_set(err, KILN_E_RANGE, "the %s set has %lld samples; expected 0 to %d",
                              kiln_split_name(split), (long long)set->n, INT32_MAX);
    for (size_t i = 0; i < set->n_arrays && set->n > 0 && status >= 0; i++)
        if ((status = assign_array(state, source, &set->arrays[i], err)) < 0)
            (void)add_source_name(source, set->arrays[i].name, err);
    for (size_t f = 0; f < n_features && set->n > 0 && status >= 0; f++)
        if ((status = check_feature(state, source, f, &n_absent, err)) < 0)
            (void)add_source_name(source, state->spec.features[f].name, err);
    return status;
}

/* ---- Splits ----------------------------------------------------------------------------- */

/* Hold out a part of the training samples, if there are no arrays for validation. */
static KilnStatus split_samples(State *state, uint64_t seed, KilnError *err)
{
    Samples *samples = state->samples;
    const Source *train = &state->sources[KILN_TRAIN];
    const bool holds_out = state->sources[KILN_VAL].n == 0 && train->n > 0;
    const int64_t held = holds_out ? llround((double)train->n * state->opts->val_fraction) : 0;

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        samples[split] = (Samples) { .state = state,
                                     .source = &state->sources[split],
                                     .count = state->sources[split].n };
    if (held == 0)
        return KILN_OK;
    if (held >= train->n)
        return kiln_error_set(err, KILN_E_RANGE,
                              "val_fraction: %g of %lld samples leaves none to train on; give more "
                              "samples, or a validation set",
                              state->opts->val_fraction, (long long)train->n);
    state->order = malloc((size_t)train->n * sizeof(*state->order));
    if (state->order == NULL)
        return kiln_error_nomem(err, (size_t)train->n * sizeof(*state->order));
    samples[KILN_TRAIN].order = state->order;
    samples[KILN_TRAIN].count = train->n - held;
    samples[KILN_VAL] = (Samples) {
        .state = state, .source = train, .order = state->order + (train->n - held), .count = held
    };
    return kiln_hold_out(train->n, held, seed, state->order, err);
}

static int64_t place_of(const Samples *samples, int64_t index)
{
    return samples->order != NULL ? samples->order[index] : index;
}

/* ---- Samples ------------------------------------------------------------------------------ */

/* Write a text of the user's to a sample. */
static KilnStatus put_text(const char *text, char **to, KilnError *err)
{
    *to = text != NULL ? strdup(text) : NULL;
    return text != NULL && *to == NULL ? kiln_error_nomem(err, strlen(text)) : KILN_OK;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Samples *samples = ctx;
    const State *state = samples->state;
    const int64_t at = place_of(samples, index);
    KilnStatus status = KILN_OK;

    (void)rng;
    for (size_t f = 0; f < state->spec.n_features && status >= 0; f++) {
        const KilnFeature *feature = &state->spec.features[f];

        if (sample->data[f] == NULL || samples->source->arrays[f] == NULL)
            continue;
        if (feature->content == KILN_TEXT) {
            const char *const *texts = samples->source->arrays[f]->data;

            status = put_text(texts[at], sample->data[f], err);
            continue;
        }
        const KilnRawValue value = value_at(state, samples->source, f, at);
        status = kiln_raw_convert(&value, feature->dtype, sample->data[f], err);
        kiln_standard_scaler_apply(state->scaler, f, sample->data[f]);
    }
    return status;
}

static int64_t label(void *ctx, int64_t index)
{
    const Samples *samples = ctx;
    const State *state = samples->state;
    const size_t f = (size_t)(kiln_spec_label(&state->spec) - state->spec.features);
    const KilnRawValue value = value_at(state, samples->source, f, place_of(samples, index));
    int32_t ret = -1;

    return kiln_raw_convert(&value, KILN_I32, &ret, NULL) >= 0 && ret >= 0 ? ret : -1;
}

static void lengths(void *ctx, int64_t index, int64_t *ret)
{
    const Samples *samples = ctx;

    for (size_t f = 0; f < samples->state->spec.n_features; f++)
        if (samples->source->starts[f] != NULL)
            ret[f] = samples->source->arrays[f]->lengths[place_of(samples, index)];
}

/* The samples of a split as a dataset. */
static KilnDataset dataset_of(Samples *samples)
{
    const KilnDataSpec *described = &samples->state->spec;
    const KilnFeature *classes = kiln_spec_label(described);
    const KilnArray **arrays = samples->source->arrays;
    bool varies = false;

    for (size_t f = 0; f < described->n_features; f++)
        varies |= described->features[f].varies;
    return (KilnDataset) {
        .count = samples->count,
        .ctx = samples,
        .get = get,
        .label = classes != NULL && arrays[classes - described->features] != NULL ? label : NULL,
        .lengths = varies ? lengths : NULL,
        .absent = samples->source->absent,
    };
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);

    (void)set;
    (void)err;
    *ret = dataset_of(&state->samples[split]);
    return KILN_OK;
}

static KilnStatus table(KilnInstance *self, KilnSplit split, size_t set, KilnTable *ret,
                        KilnError *err)
{
    State *state = kiln_state(self);
    Samples *samples = &state->samples[split];
    const KilnDataset all = dataset_of(samples);
    KilnStatus status = KILN_OK;

    (void)set;
    if (samples->table == NULL)
        status = kiln_table_new(&state->spec, &all, &samples->table, err);
    if (status >= 0)
        *ret = *samples->table;
    return status;
}

/* ---- Samples of a program that predicts ----------------------------------------------------- */

static size_t raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    return kiln_feature_fields_list(((const State *)kiln_state(self))->raw, ret);
}

/* Check and scale a feature that has been written. */
static KilnStatus finish(const State *state, size_t f, const KilnRawValue *value,
                         KilnSample *sample, KilnError *err)
{
    const KilnFeature *feature = &state->spec.features[f];
    const int64_t count = kiln_shape_count(&value->shape);

    if (feature->content == KILN_TEXT)
        return KILN_OK;
    if (check_values(state, feature, sample->data[f], count, err) < 0)
        return kiln_error_prefix(err, "array \"%s\": ", feature->name);
    kiln_standard_scaler_apply(state->scaler, f, sample->data[f]);
    return KILN_OK;
}

static KilnStatus preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                             KilnError *err)
{
    const State *state = kiln_state(self);
    const KilnRawField *takes;
    const size_t n = kiln_feature_fields_list(state->raw, &takes);
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < n && status >= 0; i++) {
        status = kiln_feature_fields_write(state->raw, i, &values[i], sample, err);
        if (status >= 0)
            status = finish(state, kiln_feature_fields_feature(state->raw, i), &values[i], sample,
                            err);
    }
    return status;
}

/* ---- Setup ------------------------------------------------------------------------------ */

/* The program's description of a sample, with names for its classes. */
static KilnStatus describe(State *state, const KilnDataSpec *spec, KilnError *err)
{
    state->spec = *spec;
    if (spec->n_classes > 0 && spec->class_names == NULL) {
        state->class_names = kiln_class_names_copy(NULL, spec->n_classes);
        if (state->class_names == NULL)
            return kiln_error_nomem(err, (size_t)spec->n_classes);
        state->spec.class_names = state->class_names;
    }
    KilnStatus status = kiln_spec_check(&state->spec, err);
    return status >= 0 ? kiln_feature_fields_new(&state->spec, &state->raw, err) : status;
}

static KilnStatus set_up_scaler(State *state, const KilnDataContext *context, KilnError *err)
{
    if (context->fitted != NULL)
        return kiln_standard_scaler_open(context->fitted, &state->spec, &state->scaler, err);
    if (context->stage != KILN_STAGE_FIT)
        return kiln_error_set(err, KILN_E_MISSING,
                              "standardize: the checkpoint was trained without it; use "
                              "datamodule.standardize=false");
    const KilnDataset train = dataset_of(&state->samples[KILN_TRAIN]);
    return kiln_standard_scaler_fit(&state->spec, &train, state->poll, &state->scaler, err);
}

static KilnStatus save_preprocessing(KilnInstance *self, const char *dir, KilnError *err)
{
    const State *state = kiln_state(self);

    return state->scaler != NULL ? kiln_standard_scaler_save(state->scaler, dir, err) : KILN_OK;
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const bool predicts = context->stage == KILN_STAGE_PREDICT;

    state->opts = kiln_opts(self);
    state->poll = context->poll;
    if (!predicts && context->data == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "datamodule arrays reads arrays of a program that embeds kiln, and "
                              "this program gives none; set KilnRunEnv.data, or use another "
                              "datamodule");
    KilnStatus status = describe(state, predicts ? context->remembered : &context->data->spec, err);
    for (int split = 0; split < KILN_SPLIT_COUNT && !predicts && status >= 0; split++)
        status = open_source(state, context->data, (KilnSplit)split, &state->sources[split], err);
    if (status >= 0)
        status = split_samples(state, context->seed, err);
    return status >= 0 && state->opts->standardize ? set_up_scaler(state, context, err) : status;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        Source *source = &state->sources[split];

        for (size_t f = 0; f < state->spec.n_features && source->starts != NULL; f++)
            free(source->starts[f]);
        free(source->starts);
        free(source->arrays);
        free(source->absent);
        kiln_table_free(state->samples[split].table);
    }
    kiln_standard_scaler_free(state->scaler);
    free(state->order);
    free(state->class_names);
    kiln_feature_fields_free(state->raw);
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    (void)err;
    *ret = ((const State *)kiln_state(self))->spec;
    return KILN_OK;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LENGTH_LOADING(opts);
}

static const KilnDataModuleOps ops = {
    .shareable = true,
    .setup = setup,
    .spec = spec,
    .dataset = dataset,
    .raw_fields = raw_fields,
    .preprocess = preprocess,
    .save_preprocessing = save_preprocessing,
    .loading = loading,
    .table = table,
};

const KilnComponent kiln_datamodule_arrays = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "arrays",
    .summary = "Arrays in memory, of a program that embeds kiln",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.datamodule = &ops,
};

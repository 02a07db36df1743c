/* Datamodules of callers that know no structs. Samples come from the caller's arrays, without a
 * call for each, or from its function. Predictions take arrays of the features. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flat/flat_component.h"
#include "flat/flat_data.h"
#include "kiln/loading.h"
#include "kiln/tools/feature_fields.h"

/* The first options, before the caller's own. */
typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KILN_LENGTH_OPTIONS;
} Opts;

static const KilnField loading_fields[] = {
    KILN_LOADING_FIELDS(Opts, "64"),
    KILN_LENGTH_FIELDS(Opts),
    KILN_FIELD_END,
};
enum { LOADING_FIELDS = KILN_COUNT(loading_fields) - 1 };

typedef struct State State;

typedef struct Samples {
    State *state;
    KilnSplit split;
    const KilnArray *arrays[KILN_FLAT_FEATURES]; /* by feature; NULL: the caller writes it */
    bool whole;                                  /* all features have arrays */
    const char *absent[KILN_FLAT_FEATURES + 1];
} Samples;

struct State {
    KilnFlatObject object; /* comes first */
    KilnInstance *self;
    KilnFlatData *data; /* NULL: a prediction */
    KilnDataSpec spec;
    Samples samples[KILN_SPLIT_COUNT];
    KilnFeatureFields *raw;
};

/* ---- Samples --------------------------------------------------------------------------------- */

/* The caller writes it in one call, since a sample is one thing to it. */
static KilnStatus get_from_caller(const Samples *samples, int64_t index, KilnSample *sample,
                                  KilnError *err)
{
    KilnInstance *self = samples->state->self;

    return kiln_flat_component_of(self)->get(kiln_flat_object(self),
                                             kiln_split_name(samples->split), index, sample->data,
                                             sample->lengths, err);
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Samples *samples = ctx;
    const KilnDataSpec *spec = &samples->state->spec;
    KilnStatus status = KILN_OK;

    (void)rng;
    if (!samples->whole)
        return get_from_caller(samples, index, sample, err);
    for (size_t f = 0; f < spec->n_features && status >= 0; f++) {
        const KilnFeature *feature = &spec->features[f];
        const KilnArray *array = samples->arrays[f];

        if (sample->data[f] == NULL || array == NULL)
            continue;
        const size_t bytes = (size_t)kiln_shape_count(&feature->shape) *
                             kiln_dtype_size(array->dtype);
        const KilnRawValue value = { .type = KILN_RAW_ARRAY,
                                     .data = (const char *)array->data + (size_t)index * bytes,
                                     .dtype = array->dtype,
                                     .shape = feature->shape };
        status = kiln_raw_convert(&value, feature->dtype, sample->data[f], err);
    }
    return status;
}

static int64_t label(void *ctx, int64_t index)
{
    const Samples *samples = ctx;
    const KilnDataSpec *spec = &samples->state->spec;
    const KilnArray *array = samples->arrays[kiln_spec_label(spec) - spec->features];
    const KilnRawValue value = { .type = KILN_RAW_ARRAY,
                                 .data = (const char *)array->data +
                                         (size_t)index * kiln_dtype_size(array->dtype),
                                 .dtype = array->dtype };
    int32_t ret = -1;

    return kiln_raw_convert(&value, KILN_I32, &ret, NULL) >= 0 && ret >= 0 ? ret : -1;
}

/* Find the arrays of a split. A split has arrays of all features that it has, or none at all. */
static KilnStatus open_samples(State *state, KilnSplit split, KilnError *err)
{
    const KilnArraySet *set = &state->data->memory.sets[split];
    Samples *samples = &state->samples[split];
    size_t n_absent = 0;

    *samples = (Samples) { .state = state, .split = split, .whole = set->n_arrays > 0 };
    for (size_t i = 0; i < set->n_arrays; i++) {
        const KilnFeature *feature = kiln_spec_feature(&state->spec, set->arrays[i].name);

        if (feature->varies)
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "array \"%s\": a feature that varies needs a function that gives "
                                  "its samples one by one",
                                  feature->name);
        samples->arrays[feature - state->spec.features] = &set->arrays[i];
    }
    for (size_t f = 0; f < state->spec.n_features && samples->whole; f++)
        if (samples->arrays[f] == NULL)
            samples->absent[n_absent++] = state->spec.features[f].name;
    if (set->n > 0 && !samples->whole && kiln_flat_component_of(state->self)->get == NULL)
        return kiln_error_set(err, KILN_E_MISSING, "the %s set has neither arrays nor a function",
                              kiln_split_name(split));
    return KILN_OK;
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);
    Samples *samples = &state->samples[split];
    const KilnFeature *classes = kiln_spec_label(&state->spec);
    const bool has_labels = classes != NULL &&
                            samples->arrays[classes - state->spec.features] != NULL;

    (void)set;
    (void)err;
    *ret = (KilnDataset) {
        .count = state->data->memory.sets[split].n,
        .ctx = samples,
        .get = get,
        .label = has_labels ? label : NULL,
        .absent = samples->absent,
    };
    return KILN_OK;
}

/* ---- Raw samples ----------------------------------------------------------------------------- */

static size_t raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    return kiln_feature_fields_list(((const State *)kiln_state(self))->raw, ret);
}

static KilnStatus preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                             KilnError *err)
{
    const State *state = kiln_state(self);
    const KilnRawField *takes;
    const size_t n = kiln_feature_fields_list(state->raw, &takes);
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < n && status >= 0; i++)
        status = kiln_feature_fields_write(state->raw, i, &values[i], sample, err);
    return status;
}

/* ---- Setup ----------------------------------------------------------------------------------- */

static KilnStatus open_data(State *state, const KilnDataContext *context, KilnError *err)
{
    static const char *const stages[] = {
        [KILN_STAGE_FIT] = "fit",
        [KILN_STAGE_TEST] = "test",
        [KILN_STAGE_VALIDATE] = "validate",
    };
    KilnInstance *self = state->self;

    state->data = kiln_flat_data_new();
    if (state->data == NULL)
        return kiln_error_nomem(err, sizeof(*state->data));
    KilnStatus status = kiln_flat_component_of(self)->setup(
        kiln_flat_object(self), stages[context->stage], context->seed, state->data, err);
    state->spec = state->data->memory.spec;
    if (status >= 0)
        status = kiln_spec_check(&state->spec, err);
    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++)
        status = open_samples(state, (KilnSplit)split, err);
    return status;
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    KilnStatus status = KILN_OK;

    state->self = self;
    if (context->stage == KILN_STAGE_PREDICT)
        state->spec = *context->remembered;
    else
        status = open_data(state, context, err);
    if (status >= 0 && state->spec.n_features > KILN_FLAT_FEATURES)
        status = kiln_error_set(err, KILN_E_FORMAT, "%zu features; expected at most %d",
                                state->spec.n_features, KILN_FLAT_FEATURES);
    return status >= 0 ? kiln_feature_fields_new(&state->spec, &state->raw, err) : status;
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

static void release(KilnInstance *self)
{
    const State *state = kiln_state(self);

    kiln_feature_fields_free(state->raw);
    kiln_flat_data_free(state->data);
    kiln_flat_object_release(self);
}

void kiln_flat_datamodule_init(KilnFlatComponent *component)
{
    component->datamodule = (KilnDataModuleOps) {
        .setup = setup,
        .spec = spec,
        .dataset = dataset,
        .raw_fields = raw_fields,
        .preprocess = preprocess,
        .loading = loading,
    };
    component->component.ops.datamodule = &component->datamodule;
    component->component.state_size = sizeof(State);
    component->component.opts_size = sizeof(Opts);
    component->component.release = release;
    memcpy(component->fields, loading_fields, LOADING_FIELDS * sizeof(loading_fields[0]));
    component->n_fields = component->first_own = LOADING_FIELDS;
}

void kiln_flat_datamodule_ops(KilnFlatComponent *component, KilnFlatSetup *set_up,
                              KilnFlatGet *give)
{
    component->setup = set_up;
    component->get = give;
}

/* Predictions for callers that know no structs: kiln/flat/predict.h. */
#include "kiln/flat/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "kiln/array.h"

KilnStatus kiln_flat_predictor_open(const KilnRegistry *registry, const char *ckpt_path,
                                    const char *const *overrides, int max_calls,
                                    KilnPredictor **ret, KilnError *err)
{
    const KilnPredictorSpec spec = {
        .registry = registry,
        .ckpt_path = ckpt_path,
        .overrides = overrides,
        .max_calls = max_calls,
    };

    return kiln_predictor_open(&spec, ret, err);
}

/* ---- Description ----------------------------------------------------------------------------- */

static void write_field(KilnText *text, const KilnRawField *field)
{
    bool first = true;

    kiln_text_append(text, "{\"name\": ");
    kiln_text_json_string(text, field->name);
    kiln_text_append(text, ", \"types\": [");
    for (unsigned type = KILN_RAW_PATH; type <= KILN_RAW_ARRAY; type <<= 1) {
        if ((field->types & type) == 0)
            continue;
        kiln_text_printf(text, "%s\"%s\"", first ? "" : ", ", kiln_raw_type_name(type));
        first = false;
    }
    kiln_text_printf(text, "], \"optional\": %s, \"help\": ", field->optional ? "true" : "false");
    kiln_text_json_string(text, field->help != NULL ? field->help : "");
    kiln_text_char(text, '}');
}

static void write_feature(KilnText *text, const KilnFeature *feature)
{
    kiln_text_append(text, "{\"name\": ");
    kiln_text_json_string(text, feature->name);
    kiln_text_printf(text, ", \"content\": \"%s\", \"dtype\": \"%s\", \"shape\": [",
                     kiln_content_name(feature->content), kiln_dtype_name(feature->dtype));
    for (int i = 0; i < feature->shape.rank; i++)
        kiln_text_printf(text, "%s%lld", i > 0 ? ", " : "", (long long)feature->shape.dim[i]);
    kiln_text_printf(text, "], \"varies\": %s}", feature->varies ? "true" : "false");
}

KilnStatus kiln_flat_predictor_describe(const KilnPredictor *predictor, char **ret, KilnError *err)
{
    const KilnDataSpec *spec = kiln_predictor_data_spec(predictor);
    const KilnRawField *fields;
    const size_t n = kiln_predictor_fields(predictor, &fields);
    KilnText text = { 0 };

    kiln_text_append(&text, "{\"fields\": [");
    for (size_t i = 0; i < n; i++) {
        kiln_text_append(&text, i > 0 ? ", " : "");
        write_field(&text, &fields[i]);
    }
    kiln_text_append(&text, "], \"features\": [");
    for (size_t i = 0; i < spec->n_features; i++) {
        kiln_text_append(&text, i > 0 ? ", " : "");
        write_feature(&text, &spec->features[i]);
    }
    kiln_text_append(&text, "], \"classes\": [");
    for (int64_t i = 0; i < spec->n_classes; i++) {
        kiln_text_append(&text, i > 0 ? ", " : "");
        kiln_text_json_string(&text, spec->class_names[i]);
    }
    kiln_text_append(&text, "]}");
    return kiln_text_finish(&text, KILN_OK, ret, err);
}

/* ---- Raw samples ----------------------------------------------------------------------------- */

typedef struct Sample {
    KilnRawValue *values;
    size_t n, capacity;
} Sample;

struct KilnFlatSamples {
    KilnArena arena; /* of texts */
    size_t n;
    Sample list[];
};

KilnFlatSamples *kiln_flat_samples_new(size_t n)
{
    KilnFlatSamples *samples = n < SIZE_MAX / 2 / sizeof(Sample)
                                   ? calloc(1, sizeof(*samples) + n * sizeof(Sample))
                                   : NULL;

    if (samples != NULL)
        samples->n = n;
    return samples;
}

void kiln_flat_samples_free(KilnFlatSamples *samples)
{
    if (samples == NULL)
        return;
    for (size_t i = 0; i < samples->n; i++)
        free(samples->list[i].values);
    kiln_arena_release(&samples->arena);
    free(samples);
}

static KilnStatus add(KilnFlatSamples *samples, size_t i, const KilnRawValue *value, KilnError *err)
{
    Sample *sample = &samples->list[i];

    if (i >= samples->n)
        return kiln_error_set(err, KILN_E_RANGE, "sample %zu of %zu", i, samples->n);
    if (!KILN_RESERVE(sample->values, sample->capacity, sample->n + 1))
        return kiln_error_nomem(err, sizeof(*value));
    sample->values[sample->n++] = *value;
    return KILN_OK;
}

static KilnStatus make_array(KilnFlatSamples *samples, const char *name, int dtype, int rank,
                             const int64_t *dims, KilnRawValue *ret, KilnError *err)
{
    KilnShape shape = { .rank = rank };

    if (rank < 0 || rank > KILN_MAX_RANK)
        return kiln_error_set(err, KILN_E_SHAPE, "an array has at most %d axes; this has %d",
                              KILN_MAX_RANK, rank);
    for (int i = 0; i < rank; i++)
        shape.dim[i] = dims[i];
    *ret = (KilnRawValue) {
        .name = name != NULL ? kiln_arena_strdup(&samples->arena, name) : NULL,
        .type = KILN_RAW_ARRAY,
        .dtype = (KilnDType)dtype,
        .shape = shape,
    };
    return samples->arena.failed ? kiln_error_nomem(err, strlen(name)) : KILN_OK;
}

KilnStatus kiln_flat_samples_arrays(KilnFlatSamples *samples, const char *name, int dtype, int rank,
                                    const int64_t *dims, const void *data, KilnError *err)
{
    KilnRawValue value;
    KilnStatus status = make_array(samples, name, dtype, rank, dims, &value, err);
    const size_t bytes = status >= 0
                             ? (size_t)kiln_shape_count(&value.shape) * kiln_dtype_size(value.dtype)
                             : 0;

    for (size_t i = 0; i < samples->n && status >= 0; i++) {
        value.data = (const char *)data + i * bytes;
        status = add(samples, i, &value, err);
    }
    return status;
}

KilnStatus kiln_flat_samples_array(KilnFlatSamples *samples, size_t i, const char *name, int dtype,
                                   int rank, const int64_t *dims, const void *data, KilnError *err)
{
    KilnRawValue value;
    KilnStatus status = make_array(samples, name, dtype, rank, dims, &value, err);

    if (status < 0)
        return status;
    value.data = data;
    return add(samples, i, &value, err);
}

/* A value of a type without a shape. */
static KilnStatus add_plain(KilnFlatSamples *samples, size_t i, const char *name,
                            const KilnRawValue *value, KilnError *err)
{
    KilnRawValue copy = *value;

    copy.name = name != NULL ? kiln_arena_strdup(&samples->arena, name) : NULL;
    copy.text = value->text != NULL ? kiln_arena_strdup(&samples->arena, value->text) : NULL;
    return samples->arena.failed ? kiln_error_nomem(err, 1) : add(samples, i, &copy, err);
}

KilnStatus kiln_flat_samples_text(KilnFlatSamples *samples, size_t i, const char *name, int type,
                                  const char *text, KilnError *err)
{
    const KilnRawValue value = { .type = (KilnRawType)type, .text = text };

    return add_plain(samples, i, name, &value, err);
}

KilnStatus kiln_flat_samples_bytes(KilnFlatSamples *samples, size_t i, const char *name,
                                   const void *data, size_t size, KilnError *err)
{
    const KilnRawValue value = { .type = KILN_RAW_BYTES, .data = data, .bytes = size };

    return add_plain(samples, i, name, &value, err);
}

KilnStatus kiln_flat_samples_number(KilnFlatSamples *samples, size_t i, const char *name,
                                    double number, KilnError *err)
{
    const KilnRawValue value = { .type = KILN_RAW_NUMBER, .number = number };

    return add_plain(samples, i, name, &value, err);
}

/* ---- Predictions ----------------------------------------------------------------------------- */

KilnStatus kiln_flat_predict(KilnPredictor *predictor, const KilnFlatSamples *samples,
                             KilnPredictions **ret, KilnError *err)
{
    enum { FEW = 16 };
    KilnRawSample few[FEW] = { 0 };
    KilnRawSample *raw = samples->n <= FEW ? few : calloc(samples->n, sizeof(*raw));

    if (raw == NULL)
        return kiln_error_nomem(err, samples->n * sizeof(*raw));
    for (size_t i = 0; i < samples->n; i++)
        raw[i] = (KilnRawSample) { samples->list[i].values, samples->list[i].n };
    KilnStatus status = kiln_predict(predictor, raw, samples->n, ret, err);
    if (raw != few)
        free(raw);
    return status;
}

int64_t kiln_flat_predictions_failed(const KilnPredictions *predictions, size_t from,
                                     const char **ret_message)
{
    for (size_t i = from; i < predictions->n; i++)
        if (predictions->list[i].error != NULL) {
            *ret_message = predictions->list[i].error;
            return (int64_t)i;
        }
    return -1;
}

const char *kiln_flat_predictions_output(const KilnPredictions *predictions, size_t i,
                                         size_t output, int *ret_rank, int64_t *ret_dims,
                                         bool *ret_same)
{
    if (i >= predictions->n || output >= predictions->list[i].n_outputs)
        return NULL;
    const KilnOutputView *view = &predictions->list[i].outputs[output];
    *ret_rank = view->shape.rank;
    memcpy(ret_dims, view->shape.dim, sizeof(view->shape.dim));
    *ret_same = true;
    for (size_t j = 0; j < predictions->n; j++)
        if (output < predictions->list[j].n_outputs)
            *ret_same &= kiln_shape_equal(&view->shape,
                                          &predictions->list[j].outputs[output].shape);
    return view->name;
}

/* Elements of that output in the first sample that has it. */
static size_t count_of(const KilnPredictions *predictions, size_t i, size_t n, size_t output)
{
    for (size_t j = i; j < i + n; j++)
        if (output < predictions->list[j].n_outputs)
            return (size_t)kiln_shape_count(&predictions->list[j].outputs[output].shape);
    return 0;
}

void kiln_flat_predictions_copy(const KilnPredictions *predictions, size_t i, size_t n,
                                size_t output, float *to)
{
    const size_t count = count_of(predictions, i, n, output);

    for (size_t j = i; j < i + n; j++, to += count) {
        const KilnPrediction *one = &predictions->list[j];

        if (output < one->n_outputs)
            memcpy(to, one->outputs[output].data, count * sizeof(*to));
        else
            for (size_t k = 0; k < count; k++)
                to[k] = NAN;
    }
}

char *kiln_flat_predictions_results(const KilnPredictions *predictions, size_t i)
{
    const KilnPrediction *one = &predictions->list[i];
    KilnText text = { 0 };

    if (one->n_results == 0)
        return NULL;
    kiln_text_char(&text, '{');
    for (size_t r = 0; r < one->n_results; r++) {
        kiln_text_append(&text, r > 0 ? ", " : "");
        kiln_text_json_string(&text, one->results[r].name);
        kiln_text_append(&text, ": ");
        kiln_text_append(&text, one->results[r].json);
    }
    kiln_text_char(&text, '}');
    return kiln_text_take(&text);
}

/* Checks a datamodule as predictions use it: set up from a checkpoint, without its data. */
#include <string.h>

#include "base/text.h"
#include "cli/checks/checks.h"
#include "kiln/embed/predict.h"

enum { MOST_FIELDS = 32, LONGEST = 1 << 20 /* elements */ };

/* ---- A sample that is made up ------------------------------------------------------------- */

/* The shape of the feature of that name; NULL: there is none, it varies or is large. */
static const KilnShape *shape_of(const KilnDataSpec *spec, const char *name)
{
    for (size_t i = 0; i < spec->n_features; i++) {
        const KilnShape *shape = &spec->features[i].shape;

        if (strcmp(spec->features[i].name, name) != 0)
            continue;
        for (int axis = 0; axis < shape->rank; axis++)
            if (shape->dim[axis] < 1 || shape->dim[axis] > LONGEST)
                return NULL;
        return kiln_shape_count(shape) <= LONGEST ? shape : NULL;
    }
    return NULL;
}

/* Zeros, a number or a text; false: only a user has such a value. */
static bool make_value(KilnCase *self, const KilnDataSpec *spec, const KilnRawField *field,
                       KilnRawValue *ret)
{
    const KilnShape *shape = shape_of(spec, field->name);

    *ret = (KilnRawValue) { .name = field->name };
    if ((field->types & KILN_RAW_ARRAY) != 0 && shape != NULL) {
        ret->type = KILN_RAW_ARRAY;
        ret->dtype = KILN_F32;
        ret->shape = *shape;
        ret->data = kiln_arena_alloc(&self->arena,
                                     ((size_t)kiln_shape_count(shape) + 1) * sizeof(float));
        return ret->data != NULL;
    }
    ret->number = 1.0;
    ret->text = "a";
    ret->type = (field->types & KILN_RAW_NUMBER) != 0 ? KILN_RAW_NUMBER : KILN_RAW_TEXT;
    return (field->types & (KILN_RAW_NUMBER | KILN_RAW_TEXT)) != 0;
}

/* *ret_lacking: the first field for which there is no value; NULL: none. */
static KilnRawSample make_sample(KilnCase *self, const KilnPredictor *predictor,
                                 KilnRawValue values[MOST_FIELDS], const char **ret_lacking)
{
    const KilnRawField *fields;
    const size_t n = kiln_predictor_fields(predictor, &fields);
    KilnRawSample sample = { .values = values };

    *ret_lacking = n > MOST_FIELDS ? fields[MOST_FIELDS].name : NULL;
    for (size_t i = 0; i < n && *ret_lacking == NULL; i++) {
        if (fields[i].optional)
            continue;
        if (!make_value(self, kiln_predictor_data_spec(predictor), &fields[i],
                        &values[sample.n_values]))
            *ret_lacking = fields[i].name;
        sample.n_values++;
    }
    return sample;
}

/* ---- The check ------------------------------------------------------------------------------- */

static void prepare(KilnCase *self, const KilnPredictor *predictor)
{
    KilnRawValue values[MOST_FIELDS];
    const char *lacking = NULL;
    const KilnRawSample raw = make_sample(self, predictor, values, &lacking);
    KilnSample *sample = NULL;
    KilnError err = { 0 };

    if (lacking != NULL)
        return kiln_case_pass(self, "set up from a checkpoint; no \"%s\" to try it with", lacking);
    if (kiln_predictor_preprocess(predictor, &raw, &sample, &err) < 0)
        return kiln_case_pass(self, "set up from a checkpoint; refuses a made-up sample: %s",
                              err.text);
    kiln_predictor_sample_free(predictor, sample);
    kiln_case_pass(self, "set up from a checkpoint; prepares a made-up sample");
}

void kiln_contract_predicting(KilnCase *self)
{
    static const char advice[] =
        "in KILN_STAGE_PREDICT there are no data: `spec` and `preprocess` take what they need from "
        "the remembered spec, or from what save_preprocessing has written";
    const KilnPredictorSpec spec = { .registry = self->registry,
                                     .ckpt_path = kiln_case_run_dir(self, "first run") };
    KilnPredictor *predictor = NULL;
    KilnError err = { 0 };

    if (self->component->ops.datamodule->preprocess == NULL)
        return kiln_case_skip(self,
                              "with raw_fields and preprocess `kiln predict` takes samples "
                              "of a user",
                              "it prepares no samples of a user");
    const KilnStatus status = kiln_predictor_open(&spec, &predictor, &err);
    if (status == KILN_E_MISSING)
        kiln_case_skip(self, "", "%s", err.text);
    else if (status < 0)
        kiln_case_fail(self, advice, "%.*s", (int)strcspn(err.text, "\n"), err.text);
    else
        prepare(self, predictor);
    kiln_predictor_free(predictor);
}

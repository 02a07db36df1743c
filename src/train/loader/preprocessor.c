/* Makes features of raw samples with a datamodule, checked on the way in and out. */
#include "train/loader/preprocessor.h"

#include <stdlib.h>
#include <string.h>

#include "base/call.h"

static const KilnDataModuleOps *ops_of(const KilnPreprocessor *self)
{
    return kiln_instance_component(self->datamodule)->ops.datamodule;
}

KilnStatus kiln_preprocessor_init(KilnPreprocessor *self, KilnInstance *datamodule,
                                  const KilnDataSpec *spec, KilnError *err)
{
    size_t n = 0;

    *self = (KilnPreprocessor) { .datamodule = datamodule, .spec = spec };
    if (ops_of(self)->raw_fields == NULL || ops_of(self)->preprocess == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "datamodule %s can't read a user's input: it has no `preprocess`, "
                              "which makes features of raw samples; predict one of its splits "
                              "instead (split=test), or give it one (in Python: "
                              "docs/python-components.md)",
                              kiln_instance_name(datamodule));
    kiln_call_enter(datamodule, "raw_fields");
    self->n_fields = ops_of(self)->raw_fields(datamodule, &self->fields);
    kiln_call_leave();
    self->absent = calloc(spec->n_features + 1, sizeof(*self->absent));
    if (self->absent == NULL)
        return kiln_error_nomem(err, spec->n_features * sizeof(*self->absent));
    for (size_t f = 0; f < spec->n_features; f++)
        if (spec->features[f].content == KILN_LABEL)
            self->absent[n++] = spec->features[f].name;
    return KILN_OK;
}

void kiln_preprocessor_release(KilnPreprocessor *self)
{
    free(self->absent);
    *self = (KilnPreprocessor) { 0 };
}

/* The lengths that preprocessing has set must fit the spec. */
static KilnStatus check_lengths(const KilnPreprocessor *self, const KilnSample *sample,
                                KilnError *err)
{
    for (size_t f = 0; f < self->spec->n_features; f++) {
        const KilnFeature *feature = &self->spec->features[f];
        const int64_t most = feature->shape.dim[0], length = sample->lengths[f];

        if (feature->varies && sample->data[f] != NULL && (length < 0 || length > most))
            return kiln_error_set(err, KILN_E_RANGE,
                                  "datamodule %s made feature %s %lld long; it declares 0 to %lld",
                                  kiln_instance_name(self->datamodule), feature->name,
                                  (long long)length, (long long)most);
    }
    return KILN_OK;
}

/* The values of the fields; *ret is owned by the caller, NULL after a failure. */
static KilnStatus match(const KilnPreprocessor *self, const KilnRawSample *raw, KilnRawValue **ret,
                        KilnError *err)
{
    KilnRawValue *values = malloc((self->n_fields + 1) * sizeof(*values));

    if (values == NULL)
        return kiln_error_nomem(err, self->n_fields * sizeof(*values));
    const KilnStatus status = kiln_raw_match(self->fields, self->n_fields, raw, values, err);
    if (status < 0)
        free(values);
    else
        *ret = values;
    return status;
}

KilnStatus kiln_preprocess(const KilnPreprocessor *self, const KilnRawSample *raw,
                           KilnSample *sample, KilnError *err)
{
    KilnRawValue *values = NULL;
    KilnStatus status = match(self, raw, &values, err);

    memset(sample->lengths, 0, self->spec->n_features * sizeof(*sample->lengths));
    if (status >= 0)
        status = KILN_CALLED(self->datamodule, "preprocess",
                             ops_of(self)->preprocess(self->datamodule, values, sample, err), err);
    free(values);
    return status >= 0 ? check_lengths(self, sample, err) : status;
}

KilnStatus kiln_preprocess_spell(const KilnPreprocessor *self, const KilnRawSample *raw,
                                 size_t feature, KilnText *ret, KilnError *err)
{
    KilnRawValue *values = NULL;

    if (ops_of(self)->spell == NULL)
        return KILN_OK;
    KilnStatus status = match(self, raw, &values, err);
    if (status >= 0)
        status = KILN_CALLED(self->datamodule, "spell",
                             ops_of(self)->spell(self->datamodule, values, feature, ret, err), err);
    free(values);
    return status;
}

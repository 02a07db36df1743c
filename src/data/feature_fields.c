/* Fields and values of samples that are features already. */
#define _POSIX_C_SOURCE 200809L
#include "kiln/tools/feature_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct KilnFeatureFields {
    const KilnDataSpec *spec; /* borrowed */
    KilnRawField *fields;
    size_t *feature_of; /* of each field */
    size_t n;
    char (*help)[KILN_SHAPE_TEXT + 32];
};

static void add_field(KilnFeatureFields *self, size_t f)
{
    const KilnFeature *feature = &self->spec->features[f];
    const bool text = feature->content == KILN_TEXT;
    char shape[KILN_SHAPE_TEXT], *help = self->help[self->n];

    snprintf(help, sizeof(*self->help), "%s%s %s", feature->varies ? "at most " : "",
             kiln_dtype_name(feature->dtype),
             kiln_shape_text(&feature->shape, shape, sizeof(shape)));
    self->feature_of[self->n] = f;
    self->fields[self->n++] = (KilnRawField) {
        .name = feature->name,
        .types = text ? KILN_RAW_TEXT : KILN_RAW_ARRAY,
        .optional = text,
        .help = text ? "a text to write with the prediction" : help,
    };
}

KilnStatus kiln_feature_fields_new(const KilnDataSpec *spec, KilnFeatureFields **ret,
                                   KilnError *err)
{
    const size_t n = spec->n_features;
    KilnFeatureFields *self = calloc(1, sizeof(*self));

    if (self == NULL)
        return kiln_error_nomem(err, sizeof(*self));
    self->spec = spec;
    self->fields = calloc(n + 1, sizeof(*self->fields));
    self->feature_of = calloc(n + 1, sizeof(*self->feature_of));
    self->help = calloc(n + 1, sizeof(*self->help));
    if (self->fields == NULL || self->feature_of == NULL || self->help == NULL) {
        kiln_feature_fields_free(self);
        return kiln_error_nomem(err, n * sizeof(*self->fields));
    }
    for (size_t f = 0; f < n; f++)
        if (spec->features[f].content != KILN_LABEL)
            add_field(self, f);
    *ret = self;
    return KILN_OK;
}

void kiln_feature_fields_free(KilnFeatureFields *self)
{
    if (self == NULL)
        return;
    free(self->fields);
    free(self->feature_of);
    free(self->help);
    free(self);
}

size_t kiln_feature_fields_list(const KilnFeatureFields *self, const KilnRawField **ret)
{
    *ret = self->fields;
    return self->n;
}

size_t kiln_feature_fields_feature(const KilnFeatureFields *self, size_t field)
{
    return self->feature_of[field];
}

bool kiln_feature_fits(const KilnFeature *feature, const KilnShape *shape)
{
    KilnShape most = feature->shape;

    if (feature->varies && shape->rank > 0 && shape->dim[0] > 0 && shape->dim[0] < most.dim[0])
        most.dim[0] = shape->dim[0];
    return kiln_shape_equal(shape, &most);
}

static KilnStatus write_text(const char *text, char **to, KilnError *err)
{
    *to = text != NULL ? strdup(text) : NULL;
    return text != NULL && *to == NULL ? kiln_error_nomem(err, strlen(text)) : KILN_OK;
}

static KilnStatus write_array(const KilnFeature *feature, const KilnRawValue *value, void *to,
                              int64_t *length, KilnError *err)
{
    char want[KILN_SHAPE_TEXT], got[KILN_SHAPE_TEXT];

    if (!kiln_feature_fits(feature, &value->shape))
        return kiln_error_set(err, KILN_E_SHAPE, "array \"%s\" is %s; expected %s%s", feature->name,
                              kiln_shape_text(&value->shape, got, sizeof(got)),
                              feature->varies ? "at most " : "",
                              kiln_shape_text(&feature->shape, want, sizeof(want)));
    if (feature->varies)
        *length = value->shape.dim[0];
    return kiln_raw_convert(value, feature->dtype, to, err);
}

KilnStatus kiln_feature_fields_write(const KilnFeatureFields *self, size_t field,
                                     const KilnRawValue *value, KilnSample *sample, KilnError *err)
{
    const size_t f = self->feature_of[field];
    const KilnFeature *feature = &self->spec->features[f];

    return feature->content == KILN_TEXT
               ? write_text(value->text, sample->data[f], err)
               : write_array(feature, value, sample->data[f], &sample->lengths[f], err);
}

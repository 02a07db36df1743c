/* Raw values for the fields of a datamodule: which is for which, and numbers of other types. */
#include "data/raw/raw_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const struct {
    unsigned type;
    const char *name;
} types[] = {
    { KILN_RAW_PATH, "path" },     { KILN_RAW_BYTES, "bytes" }, { KILN_RAW_TEXT, "text" },
    { KILN_RAW_NUMBER, "number" }, { KILN_RAW_ARRAY, "array" },
};

const char *kiln_raw_type_name(unsigned type)
{
    for (size_t i = 0; i < KILN_COUNT(types); i++)
        if (types[i].type == type)
            return types[i].name;
    return NULL;
}

/* ---- Texts ------------------------------------------------------------------------------ */

void kiln_raw_types_text(unsigned set, KilnText *text)
{
    const char *separator = "";

    for (size_t i = 0; i < KILN_COUNT(types); i++) {
        if ((set & types[i].type) == 0)
            continue;
        kiln_text_printf(text, "%s%s", separator, types[i].name);
        separator = " or ";
    }
}

void kiln_raw_fields_text(const KilnRawField *fields, size_t n, KilnText *text)
{
    enum { SHOWN = 8 };

    for (size_t i = 0; i < n && i < SHOWN; i++) {
        kiln_text_printf(text, "%s%s (", i > 0 ? ", " : "", fields[i].name);
        kiln_raw_types_text(fields[i].types, text);
        kiln_text_printf(text, "%s%s%s)", fields[i].help != NULL ? ": " : "",
                         fields[i].help != NULL ? fields[i].help : "",
                         fields[i].optional ? "; optional" : "");
    }
    if (n > SHOWN)
        kiln_text_printf(text, " and %zu more", n - SHOWN);
}

/* ---- Matching ---------------------------------------------------------------------------- */

/* The index of the only required field, or of the only field; n: there is none. */
static size_t only_field(const KilnRawField *fields, size_t n)
{
    size_t found = n, required = 0;

    for (size_t i = 0; i < n; i++)
        if (!fields[i].optional) {
            found = i;
            required++;
        }
    return required == 1 ? found : n == 1 ? 0 : n;
}

/* The field of that name, searched from `hint` on; n: there is none. */
static size_t field_of(const KilnRawField *fields, size_t n, const char *name, size_t hint)
{
    if (name == NULL)
        return only_field(fields, n);
    for (size_t k = 0; k < n; k++) {
        const size_t i = (hint + k) % n;

        if (strcmp(fields[i].name, name) == 0)
            return i;
    }
    return n;
}

static const char *nearest(const KilnRawField *fields, size_t n, const char *name)
{
    const char **names = malloc((n + 1) * sizeof(*names));
    const char *near = NULL;

    for (size_t i = 0; i < n && names != NULL; i++)
        names[i] = fields[i].name;
    if (names != NULL)
        near = kiln_nearest(name, names, n);
    free(names);
    return near;
}

/* Set an error that ends with what the fields take. */
static KilnStatus refuse(const KilnRawField *fields, size_t n, KilnStatus status, const char *what,
                         KilnError *err)
{
    KilnText takes = { 0 };

    kiln_raw_fields_text(fields, n, &takes);
    kiln_error_set(err, status, "%s; expected %s", what,
                   takes.data != NULL ? takes.data : "no values");
    kiln_text_release(&takes);
    return status;
}

static KilnStatus refuse_name(const KilnRawField *fields, size_t n, const char *name,
                              KilnError *err)
{
    const char *near = name != NULL ? nearest(fields, n, name) : NULL;
    char what[512];

    if (name == NULL)
        snprintf(what, sizeof(what), "a value has no name, and there are several fields");
    else
        snprintf(what, sizeof(what), "no field is named \"%.200s\"%s%.100s%s", name,
                 near != NULL ? "; is it \"" : "", near != NULL ? near : "",
                 near != NULL ? "\"?" : "");
    return refuse(fields, n, KILN_E_KEY, what, err);
}

static KilnStatus take_value(const KilnRawField *fields, size_t n, size_t at,
                             const KilnRawValue *value, KilnRawValue *ret, KilnError *err)
{
    const char *type = kiln_raw_type_name(value->type);
    char what[512];

    if (ret[at].type != 0) {
        snprintf(what, sizeof(what), "%.200s: the field has two values", fields[at].name);
        return refuse(fields, n, KILN_E_RANGE, what, err);
    }
    if (type == NULL || (fields[at].types & value->type) == 0) {
        snprintf(what, sizeof(what), "%.200s: the value is a %s", fields[at].name,
                 type != NULL ? type : "value of no known type");
        return refuse(fields, n, KILN_E_TYPE, what, err);
    }
    ret[at] = *value;
    ret[at].name = fields[at].name;
    return KILN_OK;
}

KilnStatus kiln_raw_match(const KilnRawField *fields, size_t n_fields, const KilnRawSample *raw,
                          KilnRawValue *ret, KilnError *err)
{
    KilnStatus status = KILN_OK;

    memset(ret, 0, n_fields * sizeof(*ret));
    for (size_t i = 0; i < raw->n_values && status >= 0; i++) {
        const KilnRawValue *value = &raw->values[i];
        const size_t at = field_of(fields, n_fields, value->name, i);

        status = at < n_fields ? take_value(fields, n_fields, at, value, ret, err)
                               : refuse_name(fields, n_fields, value->name, err);
    }
    for (size_t i = 0; i < n_fields && status >= 0; i++)
        if (ret[i].type == 0 && !fields[i].optional) {
            char what[512];

            snprintf(what, sizeof(what), "%.200s is missing", fields[i].name);
            status = refuse(fields, n_fields, KILN_E_MISSING, what, err);
        }
    return status;
}

/* ---- Numbers ----------------------------------------------------------------------------- */

double kiln_raw_element(const KilnRawValue *value, int64_t i)
{
    if (value->type == KILN_RAW_NUMBER)
        return value->number;
    switch (value->dtype) {
    case KILN_F32:
        return (double)((const float *)value->data)[i];
    case KILN_F64:
        return ((const double *)value->data)[i];
    case KILN_I32:
        return ((const int32_t *)value->data)[i];
    case KILN_I64:
        return (double)((const int64_t *)value->data)[i];
    case KILN_U8:
        return ((const uint8_t *)value->data)[i];
    case KILN_BF16:
        break;
    }
    return (double)NAN;
}

/* Write `x` to element i; false: the type can't represent it. */
static bool put(void *to, KilnDType dtype, int64_t i, double x)
{
    const double low = dtype == KILN_I32 ? (double)INT32_MIN : 0.0;
    const double high = dtype == KILN_I32 ? (double)INT32_MAX : (double)UINT8_MAX;

    if (dtype == KILN_F32) {
        ((float *)to)[i] = (float)x;
        return true;
    }
    if ((dtype != KILN_I32 && dtype != KILN_U8) || !(x >= low && x <= high) || x != floor(x))
        return false;
    if (dtype == KILN_I32)
        ((int32_t *)to)[i] = (int32_t)x;
    else
        ((uint8_t *)to)[i] = (uint8_t)x;
    return true;
}

KilnStatus kiln_raw_convert(const KilnRawValue *value, KilnDType dtype, void *to, KilnError *err)
{
    const int64_t n = value->type == KILN_RAW_NUMBER ? 1 : kiln_shape_count(&value->shape);

    if (value->type == KILN_RAW_ARRAY && value->dtype == dtype) {
        memcpy(to, value->data, (size_t)n * kiln_dtype_size(dtype));
        return KILN_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        const double x = kiln_raw_element(value, i);

        if (!put(to, dtype, i, x))
            return kiln_error_set(err, KILN_E_RANGE,
                                  "%s: element %lld is %g, which is no %s; expected %s",
                                  value->name != NULL ? value->name : "value", (long long)i, x,
                                  kiln_dtype_name(dtype),
                                  dtype == KILN_U8 ? "whole numbers of 0 to 255" : "whole numbers");
    }
    return KILN_OK;
}

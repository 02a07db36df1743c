/* Reads an options struct by its table. */
#include "python/option_values.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

/* JSON has no infinities: Python's json reads them, jansson does not write them. A text that the
 * other side converts. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value)
                           : json_pack("{s:s}", "float",
                                       isnan(value) ? "nan"
                                       : value > 0  ? "inf"
                                                    : "-inf");
}

/* The value at `at`, of the field's type. */
static json_t *one(const KilnField *field, const void *at)
{
    switch (field->type) {
    case KILN_TYPE_BOOL:
        return json_boolean(*(const bool *)at);
    case KILN_TYPE_I64:
        return json_integer(*(const int64_t *)at);
    case KILN_TYPE_F64:
        return number(*(const double *)at);
    case KILN_TYPE_ENUM:
        return json_string(field->choices[*(const int64_t *)at].name);
    default:
        return kiln_json_text(*(char *const *)at);
    }
}

static bool is_text(const KilnField *field)
{
    return field->type == KILN_TYPE_STR || field->type == KILN_TYPE_PATH;
}

/* An option with one value; null where it has none. */
static json_t *single(const KilnField *field, const char *member)
{
    const void *value = member;

    if (is_text(field))
        value = *(char *const *)member != NULL ? member : NULL;
    else if (field->optional)
        value = *(void *const *)member;
    return value != NULL ? one(field, value) : json_null();
}

static json_t *several(const KilnField *field, const char *member, size_t count)
{
    const char *items = *(char *const *)member;
    const bool map = field->shape == KILN_MAPPING;
    json_t *values = map ? json_object() : json_array();

    if (items == NULL && field->optional) {
        json_decref(values);
        return json_null();
    }
    for (size_t i = 0; i < count; i++) {
        const char *pair = items + i * field->pair_size;

        if (map)
            kiln_json_put(&values, *(char *const *)pair, one(field, pair + field->value_offset));
        else
            kiln_json_add(&values, one(field, items + i * field->item_size));
    }
    return values;
}

json_t *kiln_option_values(const KilnField *fields, size_t n, const void *opts)
{
    json_t *values = json_object();

    for (size_t i = 0; i < n; i++) {
        const KilnField *field = &fields[i];
        const char *member = (const char *)opts + field->offset;
        size_t count = 0;

        if (field->shape != KILN_ONE)
            memcpy(&count, (const char *)opts + field->count_offset, sizeof(count));
        kiln_json_put(&values, field->name,
                      field->shape == KILN_ONE ? single(field, member)
                                               : several(field, member, count));
    }
    return values;
}

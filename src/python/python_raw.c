/* Raw samples for datamodules in Python. */
#include "python/python_raw.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* ---- Fields -------------------------------------------------------------------------------- */

static unsigned types_of(const json_t *names)
{
    unsigned types = 0;

    for (size_t i = 0; i < json_array_size(names); i++)
        for (unsigned type = KILN_RAW_PATH; type <= KILN_RAW_ARRAY; type *= 2)
            if (strcmp(kiln_raw_type_name(type), json_string_value(json_array_get(names, i))) == 0)
                types |= type;
    return types;
}

/* NULL: files with any ending. */
static const char *const *endings_of(KilnArena *arena, const json_t *list)
{
    const size_t n = json_array_size(list);
    const char **endings = n > 0 ? kiln_arena_alloc(arena, (n + 1) * sizeof(*endings)) : NULL;

    for (size_t i = 0; endings != NULL && i < n; i++)
        endings[i] = kiln_arena_strdup(arena, json_string_value(json_array_get(list, i)));
    return endings;
}

void kiln_python_set_raw_fields(KilnPythonClass *class, KilnArena *arena, const json_t *described)
{
    const json_t *list = json_object_get(described, "raw");
    const size_t n = json_array_size(list);
    KilnRawField *fields = kiln_arena_alloc(arena, (n + 1) * sizeof(*fields));

    for (size_t i = 0; fields != NULL && i < n; i++) {
        const json_t *field = json_array_get(list, i);

        fields[i] = (KilnRawField) {
            .name = kiln_arena_strdup(arena, json_string_value(json_object_get(field, "name"))),
            .types = types_of(json_object_get(field, "types")),
            .optional = json_is_true(json_object_get(field, "optional")),
            .help = kiln_arena_strdup(arena, json_string_value(json_object_get(field, "help"))),
            .endings = endings_of(arena, json_object_get(field, "endings")),
        };
    }
    class->raw_fields = fields;
    class->n_raw_fields = fields != NULL ? n : 0;
}

/* ---- Values -------------------------------------------------------------------------------- */

static json_t *put_bytes(KilnPythonHost *host, const void *data, size_t n)
{
    return kiln_python_put(host, KILN_U8, &KILN_SHAPE((int64_t)n), data);
}

static json_t *put_value(KilnPythonHost *host, const KilnRawValue *value)
{
    char number[32];

    switch (value->type) {
    case KILN_RAW_NUMBER: /* as a text: JSON has no infinities */
        snprintf(number, sizeof(number), "%.17g", value->number);
        return json_string(number);
    case KILN_RAW_ARRAY:
        return kiln_python_put(host, value->dtype, &value->shape, value->data);
    case KILN_RAW_BYTES:
        return put_bytes(host, value->data, value->bytes);
    default: /* a path need not be UTF-8 */
        return put_bytes(host, value->text, strlen(value->text));
    }
}

json_t *kiln_python_raw_values(KilnPythonHost *host, const KilnPythonClass *class,
                               const KilnRawValue *values)
{
    json_t *given = json_object();

    for (size_t i = 0; i < class->n_raw_fields; i++)
        if (values[i].type != 0)
            kiln_json_put(&given, class->raw_fields[i].name,
                          json_pack("[s, o]", kiln_raw_type_name(values[i].type),
                                    put_value(host, &values[i])));
    return given;
}

/* Makes options tables of annotations. */
#include "python/python_class.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "registry/instance.h"
#include "registry/registry.h"
#include "schema/table.h"

const KilnField kiln_python_fields[2] = {
    KILN_PYTHON_TIMEOUT_FIELD(KilnPythonOptions),
    KILN_FIELD_END,
};

static const KilnPythonKind *const kinds[KILN_KIND_COUNT] = {
    [KILN_KIND_DATAMODULE] = &kiln_python_datamodule,
    [KILN_KIND_TRANSFORM] = &kiln_python_transform,
    [KILN_KIND_CALLBACK] = &kiln_python_callback,
    [KILN_KIND_METRIC] = &kiln_python_metric,
    [KILN_KIND_LOGGER] = &kiln_python_logger,
};

/* ---- One option -------------------------------------------------------------------------- */

/* How a type is stored: alone, and with the key of a mapping. */
static const struct {
    const char *name;
    KilnType type;
    size_t size, pair, value;
} types[] = {
    { "bool", KILN_TYPE_BOOL, sizeof(bool), sizeof(KilnPairBool), offsetof(KilnPairBool, value) },
    { "i64", KILN_TYPE_I64, sizeof(int64_t), sizeof(KilnPairI64), offsetof(KilnPairI64, value) },
    { "f64", KILN_TYPE_F64, sizeof(double), sizeof(KilnPairF64), offsetof(KilnPairF64, value) },
    { "str", KILN_TYPE_STR, sizeof(char *), sizeof(KilnPairStr), offsetof(KilnPairStr, value) },
    { "path", KILN_TYPE_PATH, sizeof(char *), sizeof(KilnPairStr), offsetof(KilnPairStr, value) },
    { "enum", KILN_TYPE_ENUM, sizeof(int64_t), sizeof(KilnPairI64), offsetof(KilnPairI64, value) },
};

static const char *text_of(KilnArena *arena, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? kiln_arena_strdup(arena, text) : NULL;
}

static void set_choices(KilnArena *arena, const json_t *list, KilnField *field)
{
    const size_t n = json_array_size(list);
    KilnChoice *choices = kiln_arena_alloc(arena, (n + 1) * sizeof(*choices));

    for (size_t i = 0; choices != NULL && i < n; i++)
        choices[i] = (KilnChoice) { .name = kiln_arena_strdup(
                                        arena, json_string_value(json_array_get(list, i))),
                                    .value = (int64_t)i };
    field->choices = choices;
    field->n_choices = n + 1;
}

/* Room for a member of the options struct, aligned for any type; its offset. */
static size_t take_room(size_t *opts_size, size_t size)
{
    const size_t at = (*opts_size + sizeof(max_align_t) - 1) / sizeof(max_align_t) *
                      sizeof(max_align_t);

    *opts_size = at + size;
    return at;
}

static double bound(const json_t *option, const char *key)
{
    const char *text = json_string_value(json_object_get(option, key));

    return text != NULL ? strtod(text, NULL) : 0.0;
}

static void set_field(KilnArena *arena, const json_t *option, size_t *opts_size, KilnField *field)
{
    const char *type = json_string_value(json_object_get(option, "type"));
    const char *shape = json_string_value(json_object_get(option, "shape"));

    *field = (KilnField) {
        .name = text_of(arena, option, "name"),
        .help = text_of(arena, option, "help"),
        .value = text_of(arena, option, "default"),
        .optional = json_is_true(json_object_get(option, "optional")),
        .min = bound(option, "min"),
        .max = bound(option, "max"),
        .shape = strcmp(shape, "list") == 0  ? KILN_LIST
                 : strcmp(shape, "map") == 0 ? KILN_MAPPING
                                             : KILN_ONE,
    };
    for (size_t i = 0; i < KILN_COUNT(types); i++)
        if (strcmp(types[i].name, type) == 0) {
            field->type = types[i].type;
            field->item_size = types[i].size;
            field->pair_size = field->shape == KILN_MAPPING ? types[i].pair : 0;
            field->value_offset = field->shape == KILN_MAPPING ? types[i].value : 0;
        }
    const bool text = field->type == KILN_TYPE_STR || field->type == KILN_TYPE_PATH;
    field->size = field->shape != KILN_ONE || (field->optional && !text) ? sizeof(void *)
                                                                         : field->item_size;
    field->offset = take_room(opts_size, field->size);
    if (field->shape != KILN_ONE)
        field->count_offset = take_room(opts_size, sizeof(size_t));
    if (field->type == KILN_TYPE_ENUM)
        set_choices(arena, json_object_get(option, "choices"), field);
}

/* ---- The table ------------------------------------------------------------------------------ */

/* kiln's own options of the kind, then those of the class. */
static KilnStatus make_table(KilnArena *arena, const KilnPythonKind *kind, const json_t *options,
                             KilnPythonClass *class, KilnError *err)
{
    const size_t own = kiln_table_count(kind->fields), n = json_array_size(options);
    KilnField *fields = kiln_arena_alloc(arena, (own + n + 1) * sizeof(*fields));
    KilnComponent *component = &class->component;

    if (fields == NULL)
        return kiln_error_nomem(err, n * sizeof(*fields));
    component->opts_size = kind->opts_size;
    /* The class's own come first in help: they are what a user looks for. */
    for (size_t i = 0; i < n; i++)
        set_field(arena, json_array_get(options, i), &component->opts_size, &fields[i]);
    memcpy(fields + n, kind->fields, (own + 1) * sizeof(*fields)); /* with KILN_FIELD_END */
    if (arena->failed)
        return kiln_error_nomem(err, n * sizeof(*fields));
    for (size_t i = 0; i < n; i++)
        if (kiln_table_find(kind->fields, fields[i].name) != NULL)
            return kiln_error_set(err, KILN_E_FORMAT,
                                  "%s: its parameter %s has the name of an option that kiln has "
                                  "for every %s: rename it",
                                  class->name, fields[i].name, kiln_kind_name(component->kind));
    component->fields = fields;
    component->n_fields = own + n + 1;
    class->n_own = n;
    KilnStatus status = kiln_table_check(fields, component->n_fields, component->opts_size, err);
    return status < 0 && err != NULL ? kiln_error_prefix(err, "%s: ", class->name) : status;
}

static bool has(const json_t *described, const char *method)
{
    const json_t *list = json_object_get(described, "has");
    bool found = false;

    for (size_t i = 0; i < json_array_size(list); i++)
        found = found || strcmp(json_string_value(json_array_get(list, i)), method) == 0;
    return found;
}

KilnStatus kiln_python_class_new(KilnArena *arena, const KilnPythonEnv *env, const char *name,
                                 const json_t *described, const KilnPythonClass **ret,
                                 KilnError *err)
{
    const char *kind_name = json_string_value(json_object_get(described, "kind"));
    const KilnKind kind = kind_name != NULL ? kiln_kind_find(kind_name, strlen(kind_name))
                                            : KILN_KIND_ANY;
    KilnPythonClass *class = kiln_arena_alloc(arena, sizeof(*class));

    if (class == NULL || kind == KILN_KIND_ANY || kinds[kind] == NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: its description can't be read", name);
    *class = (KilnPythonClass) {
        .component = {
            .kind = kind,
            .name = kiln_arena_strdup(arena, name),
            .summary = text_of(arena, described, "summary"),
            .state_size = kinds[kind]->state_size,
            .init = kinds[kind]->init,
            .release = kinds[kind]->release,
        },
        .env = *env,
        .file = text_of(arena, described, "file"),
        .version = text_of(arena, described, "version"),
        .timeout = kinds[kind]->timeout,
        .has_size = has(described, "size"),
        .has_open = has(described, "open"),
        .has_close = has(described, "close"),
        .has_flush = has(described, "flush"),
        .has_state = has(described, "state_dict") && has(described, "load_state_dict"),
    };
    class->name = class->component.name;
    KilnStatus status = make_table(arena, kinds[kind], json_object_get(described, "options"), class,
                                   err);
    if (status >= 0)
        kinds[kind]->complete(class, arena, described);
    if (status >= 0 && arena->failed)
        status = kiln_error_nomem(err, sizeof(*class));
    if (status >= 0)
        *ret = class;
    return status;
}

const KilnPythonClass *kiln_python_class_of(const KilnInstance *self)
{
    return (const KilnPythonClass *)kiln_instance_component(self);
}

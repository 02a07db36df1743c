/* Builds JSON Schemas from options tables. Out of memory is a NULL that spreads to the whole
 * document (base/json.h). */
#include "schema/json_schema.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/parse.h"
#include "config/override/value.h"
#include "schema/table.h"

#define INTERPOLATION "interpolation"
/* Text that may stand for any value: with ${...} in it, ???, and the empty text that
 * editors make of `key: !delete`. */
#define ANY_VALUE "[$][{]|^[?]{3}$|^$"
#define DURATION                                                                                   \
    "^([0-9]*[.]?[0-9]+(d|h|m|min|s|sec|ms|us))+$|^([0-9]+:){0,2}[0-9]+:[0-9]+([.][0-9]+)?$"

static json_t *reference(const char *name)
{
    return json_pack("{s:s+}", "$ref", "#/definitions/", name);
}

static json_t *kind_reference(KilnJsonSchema *schema, KilnKind kind)
{
    schema->referred[kind] = true;
    return reference(kiln_kind_name(kind));
}

static json_t *type(const char *name)
{
    return json_pack("{s:s}", "type", name);
}

static json_t *pattern(const char *text)
{
    return json_pack("{s:s, s:s}", "type", "string", "pattern", text);
}

/* ---- Values ------------------------------------------------------------------------- */

static json_t *default_json(const KilnField *field)
{
    KilnArena arena = { 0 };
    KilnConfigNode *node = NULL;
    KilnText text = { 0 };
    json_t *value = NULL;

    if (kiln_node_parse(&arena, field->value, "default", &node, NULL) >= 0)
        kiln_value_json(node, &text);
    if (text.length > 0 && !text.failed) {
        value = json_loads(text.data, JSON_DECODE_ANY, NULL);
        if (value == NULL) /* .inf, which JSON does not have */
            value = json_string(field->value);
    }
    kiln_text_release(&text);
    kiln_arena_release(&arena);
    return value;
}

static void put_bound(json_t **value, const char *name, double bound)
{
    bool whole = fabs(bound) <= 9007199254740992.0 && floor(bound) == bound;

    if (!isinf(bound))
        kiln_json_put(value, name, whole ? json_integer((json_int_t)bound) : json_real(bound));
}

static json_t *bounded(const char *name, const KilnField *field)
{
    json_t *value = type(name);

    put_bound(&value, "minimum", field->min);
    put_bound(&value, "maximum", field->max);
    return value;
}

/* Names of choices as YAML reads them: 18 is a number there, and `on` may be a bool. */
static json_t *choices_json(const KilnField *field)
{
    json_t *names = json_array();
    int64_t integer;

    for (const KilnChoice *c = field->choices; c->name != NULL; c++) {
        bool on = strcmp(c->name, "on") == 0 || strcmp(c->name, "yes") == 0;
        bool off = strcmp(c->name, "off") == 0 || strcmp(c->name, "no") == 0;

        if (kiln_parse_i64(c->name, &integer, NULL) >= 0)
            kiln_json_add(&names, json_integer(integer));
        else if (strcmp(c->name, "true") == 0 || strcmp(c->name, "false") == 0)
            kiln_json_add(&names, json_boolean(c->name[0] == 't'));
        else
            kiln_json_add(&names, json_string(c->name));
        if (on || off)
            kiln_json_add(&names, json_boolean(on));
    }
    return json_pack("{s:o}", "enum", names);
}

/* JSON Schema cannot distinguish 1 from 1.0: which is a count and which a fraction is seen when a
 * config is checked. */
static void add_quantity(json_t **any, const KilnField *field)
{
    if ((field->allowed & KILN_ALLOW_COUNT) != 0)
        kiln_json_add(any, json_pack("{s:s, s:i}", "type", "integer", "minimum", 0));
    if ((field->allowed & KILN_ALLOW_FRACTION) != 0)
        kiln_json_add(any,
                      json_pack("{s:s, s:i, s:i}", "type", "number", "minimum", 0, "maximum", 1));
    if ((field->allowed & KILN_ALLOW_DURATION) != 0)
        kiln_json_add(any, pattern(DURATION));
    if ((field->allowed & KILN_ALLOW_BOOL) != 0)
        kiln_json_add(any, type("boolean"));
}

/* 224, or a list of one or two such numbers. */
static void add_image_size(json_t **any, const KilnField *field)
{
    kiln_json_add(any, bounded("integer", field));
    kiln_json_add(any, json_pack("{s:s, s:o, s:i, s:i}", "type", "array", "items",
                                 bounded("integer", field), "minItems", field->optional ? 0 : 1,
                                 "maxItems", 2));
}

/* The JSON type of one value, and a pattern of text that YAML or kiln reads as such. */
static const struct {
    const char *name, *pattern;
} json_types[KILN_TYPE_COUNT] = {
    [KILN_TYPE_BOOL] = { "boolean", "^([Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF)$" }, /* YAML 1.1 */
    [KILN_TYPE_I64] = { "integer", "^[-+]?[0-9]+(_[0-9]+)+$" },
    [KILN_TYPE_F64] = { "number", "^[-+]?[0-9]+(_[0-9]+)+([.][0-9_]*)?$" },
    [KILN_TYPE_DURATION] = { "number", DURATION },
    [KILN_TYPE_SIZE] = { "integer", "^[0-9]*[.]?[0-9]+([KMGT]i?B?|kB|B)$" },
};

static json_t *type_json(KilnJsonSchema *schema, const KilnField *field)
{
    const char *name = json_types[field->type].name;

    if (name != NULL)
        return kiln_type_info(field->type)->bounded ? bounded(name, field) : type(name);
    switch (field->type) {
    case KILN_TYPE_ENUM:
        return choices_json(field);
    case KILN_TYPE_STRUCT:
        return kiln_json_table(schema, field->fields, false, false);
    case KILN_TYPE_COMPONENT:
        return kind_reference(schema, field->component_kind);
    default:
        return json_pack("{s:[s,s,s]}", "type", "string", "number", "boolean");
    }
}

/* {"anyOf": [what it may be..., an interpolation]} */
static json_t *item_json(KilnJsonSchema *schema, const KilnField *field, bool null)
{
    json_t *any = json_array();

    if (field->type == KILN_TYPE_QUANTITY)
        add_quantity(&any, field);
    else if (field->type == KILN_TYPE_IMAGE_SIZE)
        add_image_size(&any, field);
    else
        kiln_json_add(&any, type_json(schema, field));
    if (json_types[field->type].pattern != NULL)
        kiln_json_add(&any, pattern(json_types[field->type].pattern));
    if (null)
        kiln_json_add(&any, type("null"));
    kiln_json_add(&any, reference(INTERPOLATION));
    return json_pack("{s:o}", "anyOf", any);
}

/* A list or mapping of items, or an interpolation. */
static json_t *many_json(KilnJsonSchema *schema, const KilnField *field)
{
    bool map = field->shape == KILN_MAPPING;
    json_t *item = item_json(schema, field, map || field->optional);

    return json_pack(
        "{s:[o, o]}", "anyOf",
        map ? json_pack("{s:[s,s], s:o}", "type", "object", "null", "additionalProperties", item)
            : json_pack("{s:s, s:o}", "type", "array", "items", item),
        reference(INTERPOLATION));
}

json_t *kiln_json_value(KilnJsonSchema *schema, const KilnField *field)
{
    json_t *value = field->shape == KILN_ONE ? item_json(schema, field, field->optional)
                                             : many_json(schema, field);
    bool required = field->value == NULL && field->type != KILN_TYPE_STRUCT;

    kiln_json_put(&value, "description",
                  json_sprintf("%s%s", field->help != NULL ? field->help : "",
                               required ? " (required)" : ""));
    if (field->value != NULL)
        kiln_json_put(&value, "default", default_json(field));
    return value;
}

/* ---- Tables --------------------------------------------------------------------------- */

/* A former name accepts what the present one does. */
static json_t *former_json(KilnJsonSchema *schema, const KilnField *fields, const KilnField *former)
{
    const KilnField *now = kiln_table_find(fields, former->renamed);
    json_t *value = now != NULL ? kiln_json_value(schema, now) : json_object();

    kiln_json_put(&value, "deprecationMessage",
                  json_sprintf("its name is %s now", former->renamed));
    return value;
}

/* The properties of a table. `file`: it is a whole file, which may have a defaults list. */
static json_t *properties_json(KilnJsonSchema *schema, const KilnField *fields, bool file)
{
    json_t *properties = json_object();

    if (file)
        kiln_json_put(&properties, "defaults", reference("defaults"));
    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END; f++)
        kiln_json_put(&properties, f->name,
                      f->renamed != NULL ? former_json(schema, fields, f)
                                         : kiln_json_value(schema, f));
    return properties;
}

json_t *kiln_json_table(KilnJsonSchema *schema, const KilnField *fields, bool file, bool open)
{
    return json_pack("{s:s, s:o, s:b}", "type", "object", "properties",
                     properties_json(schema, fields, file), "additionalProperties", open);
}

/* ---- Components ------------------------------------------------------------------------- */

/* Append the names of a component: model/resnet, resnet. */
static void add_names(json_t **names, const KilnComponent *component)
{
    kiln_json_add(names, json_sprintf("%s/%s", kiln_kind_name(component->kind), component->name));
    kiln_json_add(names, json_string(component->name));
}

/* Components of these kinds may be classes of Python. */
static bool may_be_python(KilnKind kind)
{
    return kind == KILN_KIND_DATAMODULE || kind == KILN_KIND_TRANSFORM ||
           kind == KILN_KIND_CALLBACK || kind == KILN_KIND_METRIC || kind == KILN_KIND_LOGGER;
}

static json_t *names_json(const KilnJsonSchema *schema, KilnKind kind)
{
    json_t *names = json_array();

    for (size_t i = 0; i < schema->count; i++)
        if (schema->components[i]->kind == kind)
            add_names(&names, schema->components[i]);
    if (!may_be_python(kind))
        return json_pack("{s:o}", "enum", names);
    return json_pack("{s:[{s:o}, {s:s, s:s}]}", "anyOf", "enum", names, "type", "string", "pattern",
                     "^([a-z_]+/)?python:");
}

/* Where _target_ names the component: its options and no others. */
static json_t *component_rule(KilnJsonSchema *schema, const KilnComponent *component, bool file)
{
    json_t *properties = properties_json(schema, component->fields, file), *names = json_array();

    add_names(&names, component);
    kiln_json_put(&properties, "_target_", json_true());
    return json_pack("{s:{s:[s], s:{s:{s:o}}}, s:{s:s, s:o, s:b, s:s, s:s}}", "if", "required",
                     "_target_", "properties", "_target_", "enum", names, "then", "type", "object",
                     "properties", properties, "additionalProperties", false, "title",
                     component->name, "description", component->summary);
}

/* One more alternative of what an option may be in any component of the kind. */
static void put_alternative(json_t **properties, const char *name, json_t *value)
{
    json_t *any = json_object_get(json_object_get(*properties, name), "anyOf");

    for (size_t i = 0; i < json_array_size(any); i++)
        if (json_equal(json_array_get(any, i), value))
            return;
    if (any == NULL)
        kiln_json_put(properties, name, json_pack("{s:[O]}", "anyOf", value));
    else if (json_array_append(any, value) != 0)
        kiln_json_put(properties, name, NULL);
}

/* Where _target_ is missing: the options of all components of the kind. */
static json_t *any_rule(KilnJsonSchema *schema, KilnKind kind, bool file)
{
    json_t *properties = properties_json(schema, NULL, file), *value;
    const char *name;

    for (size_t i = 0; i < schema->count; i++) {
        if (schema->components[i]->kind != kind)
            continue;
        json_t *own = properties_json(schema, schema->components[i]->fields, false);
        if (own == NULL)
            kiln_json_put(&properties, "", NULL);
        json_object_foreach(own, name, value)
        {
            put_alternative(&properties, name, value);
        }
        json_decref(own);
    }
    return json_pack("{s:{s:{s:[s]}}, s:{s:o, s:b}}", "if", "not", "required", "_target_", "then",
                     "properties", properties, "additionalProperties", false);
}

json_t *kiln_json_component(KilnJsonSchema *schema, KilnKind kind, bool file)
{
    json_t *rules = json_array();

    kiln_json_add(&rules, any_rule(schema, kind, file));
    for (size_t i = 0; i < schema->count; i++)
        if (schema->components[i]->kind == kind)
            kiln_json_add(&rules, component_rule(schema, schema->components[i], file));
    return json_pack("{s:s, s:{s:{s:s, s:[o, o]}}, s:o}", "type", "object", "properties",
                     "_target_", "description", "the component that this is", "anyOf",
                     names_json(schema, kind), reference(INTERPOLATION), "allOf", rules);
}

json_t *kiln_json_component_map(KilnJsonSchema *schema, KilnKind kind, bool file)
{
    return json_pack("{s:s, s:o, s:{s:[o, {s:s}]}}", "type", "object", "properties",
                     properties_json(schema, NULL, file), "additionalProperties", "anyOf",
                     kind_reference(schema, kind), "type", "null");
}

/* A component by its name alone, or as a mapping. */
static json_t *definition(KilnJsonSchema *schema, KilnKind kind)
{
    return json_pack("{s:[o, o, o]}", "anyOf", names_json(schema, kind),
                     kiln_json_component(schema, kind, false), reference(INTERPOLATION));
}

static json_t *definitions_json(KilnJsonSchema *schema)
{
    json_t *definitions =
        json_pack("{s:{s:s, s:s, s:s}, s:O}", INTERPOLATION, "description",
                  "a reference to another value: ${lr}; or ??? for a required one", "type",
                  "string", "pattern", ANY_VALUE, "defaults", schema->defaults);

    /* One definition may refer to a kind that was passed already. */
    for (bool more = true; more && definitions != NULL;) {
        more = false;
        for (int k = 0; k < KILN_KIND_COUNT; k++) {
            const char *name = kiln_kind_name((KilnKind)k);

            if (!schema->referred[k] || json_object_get(definitions, name) != NULL)
                continue;
            kiln_json_put(&definitions, name, definition(schema, (KilnKind)k));
            more = true;
        }
    }
    return definitions;
}

char *kiln_json_document(KilnJsonSchema *schema, const char *title, json_t *root)
{
    json_t *document = json_pack("{s:s, s:s}", "$schema", "http://json-schema.org/draft-07/schema#",
                                 "title", title);
    char *text = NULL;

    if (root != NULL && document != NULL && json_object_update(document, root) == 0) {
        kiln_json_put(&document, "definitions", definitions_json(schema));
        text = kiln_json_dump(document, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
    }
    json_decref(root);
    json_decref(document);
    return text;
}

/* Builds JSON Schemas from options tables. */
#include "schema/json_schema.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/parse.h"
#include "base/text.h"
#include "config/tree/node.h"

#define INTERPOLATION "interpolation"
/* Text that may stand for any value: with ${...} in it, ???, and the empty text that
 * editors make of `key: !delete`. */
#define PATTERN "[$][{]|^[?]{3}$|^$"

/* Put `value` (stolen) into the object; false when either is NULL or memory is out. */
static bool put(json_t *object, const char *key, json_t *value)
{
    return object != NULL && value != NULL && json_object_set_new(object, key, value) == 0;
}

static bool add(json_t *array, json_t *value)
{
    return array != NULL && value != NULL && json_array_append_new(array, value) == 0;
}

/* The value when `good`, else nothing. */
static json_t *checked(json_t *value, bool good)
{
    if (good)
        return value;
    json_decref(value);
    return NULL;
}

static json_t *reference(const char *name)
{
    return json_pack("{s:s+}", "$ref", "#/definitions/", name);
}

static json_t *kind_reference(KilnJsonSchema *schema, KilnKind kind)
{
    schema->referred[kind] = true;
    return reference(kiln_kind_name(kind));
}

static json_t *number(double value)
{
    bool whole = fabs(value) <= 9007199254740992.0 && floor(value) == value;

    return whole ? json_integer((json_int_t)value) : json_real(value);
}

/* ---- Defaults ----------------------------------------------------------------------- */

static json_t *node_json(const KilnConfigNode *node);

static json_t *scalar_json(const KilnConfigNode *node)
{
    int64_t integer;
    double real;

    switch (node->scalar) {
    case KILN_SCALAR_NULL:
        return json_null();
    case KILN_SCALAR_BOOL:
        return json_boolean(strcmp(node->text, "true") == 0);
    case KILN_SCALAR_INT:
        if (kiln_parse_i64(node->text, &integer, NULL) >= 0)
            return json_integer(integer);
        return json_string(node->text);
    case KILN_SCALAR_FLOAT:
        if (kiln_parse_f64(node->text, &real, NULL) >= 0 && isfinite(real))
            return json_real(real);
        return json_string(node->text);
    default:
        return json_string(node->text);
    }
}

static json_t *children_json(const KilnConfigNode *node)
{
    bool map = node->kind == KILN_NODE_MAP, good = true;
    json_t *all = map ? json_object() : json_array();

    for (size_t i = 0; i < node->count && good; i++) {
        json_t *child = node_json(node->entries[i].value);

        good = map ? put(all, node->entries[i].key, child) : add(all, child);
    }
    return checked(all, good);
}

static json_t *node_json(const KilnConfigNode *node)
{
    return node->kind == KILN_NODE_SCALAR ? scalar_json(node) : children_json(node);
}

static json_t *default_json(const KilnField *field)
{
    KilnArena arena = { 0 };
    KilnConfigNode *node = NULL;
    json_t *value = NULL;

    if (kiln_node_parse(&arena, field->value, "default", &node, NULL) >= 0)
        value = node_json(node);
    kiln_arena_release(&arena);
    return value;
}

/* ---- Values ------------------------------------------------------------------------- */

/* Words of YAML 1.1 that other readers take for text. */
static json_t *pattern(const char *text)
{
    return json_pack("{s:s, s:s}", "type", "string", "pattern", text);
}

static json_t *bounded(const char *type, const KilnField *field)
{
    json_t *value = json_pack("{s:s}", "type", type);
    bool good = value != NULL;

    if (good && !isinf(field->min))
        good = put(value, "minimum", number(field->min));
    if (good && !isinf(field->max))
        good = put(value, "maximum", number(field->max));
    return checked(value, good);
}

/* Names of choices as YAML reads them: 18 is a number there, and `on` may be a bool. */
static json_t *choices_json(const KilnField *field)
{
    json_t *names = json_array();
    bool good = names != NULL;
    int64_t integer;

    for (const KilnChoice *c = field->choices; c->name != NULL && good; c++) {
        bool on = strcmp(c->name, "on") == 0 || strcmp(c->name, "yes") == 0;
        bool off = strcmp(c->name, "off") == 0 || strcmp(c->name, "no") == 0;

        if (kiln_parse_i64(c->name, &integer, NULL) >= 0)
            good = add(names, json_integer(integer));
        else if (strcmp(c->name, "true") == 0 || strcmp(c->name, "false") == 0)
            good = add(names, json_boolean(c->name[0] == 't'));
        else
            good = add(names, json_string(c->name)) &&
                   (!(on || off) || add(names, json_boolean(on)));
    }
    return checked(json_pack("{s:o*}", "enum", names), good);
}

#define DURATION                                                                                   \
    "^([0-9]*[.]?[0-9]+(d|h|m|min|s|sec|ms|us))+$|^([0-9]+:){0,2}[0-9]+:[0-9]+([.][0-9]+)?$"

/* Numbers cannot tell 1 from 1.0 here: a count and a share are told apart when a config is
 * checked. */
static bool add_quantity(json_t *any, const KilnField *field)
{
    bool good = true;

    if ((field->allowed & KILN_ALLOW_COUNT) != 0)
        good = add(any, json_pack("{s:s, s:i}", "type", "integer", "minimum", 0));
    if (good && (field->allowed & KILN_ALLOW_FRACTION) != 0)
        good = add(any, json_pack("{s:s, s:i, s:i}", "type", "number", "minimum", 0, "maximum", 1));
    if (good && (field->allowed & KILN_ALLOW_DURATION) != 0)
        good = add(any, pattern(DURATION));
    if (good && (field->allowed & KILN_ALLOW_BOOL) != 0)
        good = add(any, json_pack("{s:s}", "type", "boolean"));
    return good;
}

/* Append what one value may be to `any`. */
static bool add_type(KilnJsonSchema *schema, json_t *any, const KilnField *field)
{
    switch (field->type) {
    case KILN_TYPE_BOOL:
        return add(any, json_pack("{s:s}", "type", "boolean")) &&
               add(any, pattern("^([Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF)$"));
    case KILN_TYPE_I64:
        return add(any, bounded("integer", field)) && add(any, pattern("^[-+]?[0-9]+(_[0-9]+)+$"));
    case KILN_TYPE_F64:
        return add(any, bounded("number", field)) &&
               add(any, pattern("^[-+]?[0-9]+(_[0-9]+)+([.][0-9_]*)?$"));
    case KILN_TYPE_DURATION:
        return add(any, bounded("number", field)) && add(any, pattern(DURATION));
    case KILN_TYPE_SIZE:
        return add(any, bounded("integer", field)) &&
               add(any, pattern("^[0-9]*[.]?[0-9]+([KMGT]i?B?|kB|B)$"));
    case KILN_TYPE_QUANTITY:
        return add_quantity(any, field);
    case KILN_TYPE_ENUM:
        return add(any, choices_json(field));
    case KILN_TYPE_STRUCT:
        return add(any, kiln_json_table(schema, field->fields, false, false));
    case KILN_TYPE_COMPONENT:
        return add(any, kind_reference(schema, field->component_kind));
    default:
        return add(any, json_pack("{s:[s,s,s]}", "type", "string", "number", "boolean"));
    }
}

/* {"anyOf": [what it may be..., an interpolation]} */
static json_t *item_json(KilnJsonSchema *schema, const KilnField *field, bool null)
{
    json_t *any = json_array();
    bool good = add_type(schema, any, field);

    if (good && null)
        good = add(any, json_pack("{s:s}", "type", "null"));
    good = good && add(any, reference(INTERPOLATION));
    return checked(json_pack("{s:o*}", "anyOf", any), good);
}

/* A list or mapping of items, or an interpolation. */
static json_t *many_json(KilnJsonSchema *schema, const KilnField *field)
{
    bool map = field->shape == KILN_MAP;
    json_t *item = item_json(schema, field, map || field->optional);
    json_t *all = map ? json_pack("{s:[s,s], s:o}", "type", "object", "null",
                                  "additionalProperties", item)
                      : json_pack("{s:s, s:o}", "type", "array", "items", item);

    return all == NULL ? NULL : json_pack("{s:[o, o]}", "anyOf", all, reference(INTERPOLATION));
}

json_t *kiln_json_value(KilnJsonSchema *schema, const KilnField *field)
{
    json_t *value = field->shape == KILN_ONE ? item_json(schema, field, field->optional)
                                             : many_json(schema, field);
    bool needed = field->value == NULL && field->type != KILN_TYPE_STRUCT;
    bool good = put(
        value, "description",
        json_sprintf("%s%s", field->help != NULL ? field->help : "", needed ? " (required)" : ""));

    if (good && field->value != NULL)
        good = put(value, "default", default_json(field));
    return checked(value, good);
}

/* ---- Tables --------------------------------------------------------------------------- */

static const KilnField *field_named(const KilnField *fields, const char *name)
{
    for (; fields->type != KILN_TYPE_END; fields++)
        if (strcmp(fields->name, name) == 0)
            return fields;
    return NULL;
}

/* A former name takes what the present one takes. */
static json_t *former_json(KilnJsonSchema *schema, const KilnField *fields, const KilnField *former)
{
    const KilnField *now = field_named(fields, former->renamed);
    json_t *value = now != NULL ? kiln_json_value(schema, now) : json_object();

    return checked(value, put(value, "deprecationMessage",
                              json_sprintf("its name is %s now", former->renamed)));
}

static bool put_fields(KilnJsonSchema *schema, json_t *properties, const KilnField *fields)
{
    bool good = properties != NULL;

    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END && good; f++)
        good = put(properties, f->name,
                   f->renamed != NULL ? former_json(schema, fields, f)
                                      : kiln_json_value(schema, f));
    return good;
}

json_t *kiln_json_table(KilnJsonSchema *schema, const KilnField *fields, bool file, bool open)
{
    json_t *properties = json_object();
    bool good = !file || put(properties, "defaults", reference("defaults"));

    good = good && put_fields(schema, properties, fields);
    return checked(json_pack("{s:s, s:o*, s:b}", "type", "object", "properties", properties,
                             "additionalProperties", open),
                   good);
}

/* ---- Components ------------------------------------------------------------------------- */

/* The names by which a kind's components can be meant: resnet, model/resnet. */
static bool add_names(json_t *names, const KilnComponent *component)
{
    return add(names, json_sprintf("%s/%s", kiln_kind_name(component->kind), component->name)) &&
           add(names, json_string(component->name));
}

static json_t *names_json(const KilnJsonSchema *schema, KilnKind kind)
{
    json_t *names = json_array();
    bool good = names != NULL;

    for (size_t i = 0; i < schema->count && good; i++)
        if (schema->components[i]->kind == kind)
            good = add_names(names, schema->components[i]);
    return checked(json_pack("{s:o*}", "enum", names), good);
}

static json_t *target_json(const KilnJsonSchema *schema, KilnKind kind)
{
    return json_pack("{s:s, s:[o, o]}", "description", "the component that this is", "anyOf",
                     names_json(schema, kind), reference(INTERPOLATION));
}

/* Where _target_ names the component: its options and no others. */
static json_t *component_rule(KilnJsonSchema *schema, const KilnComponent *component, bool file)
{
    json_t *then = kiln_json_table(schema, component->fields, file, false);
    json_t *names = json_array();
    bool good = add_names(names, component);

    good = good && put(json_object_get(then, "properties"), "_target_", json_true());
    good = good && put(then, "title", json_string(component->name)) &&
           put(then, "description", json_string(component->summary));
    if (!good) {
        json_decref(names);
        json_decref(then);
        return NULL;
    }
    return json_pack("{s:{s:[s], s:{s:{s:o}}}, s:o}", "if", "required", "_target_", "properties",
                     "_target_", "enum", names, "then", then);
}

/* What an option may be in any component of the kind: one more alternative. */
static bool put_alternative(json_t *properties, const char *name, json_t *value)
{
    json_t *there = json_object_get(properties, name);
    json_t *any = there != NULL ? json_object_get(there, "anyOf") : NULL;

    if (value == NULL)
        return false;
    if (there == NULL)
        return put(properties, name, json_pack("{s:[o]}", "anyOf", value));
    for (size_t i = 0; i < json_array_size(any); i++)
        if (json_equal(json_array_get(any, i), value)) {
            json_decref(value);
            return true;
        }
    return add(any, value);
}

/* Where _target_ is not there: the options of all components of the kind. */
static json_t *any_rule(KilnJsonSchema *schema, KilnKind kind, bool file)
{
    json_t *properties = json_object();
    bool good = !file || put(properties, "defaults", reference("defaults"));

    for (size_t i = 0; i < schema->count && good; i++) {
        const KilnComponent *c = schema->components[i];
        json_t *own = json_object();

        if (c->kind != kind) {
            json_decref(own);
            continue;
        }
        good = put_fields(schema, own, c->fields);
        for (void *at = json_object_iter(own); at != NULL && good;
             at = json_object_iter_next(own, at))
            good = put_alternative(properties, json_object_iter_key(at),
                                   json_incref(json_object_iter_value(at)));
        json_decref(own);
    }
    if (!good) {
        json_decref(properties);
        return NULL;
    }
    return json_pack("{s:{s:{s:[s]}}, s:{s:o, s:b}}", "if", "not", "required", "_target_", "then",
                     "properties", properties, "additionalProperties", false);
}

json_t *kiln_json_component(KilnJsonSchema *schema, KilnKind kind, bool file)
{
    json_t *rules = json_array();
    bool good = add(rules, any_rule(schema, kind, file));

    for (size_t i = 0; i < schema->count && good; i++)
        if (schema->components[i]->kind == kind)
            good = add(rules, component_rule(schema, schema->components[i], file));
    if (!good) {
        json_decref(rules);
        return NULL;
    }
    return json_pack("{s:s, s:{s:o}, s:o}", "type", "object", "properties", "_target_",
                     target_json(schema, kind), "allOf", rules);
}

json_t *kiln_json_component_map(KilnJsonSchema *schema, KilnKind kind, bool file)
{
    json_t *all = json_pack("{s:s, s:{s:[o, {s:s}]}}", "type", "object", "additionalProperties",
                            "anyOf", kind_reference(schema, kind), "type", "null");

    return checked(all, !file || put(all, "properties",
                                     json_pack("{s:o}", "defaults", reference("defaults"))));
}

/* A component by its name alone, or as a mapping. */
static json_t *definition(KilnJsonSchema *schema, KilnKind kind)
{
    return json_pack("{s:[o, o, o]}", "anyOf", names_json(schema, kind),
                     kiln_json_component(schema, kind, false), reference(INTERPOLATION));
}

static bool put_definitions(KilnJsonSchema *schema, json_t *definitions)
{
    bool good = put(definitions, INTERPOLATION,
                    json_pack("{s:s, s:s, s:s}", "description",
                              "a reference to another value: ${lr}; or ??? for one to be given",
                              "type", "string", "pattern", PATTERN));

    good = good && put(definitions, "defaults", json_incref(schema->defaults));
    /* One definition may ask for a kind that has been passed already. */
    for (bool more = true; more && good;) {
        more = false;
        for (int k = 0; k < KILN_KIND_COUNT && good; k++) {
            const char *name = kiln_kind_name((KilnKind)k);

            if (!schema->referred[k] || json_object_get(definitions, name) != NULL)
                continue;
            good = put(definitions, name, definition(schema, (KilnKind)k));
            more = true;
        }
    }
    return good;
}

char *kiln_json_document(KilnJsonSchema *schema, const char *title, json_t *root)
{
    json_t *definitions = json_object();
    json_t *document = json_pack("{s:s, s:s}", "$schema", "http://json-schema.org/draft-07/schema#",
                                 "title", title);
    bool good = root != NULL && put_definitions(schema, definitions);
    char *text = NULL;

    good = good && document != NULL && json_object_update(document, root) == 0 &&
           json_object_set(document, "definitions", definitions) == 0;
    if (good)
        text = kiln_json_dump(document, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
    json_decref(root);
    json_decref(definitions);
    json_decref(document);
    return text;
}

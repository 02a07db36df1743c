/* Puts the defaults of options tables below the values of the tree. */
#include "registry/option_defaults.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/compose.h"
#include "config/provenance/error_list.h"
#include "config/provenance/error_origin.h"
#include "config/tree/tree.h"
#include "kiln/array.h"
#include "registry/registry.h"
#include "registry/rename.h"
#include "schema/bind.h"
#include "schema/table.h"

typedef struct Walk {
    KilnOptionDefaults *defaults;
    KilnConfig *config;
    KilnErrors *errors; /* warnings, and errors after which the walk continues */
    KilnStatus status;  /* of the first of those errors */
    KilnError err;      /* the error that ended the walk */
} Walk;

/* ---- Which mapping has which defaults layer ----------------------------------- */

static KilnDefaultsLayer *find_layer(const KilnOptionDefaults *defaults, const KilnConfigNode *map,
                                     bool section)
{
    for (size_t i = 0; i < defaults->count; i++)
        if (defaults->layers[i].map == map && defaults->layers[i].section == section)
            return &defaults->layers[i];
    return NULL;
}

/* The mapping's layer, perhaps a new one; NULL when memory is out. */
static KilnDefaultsLayer *open_layer(Walk *walk, const KilnConfigNode *map, bool section)
{
    KilnOptionDefaults *defaults = walk->defaults;
    KilnDefaultsLayer *layer = find_layer(defaults, map, section);

    if (layer != NULL)
        return layer;
    if (!KILN_RESERVE(defaults->layers, defaults->capacity, defaults->count + 1)) {
        kiln_error_nomem(&walk->err, sizeof(*layer));
        return NULL;
    }
    defaults->layers[defaults->count] = (KilnDefaultsLayer) { .map = map, .section = section };
    return &defaults->layers[defaults->count++];
}

/* ---- Default nodes --------------------------------------------------------------- */

static KilnConfigNode *default_node(Walk *walk, const KilnField *field, const char *source)
{
    KilnArena *arena = kiln_config_arena(walk->config);
    const char *text = field->value != NULL ? field->value : "???";
    KilnConfigNode *node = NULL;

    if (kiln_node_parse(arena, text, source, &node, &walk->err) < 0) {
        kiln_error_prefix(&walk->err, "%s, option %s: ", source, field->name);
        return NULL;
    }
    return node;
}

static const char *target_text(const KilnConfigNode *node)
{
    const KilnConfigNode *target = kiln_node_get(node, KILN_TARGET_KEY);

    return target != NULL && target->kind == KILN_NODE_SCALAR ? target->text : NULL;
}

/* The options of a default component do not apply to another component. */
static bool other_component(const KilnConfigNode *have, const KilnConfigNode *value)
{
    const char *a = target_text(have), *b = target_text(value);

    return a != NULL && b != NULL && strcmp(a, b) != 0;
}

static void underlay(Walk *walk, KilnConfigNode *map, const char *key, KilnConfigNode *value)
{
    (void)!kiln_node_add_default(walk->config, map, key, value->origin, value, &walk->err);
}

static void underlay_field(Walk *walk, KilnConfigNode *map, const KilnField *field,
                           const char *source);

/* The defaults of a table. Without `all` only those of missing options and nested structs. */
static void underlay_table(Walk *walk, KilnConfigNode *map, const KilnField *fields,
                           const char *source, bool all)
{
    for (size_t i = 0; i < kiln_table_count(fields) && walk->err.status == KILN_OK; i++)
        if (fields[i].renamed == NULL && (all || fields[i].type == KILN_TYPE_STRUCT ||
                                          kiln_node_get(map, fields[i].name) == NULL))
            underlay_field(walk, map, &fields[i], source);
}

static void underlay_field(Walk *walk, KilnConfigNode *map, const KilnField *field,
                           const char *source)
{
    KilnConfigNode *value = default_node(walk, field, source);
    KilnConfigNode *have = kiln_node_get(map, field->name);

    if (value == NULL)
        return;
    if (field->type == KILN_TYPE_COMPONENT && have != NULL && field->shape == KILN_MAPPING &&
        value->kind == KILN_NODE_MAP && have->kind == KILN_NODE_MAP) {
        for (size_t i = 0; i < value->count && walk->err.status == KILN_OK; i++) {
            const KilnConfigNode *there = kiln_node_get(have, value->entries[i].key);

            if (there == NULL || !other_component(there, value->entries[i].value))
                underlay(walk, have, value->entries[i].key, value->entries[i].value);
        }
    } else if (have == NULL || !other_component(have, value)) {
        underlay(walk, map, field->name, value);
    }
    have = kiln_node_get(map, field->name);
    if (field->type == KILN_TYPE_STRUCT && field->shape == KILN_ONE && have != NULL &&
        have->kind == KILN_NODE_MAP)
        underlay_table(walk, have, field->fields, source, true);
}

/* ---- Removing defaults ------------------------------------------------------------ */

static bool only_defaults(const KilnConfigNode *node)
{
    if (node->layer != KILN_LAYER_DEFAULT)
        return false;
    for (size_t i = 0; i < node->count; i++)
        if (!only_defaults(node->entries[i].value))
            return false;
    return true;
}

static bool is_from(const KilnConfigNode *node, const char *source)
{
    return node->layer == KILN_LAYER_DEFAULT && node->origin.source != NULL &&
           strcmp(node->origin.source, source) == 0;
}

/* The component changed: remove the defaults of the former one's table, except where something was
 * written into them. */
static void remove_defaults(KilnConfigNode *map, const char *source)
{
    for (size_t i = map->count; i-- > 0;) {
        KilnConfigNode *node = map->entries[i].value;

        if (is_from(node, source) && only_defaults(node)) {
            kiln_node_remove(map, &map->entries[i]);
            continue;
        }
        if (node->kind == KILN_NODE_MAP) /* a nested struct, partly written */
            remove_defaults(node, source);
        for (; node->replaced != NULL; node = node->replaced)
            if (is_from(node->replaced, source)) {
                node->replaced = NULL;
                break;
            }
    }
}

/* ---- Tables ------------------------------------------------------------------------- */

/* The table of `map`: its own, or that of the struct that it is in. */
static const KilnField *table_of(const KilnOptionDefaults *defaults, const KilnConfigNode *map)
{
    const KilnDefaultsLayer *layer = find_layer(defaults, map, false);
    const KilnConfigNode *parent = map->parent;

    if (layer == NULL)
        layer = find_layer(defaults, map, true);
    if (layer != NULL || parent == NULL)
        return layer != NULL ? layer->fields : NULL;
    bool item = parent->kind == KILN_NODE_LIST;
    const KilnField *around = table_of(defaults, parent);
    for (size_t i = 0; around != NULL && i < parent->count; i++) {
        const KilnField *field = parent->entries[i].value == map && !item
                                     ? kiln_table_find(around, parent->entries[i].key)
                                     : NULL;

        if (field != NULL)
            return field->type == KILN_TYPE_STRUCT && field->shape == KILN_ONE ? field->fields
                                                                               : NULL;
    }
    return NULL;
}

const KilnField *kiln_option_defaults_renamed(const KilnOptionDefaults *defaults,
                                              const KilnConfigNode *map, const char *key)
{
    const KilnField *fields = table_of(defaults, map);

    return fields != NULL ? kiln_table_renamed(fields, key) : NULL;
}

/* ---- Walking ------------------------------------------------------------------------ */

static bool apply_table(Walk *walk, KilnConfigNode *map, bool section, const void *owner,
                        const char *source, const KilnField *fields)
{
    KilnDefaultsLayer *layer = open_layer(walk, map, section);

    if (layer == NULL)
        return false;
    bool fresh = layer->source == NULL || layer->owner != owner;
    if (fresh && layer->source != NULL)
        remove_defaults(map, layer->source);
    *layer = (KilnDefaultsLayer) { map, section, owner, source, fields, walk->defaults->pass };
    if (!kiln_rename_options(walk->config, map, fields, walk->errors))
        walk->status = KILN_E_KEY;
    /* An option that an override deleted falls back to its default. */
    underlay_table(walk, map, fields, source, fresh);
    return walk->err.status == KILN_OK;
}

static void remember_unknown(Walk *walk, const KilnConfigNode *map, KilnError *err)
{
    KilnDefaultsLayer *layer = open_layer(walk, map, false);

    if (layer != NULL)
        layer->pass = walk->defaults->pass; /* once in a pass */
    if (walk->defaults->unknown == NULL && kiln_errors_new(&walk->defaults->unknown) < 0)
        return;
    kiln_error_placed(err, kiln_node_path(walk->config, map));
    kiln_errors_add(walk->defaults->unknown, err);
}

static void walk_fields(Walk *walk, KilnConfigNode *map, const KilnField *fields, int depth);

static void apply_component(Walk *walk, KilnConfigNode *map, KilnKind kind, int depth)
{
    const KilnComponent *component;
    KilnError err = { 0 };

    if (depth > KILN_MAX_NESTING) {
        kiln_error_set(&walk->err, KILN_E_RANGE, "%s: components within components, more than %d",
                       kiln_node_path(walk->config, map), KILN_MAX_NESTING);
        return;
    }
    if (kiln_node_component(walk->config, walk->defaults->registry, map, kind, &component, &err) <
        0) {
        remember_unknown(walk, map, &err);
        return;
    }
    const char *source = kiln_arena_printf(kiln_config_arena(walk->config), "default of %s/%s",
                                           kiln_kind_name(component->kind), component->name);
    if (source == NULL)
        kiln_error_nomem(&walk->err, 64);
    else if (apply_table(walk, map, false, component, source, component->fields))
        walk_fields(walk, map, component->fields, depth + 1);
}

/* `loss: focal` means `loss: {_target_: focal}`. */
static KilnConfigNode *named_mapping(Walk *walk, const KilnConfigNode *name)
{
    KilnMaker maker = { kiln_config_arena(walk->config), name->origin, name->layer };
    KilnConfigNode *map = kiln_node_new(&maker, KILN_NODE_MAP);
    KilnConfigNode *target = kiln_node_scalar(&maker, KILN_SCALAR_STR, name->text);

    if (map == NULL ||
        kiln_node_append(maker.arena, map, KILN_TARGET_KEY, name->origin, target) == NULL) {
        kiln_error_nomem(&walk->err, sizeof(*map));
        return NULL;
    }
    map->replaced = name->replaced;
    map->parent = name->parent;
    map->at = name->at;
    return map;
}

static void walk_component(Walk *walk, KilnEntry *entry, KilnKind kind, int depth)
{
    const KilnConfigNode *node = entry->value;

    if (node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_STR) {
        KilnConfigNode *map = named_mapping(walk, node);

        if (map == NULL)
            return;
        entry->value = map;
    }
    if (entry->value->kind == KILN_NODE_MAP)
        apply_component(walk, entry->value, kind, depth);
}

/* One value of a field that holds components, or structs that may. */
static void walk_value(Walk *walk, const KilnField *field, KilnEntry *entry, int depth)
{
    if (field->type == KILN_TYPE_COMPONENT)
        walk_component(walk, entry, field->component_kind, depth);
    else if (entry->value->kind == KILN_NODE_MAP)
        walk_fields(walk, entry->value, field->fields, depth);
}

static void walk_fields(Walk *walk, KilnConfigNode *map, const KilnField *fields, int depth)
{
    for (size_t i = 0; i < kiln_table_count(fields) && walk->err.status == KILN_OK; i++) {
        const KilnField *field = &fields[i];
        KilnEntry *entry = kiln_node_entry(map, field->name);

        if ((field->type != KILN_TYPE_COMPONENT && field->type != KILN_TYPE_STRUCT) ||
            field->renamed != NULL || entry == NULL)
            continue;
        KilnConfigNode *node = entry->value;
        if (field->shape == KILN_ONE)
            walk_value(walk, field, entry, depth);
        else if (!kiln_list_own(kiln_config_arena(walk->config), node))
            kiln_error_nomem(&walk->err, sizeof(*node));
        else if (node->kind == (field->shape == KILN_LIST ? KILN_NODE_LIST : KILN_NODE_MAP))
            for (size_t j = 0; j < node->count && walk->err.status == KILN_OK; j++)
                walk_value(walk, field, &node->entries[j], depth);
    }
}

/* Components that no table leads to: groups that are only referred to. */
static void walk_rest(Walk *walk, KilnConfigNode *node)
{
    if (kiln_node_get(node, KILN_TARGET_KEY) != NULL) {
        const KilnDefaultsLayer *layer = find_layer(walk->defaults, node, false);

        if (layer == NULL || layer->pass != walk->defaults->pass)
            apply_component(walk, node, KILN_KIND_ANY, 0);
    }
    for (size_t i = 0; i < node->count && walk->err.status == KILN_OK; i++)
        walk_rest(walk, node->entries[i].value);
}

/* The section's mapping, made if missing; NULL when the key has another value. */
static KilnConfigNode *section_map(Walk *walk, const KilnSection *section, const char *source)
{
    KilnMaker maker = { kiln_config_arena(walk->config), { .source = source }, KILN_LAYER_DEFAULT };
    KilnConfigNode *node = kiln_config_root(walk->config);
    const char *rest = section->key;
    char part[KILN_PATH_PART];

    while (kiln_path_next(&rest, part)) {
        KilnConfigNode *child = kiln_node_get(node, part);

        if (child == NULL) {
            child = kiln_node_new(&maker, KILN_NODE_MAP);
            if (child == NULL)
                kiln_error_nomem(&walk->err, sizeof(*child));
            else
                underlay(walk, node, part, child);
        }
        if (child == NULL || child->kind != KILN_NODE_MAP || walk->err.status < 0)
            return NULL;
        node = child;
    }
    return node;
}

static void walk_section(Walk *walk, const KilnSection *section)
{
    const char *name = section->key[0] != '\0' ? section->key : "kiln";
    const char *source = kiln_arena_printf(kiln_config_arena(walk->config), "default of %s", name);

    if (source == NULL) {
        kiln_error_nomem(&walk->err, 64);
        return;
    }
    KilnConfigNode *map = section_map(walk, section, source);
    if (map != NULL && apply_table(walk, map, true, section, source, section->fields) &&
        walk->defaults->registry != NULL)
        walk_fields(walk, map, section->fields, 0);
}

bool kiln_option_defaults_is_about(const KilnConfig *config)
{
    const KilnSection *root = kiln_section_find(kiln_config_sections(config), "");

    for (const KilnField *f = root != NULL ? root->fields : NULL;
         f != NULL && f->type != KILN_TYPE_END; f++)
        if (f->type == KILN_TYPE_COMPONENT && f->value == NULL &&
            kiln_node_get(kiln_config_root(config), f->name) != NULL)
            return true;
    return root == NULL;
}

KilnStatus kiln_option_defaults_apply(KilnOptionDefaults *defaults, KilnConfig *config,
                                      KilnErrors *errors)
{
    const KilnSection *sections = kiln_config_sections(config);
    Walk walk = { .defaults = defaults, .config = config, .errors = errors };
    bool all = kiln_option_defaults_is_about(config);

    kiln_errors_free(defaults->unknown);
    defaults->unknown = NULL;
    defaults->pass++;
    for (const KilnSection *s = sections; s != NULL && s->key != NULL; s++)
        if (walk.err.status == KILN_OK && (all || s->hidden))
            walk_section(&walk, s);
    if (defaults->registry != NULL && walk.err.status == KILN_OK)
        walk_rest(&walk, kiln_config_root(config));
    return walk.err.status < 0 ? kiln_errors_add(errors, &walk.err) : walk.status;
}

void kiln_option_defaults_release(KilnOptionDefaults *defaults)
{
    kiln_errors_free(defaults->unknown);
    free(defaults->layers);
    *defaults = (KilnOptionDefaults) { 0 };
}

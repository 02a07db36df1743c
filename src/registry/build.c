/* Builds components from checked nodes: children first, then options, then init. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "registry/instance.h"
#include "registry/registry.h"
#include "schema/bind.h"
#include "schema/table.h"
#include "schema/field_value.h"

/* Interpolation can name the same node in many places, each of which gets an
 * instance of its own: this bounds what a small file can ask for. */
enum { MOST_INSTANCES = 10000 };

typedef struct Builder {
    const KilnConfig *config;
    const KilnRegistry *registry;
    size_t built;
    int depth;
} Builder;

static KilnStatus build(Builder *builder, const KilnConfigNode *node, const char *path,
                        KilnKind kind, KilnInstance **ret, KilnError *err);

/* ---- Children --------------------------------------------------------------------- */

static bool is_null(const KilnConfigNode *node)
{
    return node == NULL || (node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_NULL);
}

/* An option's node, resolved; absent ones are their default's. NULL for none. */
static KilnStatus field_node(const Builder *builder, const char *path, const KilnConfigNode *map,
                             const KilnField *field, const KilnConfigNode **ret, KilnError *err)
{
    const KilnConfigNode *written = kiln_node_get(map, field->name);
    KilnConfigNode *parsed = NULL;

    *ret = NULL;
    if (written == NULL && field->value != NULL) {
        KilnStatus status = kiln_node_parse(kiln_config_arena(builder->config), field->value,
                                            "default", &parsed, err);
        if (status < 0)
            return status;
        written = parsed;
    }
    if (written == NULL)
        return kiln_error_set(err, KILN_E_MISSING, "%s.%s: required value missing (%s)", path,
                              field->name, field->help);
    return kiln_config_resolve(builder->config, written, ret, err);
}

static bool has_shape(const KilnField *field, const KilnConfigNode *node)
{
    return field->shape == KILN_ONE ||
           node->kind == (field->shape == KILN_LIST ? KILN_NODE_LIST : KILN_NODE_MAP);
}

/* "PARENT.NAME", "PARENT.NAME[I]" or "PARENT.NAME.KEY"; owned by the caller. */
static char *child_path(const char *parent, const char *name, const KilnEntry *entry, size_t i)
{
    KilnText text = { 0 };

    kiln_text_printf(&text, "%s%s%s", parent, parent[0] != '\0' ? "." : "", name);
    if (entry != NULL && entry->key != NULL)
        kiln_text_printf(&text, ".%s", entry->key);
    else if (entry != NULL)
        kiln_text_printf(&text, "[%zu]", i);
    return kiln_text_take(&text);
}

/* An option of components: in the options struct itself or in one nested in it. */
typedef struct Place {
    const KilnField *field;
    const KilnConfigNode *node; /* resolved; NULL: none */
    char *base;                 /* the struct that has the member */
    const char *path;           /* of the struct; in the config's arena, or borrowed */
} Place;

typedef struct Places {
    Place *items;
    size_t count, capacity;
    size_t most; /* upper bound of the children in all of them */
} Places;

static KilnStatus add_place(Places *places, Place place, KilnError *err)
{
    if (places->count == places->capacity) {
        size_t capacity = places->capacity * 2 + 8;
        Place *items = realloc(places->items, capacity * sizeof(*items));

        if (items == NULL)
            return kiln_error_nomem(err, capacity * sizeof(*items));
        places->items = items;
        places->capacity = capacity;
    }
    places->items[places->count++] = place;
    if (!is_null(place.node))
        places->most += place.field->shape == KILN_ONE ? 1 : place.node->count;
    return KILN_OK;
}

static KilnStatus find_places(Builder *builder, const KilnField *fields, char *base,
                              const KilnConfigNode *map, const char *path, Places *places,
                              KilnError *err);

/* The places in one nested struct, or in each of a list or mapping of them. */
static KilnStatus find_nested(Builder *builder, const KilnField *field, char *base,
                              const KilnConfigNode *node, const char *path, Places *places,
                              KilnError *err)
{
    bool map = field->shape == KILN_MAP;
    size_t stride = map ? field->pair_size : field->item_size;
    KilnArena *arena = kiln_config_arena(builder->config);
    char *value = base + field->offset;
    KilnStatus status = KILN_OK;

    if (field->shape != KILN_ONE || field->optional)
        memcpy(&value, base + field->offset, sizeof(value));
    if (value == NULL || is_null(node))
        return KILN_OK;
    path = kiln_arena_printf(arena, "%s.%s", path, field->name);
    if (path == NULL)
        return kiln_error_nomem(err, 1);
    if (field->shape == KILN_ONE)
        return find_places(builder, field->fields, value, node, path, places, err);
    for (size_t i = 0; i < node->count && status == KILN_OK; i++) {
        const KilnEntry *entry = &node->entries[i];
        const KilnConfigNode *item = NULL;
        const char *where = map ? kiln_arena_printf(arena, "%s.%s", path, entry->key)
                                : kiln_arena_printf(arena, "%s[%zu]", path, i);

        status = kiln_config_resolve(builder->config, entry->value, &item, err);
        if (status == KILN_OK && where == NULL)
            status = kiln_error_nomem(err, 1);
        if (status == KILN_OK)
            status = find_places(builder, field->fields,
                                 value + i * stride + (map ? field->value_offset : 0), item, where,
                                 places, err);
    }
    return status;
}

static KilnStatus find_places(Builder *builder, const KilnField *fields, char *base,
                              const KilnConfigNode *map, const char *path, Places *places,
                              KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END && status == KILN_OK;
         f++) {
        const KilnConfigNode *node = NULL;

        if ((f->type != KILN_TYPE_COMPONENT && f->type != KILN_TYPE_STRUCT) || f->renamed != NULL)
            continue;
        status = field_node(builder, path, map, f, &node, err);
        if (status < 0)
            return status;
        status = f->type == KILN_TYPE_COMPONENT
                     ? add_place(places, (Place) { f, node, base, path }, err)
                     : find_nested(builder, f, base, node, path, places, err);
    }
    return status;
}

/* Build one child behind those that `instance` has; null adds none. */
static KilnStatus add_child(Builder *builder, KilnInstance *instance, const Place *place,
                            const KilnEntry *entry, size_t i, KilnError *err)
{
    const KilnField *field = place->field;
    const KilnConfigNode *node = place->node;
    KilnStatus status = KILN_OK;
    KilnInstance *child = NULL;
    char *path;

    if (entry != NULL) {
        status = kiln_config_resolve(builder->config, entry->value, &node, err);
        if (status < 0)
            return status;
    }
    if (is_null(node) &&
        (field->shape == KILN_MAP || (field->shape == KILN_ONE && field->optional)))
        return KILN_OK;
    path = child_path(place->path, field->name, entry, i);
    if (path == NULL)
        return kiln_error_nomem(err, strlen(place->path));
    if (is_null(node))
        status = kiln_error_set(err, KILN_E_TYPE, "%s: expected %s, got null", path,
                                kiln_value_kind(field->component_kind));
    else
        status = build(builder, node, path, field->component_kind, &child, err);
    free(path);
    if (status == KILN_OK)
        instance->children[instance->child_count++] = child;
    return status;
}

/* Let the member of the options struct point to the children from `first` on. */
static void hand_over(const KilnInstance *instance, const Place *place, size_t first)
{
    const KilnField *field = place->field;
    size_t count = instance->child_count - first;
    bool null = count == 0 && (!field->optional || is_null(place->node));

    if (field->shape == KILN_ONE) {
        KilnInstance *child = count > 0 ? instance->children[first] : NULL;

        memcpy(place->base + field->offset, &child, sizeof(child));
    } else {
        KilnInstance **list = null ? NULL : &instance->children[first];

        memcpy(place->base + field->offset, &list, sizeof(list));
        memcpy(place->base + field->count_offset, &count, sizeof(count));
    }
}

static KilnStatus build_place(Builder *builder, KilnInstance *instance, const Place *place,
                              KilnError *err)
{
    const KilnField *field = place->field;
    const KilnConfigNode *node = place->node;
    size_t first = instance->child_count;
    KilnStatus status = KILN_OK;

    if (!is_null(node) && !has_shape(field, node))
        return kiln_error_set(err, KILN_E_TYPE, "%s.%s: expected a %s", place->path, field->name,
                              field->shape == KILN_LIST ? "list" : "mapping");
    if (field->shape == KILN_ONE)
        status = add_child(builder, instance, place, NULL, 0, err);
    else
        for (size_t i = 0; !is_null(node) && i < node->count && status == KILN_OK; i++)
            status = add_child(builder, instance, place, &node->entries[i], i, err);
    if (status == KILN_OK)
        hand_over(instance, place, first);
    return status;
}

static KilnStatus build_children(Builder *builder, KilnInstance *instance,
                                 const KilnConfigNode *map, KilnError *err)
{
    Places places = { 0 };
    KilnStatus status = find_places(builder, instance->component->fields, instance->opts, map,
                                    instance->path, &places, err);

    /* All at once, so that lists can point into it. */
    if (status == KILN_OK) {
        instance->children = calloc(places.most + 1, sizeof(KilnInstance *));
        if (instance->children == NULL)
            status = kiln_error_nomem(err, places.most * sizeof(KilnInstance *));
    }
    for (size_t i = 0; i < places.count && status == KILN_OK; i++)
        status = build_place(builder, instance, &places.items[i], err);
    free(places.items);
    return status;
}

/* ---- One instance ------------------------------------------------------------------- */

static KilnStatus allocate(const KilnComponent *component, const char *path, KilnInstance **ret,
                           KilnError *err)
{
    KilnInstance *instance = calloc(1, sizeof(*instance));

    if (instance == NULL)
        return kiln_error_nomem(err, sizeof(*instance));
    instance->component = component;
    instance->path = kiln_strdup(path);
    instance->state = calloc(1, component->state_size > 0 ? component->state_size : 1);
    if (instance->path == NULL || instance->state == NULL) {
        kiln_instance_free(instance);
        return kiln_error_nomem(err, component->state_size);
    }
    *ret = instance;
    return KILN_OK;
}

/* Say who refuses, and where it stands. */
static KilnStatus refused(const Builder *builder, const KilnInstance *instance,
                          const KilnConfigNode *node, const char *option, KilnError *why,
                          KilnError *err)
{
    if (option != NULL)
        kiln_error_prefix(why, "%s.%s: ", instance->path, option);
    kiln_error_about(builder->config, node, node, why);
    kiln_error_placed(why, option == NULL ? instance->path : "");
    if (err != NULL)
        *err = *why;
    return why->status;
}

static KilnStatus fill(Builder *builder, KilnInstance *instance, const KilnConfigNode *node,
                       KilnError *err)
{
    const KilnComponent *component = instance->component;
    const KilnConfigNode *map = node->kind == KILN_NODE_MAP ? node : NULL;
    const char *option = NULL;
    KilnError inner = { 0 };
    KilnStatus status = kiln_bind(builder->config, map, instance->path, component->fields,
                                  component->opts_size, &instance->opts, err);

    if (status == KILN_OK && component->check != NULL) {
        kiln_call_enter(instance, "check");
        inner.status = kiln_call_result(component->check(instance->opts, &option, &inner), &inner);
        if (inner.status < 0)
            return refused(builder, instance, node, option, &inner, err);
    }
    if (status == KILN_OK)
        status = build_children(builder, instance, map, err);
    if (status < 0)
        return status;
    instance->started = true;
    if (component->init != NULL)
        inner.status = KILN_CALLED(instance, "init", component->init(instance, &inner), &inner);
    return inner.status < 0 ? refused(builder, instance, node, NULL, &inner, err) : KILN_OK;
}

/* `node` is resolved and not null. */
static KilnStatus build(Builder *builder, const KilnConfigNode *node, const char *path,
                        KilnKind kind, KilnInstance **ret, KilnError *err)
{
    const KilnComponent *component;
    KilnInstance *instance = NULL;
    KilnError inner = { 0 };

    if (builder->depth == KILN_MAX_NESTING || builder->built == MOST_INSTANCES)
        return kiln_error_set(err, KILN_E_RANGE,
                              "%.200s: more than %d components within components, or %d in all",
                              path, KILN_MAX_NESTING, MOST_INSTANCES);
    KilnStatus status = kiln_node_component(builder->config, builder->registry, node, kind,
                                            &component, &inner);
    if (status < 0)
        return err != NULL ? (*err = inner, kiln_error_placed(err, path)) : status;
    status = allocate(component, path, &instance, err);
    if (status < 0)
        return status;
    builder->built++;
    builder->depth++;
    status = fill(builder, instance, node, err);
    builder->depth--;
    if (status < 0) {
        kiln_instance_free(instance);
        return status;
    }
    *ret = instance;
    return KILN_OK;
}

KilnStatus kiln_config_build(const KilnConfig *config, const char *key,
                             const KilnRegistry *registry, KilnKind kind, KilnInstance **ret,
                             KilnError *err)
{
    Builder builder = { .config = config, .registry = registry };
    const KilnConfigNode *node = NULL;
    KilnStatus status = kiln_config_at(config, key, &node, err);

    if (status < 0)
        return status;
    if (is_null(node))
        return kiln_error_set(err, KILN_E_MISSING, "%s: there is no %s to build", key,
                              kiln_kind_name(kind));
    return build(&builder, node, key, kind, ret, err);
}

KilnStatus kiln_config_build_map(const KilnConfig *config, const char *key,
                                 const KilnRegistry *registry, KilnKind kind, KilnInstance ***ret,
                                 size_t *ret_count, KilnError *err)
{
    Builder builder = { .config = config, .registry = registry };
    const KilnConfigNode *map = NULL, *node;
    KilnStatus status = kiln_config_at(config, key, &map, err);
    size_t n = 0;

    if (status < 0)
        return status;
    if (!is_null(map) && map->kind != KILN_NODE_MAP)
        return kiln_error_set(err, KILN_E_TYPE, "%s: expected a mapping of %ss", key,
                              kiln_kind_name(kind));
    size_t most = is_null(map) ? 0 : map->count;
    KilnInstance **instances = calloc(most > 0 ? most : 1, sizeof(KilnInstance *));
    if (instances == NULL)
        return kiln_error_nomem(err, most * sizeof(KilnInstance *));
    for (size_t i = 0; i < most && status == KILN_OK; i++) {
        status = kiln_config_resolve(config, map->entries[i].value, &node, err);
        if (status < 0 || is_null(node))
            continue;
        char *path = child_path("", key, &map->entries[i], i);
        status = path != NULL ? build(&builder, node, path, kind, &instances[n], err)
                              : kiln_error_nomem(err, strlen(key));
        n += status == KILN_OK;
        free(path);
    }
    if (status < 0) {
        kiln_instances_free(instances, n);
        return status;
    }
    *ret = instances;
    *ret_count = n;
    return KILN_OK;
}

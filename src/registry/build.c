/* Builds components from checked nodes: options (schema/bind.c), children, then init. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "config/provenance/error_origin.h"
#include "registry/instance.h"
#include "registry/registry.h"
#include "schema/bind.h"
#include "schema/table.h"
#include "schema/field_value.h"

/* Each reference to a node builds an instance of its own, so a small file could describe a huge
 * tree; this is the limit. */
enum { MAX_INSTANCES = 10000 };

typedef struct Builder {
    const KilnConfig *config;
    const KilnRegistry *registry;
    size_t built;
    size_t max_children; /* of the instance whose children are counted */
    int depth;
} Builder;

static KilnStatus build(Builder *builder, const KilnConfigNode *node, const char *path,
                        KilnKind kind, KilnInstance **ret, KilnError *err);

/* ---- Children --------------------------------------------------------------------- */

/* "PARENT.NAME", "PARENT.NAME[I]" or "PARENT.NAME.KEY", in the config's arena; `name` and `entry`
 * NULL: none. */
static const char *child_path(const Builder *builder, const char *parent, const char *name,
                              const KilnEntry *entry, size_t i)
{
    KilnText text = { 0 };

    kiln_text_append(&text, parent);
    if (name != NULL)
        kiln_key_push(&text, name, 0);
    if (entry != NULL)
        kiln_key_push(&text, entry->key, i);
    return kiln_text_to_arena(&text, kiln_config_arena(builder->config));
}

/* An option of components, in the options struct itself or in one nested in it. */
typedef struct Slot {
    const KilnField *field;
    const KilnConfigNode *node; /* resolved; NULL: none */
    char *base;                 /* the struct that has the member */
    const char *path;           /* of the struct */
} Slot;

static KilnStatus build_slot(Builder *builder, KilnInstance *instance, const Slot *slot,
                             KilnError *err);

static KilnStatus find_slots(Builder *builder, const KilnField *fields, char *base,
                             const KilnConfigNode *map, const char *path, KilnInstance *instance,
                             KilnError *err);

/* The slots in one nested struct, or in each of a list or mapping of them. */
static KilnStatus find_nested(Builder *builder, const KilnField *field, char *base,
                              const KilnConfigNode *node, const char *path, KilnInstance *instance,
                              KilnError *err)
{
    bool map = field->shape == KILN_MAPPING;
    size_t stride = map ? field->pair_size : field->item_size;
    char *value = base + field->offset;
    KilnStatus status = KILN_OK;

    if (field->shape != KILN_ONE || field->optional)
        memcpy(&value, base + field->offset, sizeof(value));
    if (value == NULL || kiln_node_is_null(node))
        return KILN_OK;
    if (field->shape == KILN_ONE)
        return find_slots(builder, field->fields, value, node, path, instance, err);
    for (size_t i = 0; i < node->count && status == KILN_OK; i++) {
        const KilnEntry *entry = &node->entries[i];
        const KilnConfigNode *item = NULL;
        const char *inner = child_path(builder, path, NULL, entry, i);

        status = inner != NULL ? kiln_config_resolve(builder->config, entry->value, &item, err)
                               : kiln_error_nomem(err, 1);
        if (status == KILN_OK)
            status = find_slots(builder, field->fields,
                                value + i * stride + (map ? field->value_offset : 0), item, inner,
                                instance, err);
    }
    return status;
}

static KilnStatus find_slots(Builder *builder, const KilnField *fields, char *base,
                             const KilnConfigNode *map, const char *path, KilnInstance *instance,
                             KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END && status == KILN_OK;
         f++) {
        const KilnConfigNode *node = NULL;

        if ((f->type != KILN_TYPE_COMPONENT && f->type != KILN_TYPE_STRUCT) || f->renamed != NULL)
            continue;
        const char *key = child_path(builder, path, f->name, NULL, 0);
        status = key != NULL
                     ? kiln_option_value(builder->config, kiln_config_arena(builder->config), key,
                                         map, f, &node, err)
                     : kiln_error_nomem(err, 1);
        if (status == KILN_OK)
            status = f->type == KILN_TYPE_COMPONENT
                         ? build_slot(builder, instance, &(Slot) { f, node, base, path }, err)
                         : find_nested(builder, f, base, node, key, instance, err);
    }
    return status;
}

/* Build one child and append it to those of `instance`; null adds none. */
static KilnStatus add_child(Builder *builder, KilnInstance *instance, const Slot *slot,
                            const KilnEntry *entry, size_t i, KilnError *err)
{
    const KilnField *field = slot->field;
    const KilnConfigNode *node = slot->node;
    KilnStatus status = KILN_OK;

    if (entry != NULL)
        status = kiln_config_resolve(builder->config, entry->value, &node, err);
    if (status < 0 || (kiln_node_is_null(node) && (field->shape == KILN_MAPPING ||
                                                   (field->shape == KILN_ONE && field->optional))))
        return status;
    const char *path = child_path(builder, slot->path, field->name, entry, i);
    if (path == NULL)
        return kiln_error_nomem(err, strlen(slot->path));
    if (kiln_node_is_null(node))
        return kiln_error_set(err, KILN_E_TYPE, "%s: expected %s, got null", path,
                              kiln_value_kind(field->component_kind));
    status = build(builder, node, path, field->component_kind,
                   &instance->children[instance->child_count], err);
    instance->child_count += status == KILN_OK;
    return status;
}

/* Let the member of the options struct point to the children from `first` on. */
static void set_member(const KilnInstance *instance, const Slot *slot, size_t first)
{
    const KilnField *field = slot->field;
    size_t count = instance->child_count - first;
    KilnInstance **list = &instance->children[first];

    if (field->shape == KILN_ONE) {
        memcpy(slot->base + field->offset, list, sizeof(*list)); /* NULL without a child */
        return;
    }
    if (count == 0 && (!field->optional || kiln_node_is_null(slot->node)))
        list = NULL;
    memcpy(slot->base + field->offset, &list, sizeof(list));
    memcpy(slot->base + field->count_offset, &count, sizeof(count));
}

/* Build the children of one slot, or only count them while there is no room for them yet. */
static KilnStatus build_slot(Builder *builder, KilnInstance *instance, const Slot *slot,
                             KilnError *err)
{
    const KilnField *field = slot->field;
    const KilnConfigNode *node = slot->node;
    size_t first = instance->child_count;
    KilnStatus status = KILN_OK;

    if (instance->children == NULL) {
        if (!kiln_node_is_null(node))
            builder->max_children += field->shape == KILN_ONE ? 1 : node->count;
        return KILN_OK;
    }
    if (field->shape == KILN_ONE)
        status = add_child(builder, instance, slot, NULL, 0, err);
    else if (!kiln_node_is_null(node) &&
             node->kind != (field->shape == KILN_LIST ? KILN_NODE_LIST : KILN_NODE_MAP))
        status = kiln_error_set(err, KILN_E_TYPE, "%s.%s: expected a %s", slot->path, field->name,
                                field->shape == KILN_LIST ? "list" : "mapping");
    else
        for (size_t i = 0; !kiln_node_is_null(node) && i < node->count && status == KILN_OK; i++)
            status = add_child(builder, instance, slot, &node->entries[i], i, err);
    if (status == KILN_OK)
        set_member(instance, slot, first);
    return status;
}

static KilnStatus build_children(Builder *builder, KilnInstance *instance,
                                 const KilnConfigNode *map, KilnError *err)
{
    KilnStatus status = KILN_OK;

    builder->max_children = 0;
    for (int pass = 0; pass < 2 && status == KILN_OK; pass++) {
        status = find_slots(builder, instance->component->fields, instance->opts, map,
                            instance->path, instance, err);
        /* One array, in which the lists of options point. */
        if (status == KILN_OK && pass == 0) {
            instance->children = calloc(builder->max_children + 1, sizeof(KilnInstance *));
            if (instance->children == NULL)
                status = kiln_error_nomem(err, builder->max_children * sizeof(KilnInstance *));
        }
    }
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

/* Complete the component's own error: its key and its origin. */
static KilnStatus refuse(const Builder *builder, const KilnInstance *instance,
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
            return refuse(builder, instance, node, option, &inner, err);
    }
    if (status == KILN_OK)
        status = build_children(builder, instance, map, err);
    if (status < 0)
        return status;
    instance->started = true;
    if (component->init != NULL)
        inner.status = KILN_CALLED(instance, "init", component->init(instance, &inner), &inner);
    return inner.status < 0 ? refuse(builder, instance, node, NULL, &inner, err) : KILN_OK;
}

/* `node` is resolved and not null. */
static KilnStatus build(Builder *builder, const KilnConfigNode *node, const char *path,
                        KilnKind kind, KilnInstance **ret, KilnError *err)
{
    const KilnComponent *component;
    KilnInstance *instance = NULL;
    KilnError inner = { 0 };

    if (builder->depth == KILN_MAX_NESTING || builder->built == MAX_INSTANCES)
        return kiln_error_set(err, KILN_E_RANGE,
                              "%.200s: more than %d components within components, or %d in all",
                              path, KILN_MAX_NESTING, MAX_INSTANCES);
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
    if (kiln_node_is_null(node))
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
    size_t max = kiln_node_is_null(map) ? 0 : map->count;
    if (!kiln_node_is_null(map) && map->kind != KILN_NODE_MAP)
        return kiln_error_set(err, KILN_E_TYPE, "%s: expected a mapping of %ss", key,
                              kiln_kind_name(kind));
    KilnInstance **instances = calloc(max + 1, sizeof(KilnInstance *));
    if (instances == NULL)
        return kiln_error_nomem(err, max * sizeof(KilnInstance *));
    for (size_t i = 0; i < max && status == KILN_OK; i++) {
        status = kiln_config_resolve(config, map->entries[i].value, &node, err);
        if (status < 0 || kiln_node_is_null(node))
            continue;
        const char *path = child_path(&builder, "", key, &map->entries[i], i);
        status = path != NULL ? build(&builder, node, path, kind, &instances[n], err)
                              : kiln_error_nomem(err, strlen(key));
        n += status == KILN_OK;
    }
    if (status < 0) {
        kiln_instances_free(instances, n);
        return status;
    }
    *ret = instances;
    *ret_count = n;
    return KILN_OK;
}

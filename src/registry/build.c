/* Builds components from checked nodes: children first, then options, then init. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "registry/instance.h"
#include "registry/registry.h"
#include "schema/bind.h"
#include "schema/table.h"
#include "schema/value.h"

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

/* A component field's node, resolved; absent ones are their default's. NULL for none. */
static KilnStatus field_node(const Builder *builder, const KilnInstance *instance,
                             const KilnConfigNode *map, const KilnField *field,
                             const KilnConfigNode **ret, KilnError *err)
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
        return kiln_error_set(err, KILN_E_MISSING, "%s.%s: required value missing (%s)",
                              instance->path, field->name, field->help);
    return kiln_config_resolve(builder->config, written, ret, err);
}

static bool has_shape(const KilnField *field, const KilnConfigNode *node)
{
    return field->shape == KILN_ONE ||
           node->kind == (field->shape == KILN_LIST ? KILN_NODE_LIST : KILN_NODE_MAP);
}

/* Upper bound of a field's children. */
static size_t places(const KilnField *field, const KilnConfigNode *node)
{
    return is_null(node) ? 0 : field->shape == KILN_ONE ? 1 : node->count;
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

/* Build one child behind those that `instance` has; null adds none. */
static KilnStatus add_child(Builder *builder, KilnInstance *instance, const KilnField *field,
                            const KilnEntry *entry, size_t i, const KilnConfigNode *node,
                            KilnError *err)
{
    KilnStatus status = KILN_OK;
    KilnInstance *child = NULL;
    char *path;

    if (entry != NULL) {
        status = kiln_config_resolve(builder->config, entry->value, &node, err);
        if (status < 0)
            return status;
    }
    if (is_null(node) && (field->optional || field->shape == KILN_MAP))
        return KILN_OK;
    path = child_path(instance->path, field->name, entry, i);
    if (path == NULL)
        return kiln_error_nomem(err, strlen(instance->path));
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

/* The children of one field, and the options' member that points to them. */
static KilnStatus build_field(Builder *builder, KilnInstance *instance, const KilnField *field,
                              const KilnConfigNode *node, KilnError *err)
{
    size_t first = instance->child_count, count;
    char *opts = instance->opts;
    KilnStatus status = KILN_OK;

    if (!is_null(node) && !has_shape(field, node))
        return kiln_error_set(err, KILN_E_TYPE, "%s.%s: expected a %s", instance->path, field->name,
                              field->shape == KILN_LIST ? "list" : "mapping");
    if (field->shape == KILN_ONE)
        status = add_child(builder, instance, field, NULL, 0, node, err);
    else
        for (size_t i = 0; !is_null(node) && i < node->count && status == KILN_OK; i++)
            status = add_child(builder, instance, field, &node->entries[i], i, NULL, err);
    if (status < 0)
        return status;
    count = instance->child_count - first;
    if (field->shape == KILN_ONE) {
        KilnInstance *child = count > 0 ? instance->children[first] : NULL;

        memcpy(opts + field->offset, &child, sizeof(child));
    } else {
        KilnInstance **list = count > 0 ? &instance->children[first] : NULL;

        memcpy(opts + field->offset, &list, sizeof(list));
        memcpy(opts + field->count_offset, &count, sizeof(count));
    }
    return KILN_OK;
}

static KilnStatus build_children(Builder *builder, KilnInstance *instance,
                                 const KilnConfigNode *map, KilnError *err)
{
    const KilnField *fields = instance->component->fields;
    const KilnConfigNode *nodes[KILN_MAX_FIELDS] = { NULL };
    size_t n = kiln_table_count(fields), most = 0;

    for (size_t i = 0; i < n; i++) {
        if (fields[i].type != KILN_TYPE_COMPONENT)
            continue;
        KilnStatus status = field_node(builder, instance, map, &fields[i], &nodes[i], err);
        if (status < 0)
            return status;
        most += places(&fields[i], nodes[i]);
    }
    if (most == 0)
        most = 1;
    /* All at once, so that lists can point into it. */
    instance->children = calloc(most, sizeof(KilnInstance *));
    if (instance->children == NULL)
        return kiln_error_nomem(err, most * sizeof(KilnInstance *));
    for (size_t i = 0; i < n; i++) {
        if (fields[i].type != KILN_TYPE_COMPONENT)
            continue;
        KilnStatus status = build_field(builder, instance, &fields[i], nodes[i], err);
        if (status < 0)
            return status;
    }
    return KILN_OK;
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

static KilnStatus start(const Builder *builder, KilnInstance *instance, const KilnConfigNode *node,
                        KilnError *err)
{
    const KilnComponent *component = instance->component;
    KilnError inner = { 0 };

    instance->started = true;
    if (component->init == NULL)
        return KILN_OK;
    KilnStatus status = component->init(instance, &inner);
    if (status == KILN_OK)
        return KILN_OK;
    kiln_error_about(builder->config, node, node, &inner);
    kiln_error_placed(&inner, instance->path);
    if (err != NULL)
        *err = inner;
    return status;
}

static KilnStatus fill(Builder *builder, KilnInstance *instance, const KilnConfigNode *node,
                       KilnError *err)
{
    const KilnComponent *component = instance->component;
    const KilnConfigNode *map = node->kind == KILN_NODE_MAP ? node : NULL;
    KilnStatus status = kiln_bind(builder->config, map, instance->path, component->fields,
                                  component->opts_size, &instance->opts, err);

    if (status == KILN_OK)
        status = build_children(builder, instance, map, err);
    return status == KILN_OK ? start(builder, instance, node, err) : status;
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

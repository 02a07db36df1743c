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
    int depth;
} Builder;

static KilnStatus build(Builder *builder, const KilnConfigNode *node, const char *path,
                        KilnKind kind, KilnInstance **ret, KilnError *err);

/* ---- Children --------------------------------------------------------------------- */

/* Set the member of the options struct to the children from `first` on. */
static void set_member(const KilnInstance *instance, const KilnSlot *slot, size_t first)
{
    const KilnField *field = slot->field;
    size_t count = instance->child_count - first;
    KilnInstance **list = &instance->children[first];

    if (field->shape == KILN_ONE) {
        memcpy(slot->base + field->offset, list, sizeof(*list)); /* NULL without a child */
        return;
    }
    if (count == 0 && (!field->optional || slot->null))
        list = NULL;
    memcpy(slot->base + field->offset, &list, sizeof(list));
    memcpy(slot->base + field->count_offset, &count, sizeof(count));
}

/* Build the components of a slot; `ret` has room for them. */
static KilnStatus build_slot(Builder *builder, const KilnSlot *slot, KilnInstance **ret,
                             size_t *count, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < slot->count && status == KILN_OK; i++) {
        status = build(builder, slot->parts[i].value, slot->parts[i].key,
                       slot->field->component_kind, &ret[i], err);
        *count += status == KILN_OK;
    }
    return status;
}

static KilnStatus build_children(Builder *builder, KilnInstance *instance,
                                 const KilnDocument *document, KilnError *err)
{
    KilnStatus status = KILN_OK;
    size_t most = 0;

    for (size_t i = 0; i < document->slot_count; i++)
        most += document->slots[i].count;
    /* One array, in which the lists of options point. */
    instance->children = calloc(most + 1, sizeof(KilnInstance *));
    if (instance->children == NULL)
        return kiln_error_nomem(err, most * sizeof(KilnInstance *));
    for (size_t i = 0; i < document->slot_count && status == KILN_OK; i++) {
        const KilnSlot *slot = &document->slots[i];
        size_t first = instance->child_count;

        if (slot->field->type != KILN_TYPE_COMPONENT)
            continue;
        status = build_slot(builder, slot, &instance->children[first], &instance->child_count, err);
        if (status == KILN_OK)
            set_member(instance, slot, first);
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
    if (component->state_size > 0)
        instance->state = calloc(1, component->state_size);
    if (instance->path == NULL || (instance->state == NULL && component->state_size > 0)) {
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

/* Load the options, check them together, build the children. */
static KilnStatus fill(Builder *builder, KilnInstance *instance, const KilnConfigNode *node,
                       KilnDocument *document, KilnError *err)
{
    const KilnComponent *component = instance->component;
    const KilnConfigNode *map = node->kind == KILN_NODE_MAP ? node : NULL;
    const KilnOptionsScope scope = { .fields = component->fields, .map = map, .missing = map };
    const char *option = NULL;
    KilnError inner = { 0 };
    KilnStatus status = kiln_document_read(builder->config, instance->path, &scope, NULL, document,
                                           err);

    if (status == KILN_OK)
        status = kiln_options_load(document, instance->path, component->fields,
                                   component->opts_size, &instance->opts, err);
    if (status == KILN_OK && component->check != NULL) {
        kiln_call_enter(instance, "check");
        inner.status = kiln_call_result(component->check(instance->opts, &option, &inner), &inner);
        if (inner.status < 0)
            return refuse(builder, instance, node, option, &inner, err);
    }
    return status == KILN_OK ? build_children(builder, instance, document, err) : status;
}

static KilnStatus start(Builder *builder, KilnInstance *instance, const KilnConfigNode *node,
                        KilnError *err)
{
    KilnDocument document = { 0 };
    KilnError inner = { 0 };
    KilnStatus status = fill(builder, instance, node, &document, err);

    kiln_document_release(&document);
    if (status < 0)
        return status;
    instance->started = true;
    if (instance->component->init != NULL)
        inner.status = KILN_CALLED(instance, "init", instance->component->init(instance, &inner),
                                   &inner);
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
    instance->printer = builder->config->printer;
    builder->built++;
    builder->depth++;
    status = start(builder, instance, node, err);
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
    const KilnField row[] = { { .name = key,
                                .type = KILN_TYPE_COMPONENT,
                                .shape = KILN_MAPPING,
                                .component_kind = kind,
                                .value = "null" },
                              KILN_FIELD_END };
    const KilnOptionsScope scope = { .fields = row, .map = kiln_config_root(config) };
    Builder builder = { .config = config, .registry = registry };
    KilnDocument document = { 0 };
    KilnInstance **instances = NULL;
    size_t n = 0;
    KilnStatus status = kiln_document_read(config, "", &scope, NULL, &document, err);

    if (status == KILN_OK) {
        instances = calloc(document.slots[0].count + 1, sizeof(KilnInstance *));
        status = instances != NULL ? build_slot(&builder, &document.slots[0], instances, &n, err)
                                   : kiln_error_nomem(err, sizeof(KilnInstance *));
    }
    kiln_document_release(&document);
    if (status < 0) {
        kiln_instances_free(instances, n);
        return status;
    }
    *ret = instances;
    *ret_count = n;
    return KILN_OK;
}

/* Reads trees: children by name and paths; adds defaults. */
#include "config/tree/node.h"

#include <string.h>

#include "base/text.h"
#include "config/compose.h"
#include "config/composed.h"
#include "config/provenance/origin.h"
#include "config/tree/edit.h"
#include "config/tree/tree.h"

bool kiln_node_is_scalar(const KilnConfigNode *node, KilnScalar type)
{
    return node != NULL && node->kind == KILN_NODE_SCALAR && node->scalar == type;
}

KilnConfigNode *kiln_node_get(const KilnConfigNode *map, const char *key)
{
    const KilnEntry *entry = map != NULL && map->kind == KILN_NODE_MAP ? kiln_node_entry(map, key)
                                                                       : NULL;

    return entry != NULL ? entry->value : NULL;
}

const char *kiln_node_text(const KilnConfigNode *map, const char *key)
{
    const KilnConfigNode *node = kiln_node_get(map, key);

    return node != NULL && node->kind == KILN_NODE_SCALAR ? node->text : NULL;
}

KilnConfigNode *kiln_node_find(const KilnConfigNode *root, const char *path)
{
    char part[KILN_PATH_PART];
    const KilnConfigNode *node = root;

    while (node != NULL && kiln_path_next(&path, part)) {
        const KilnEntry *entry = kiln_node_entry(node, part);

        node = entry != NULL ? entry->value : NULL;
    }
    return *path == '\0' ? (KilnConfigNode *)node : NULL;
}

KilnConfigNode *kiln_config_root(const KilnConfig *config)
{
    return config->root;
}

KilnArena *kiln_config_arena(const KilnConfig *config)
{
    return config->arena;
}

const KilnSection *kiln_config_sections(const KilnConfig *config)
{
    return config->sections;
}

static void append_path(const KilnConfigNode *node, KilnText *text)
{
    const KilnConfigNode *parent = node->parent;

    if (parent == NULL)
        return;
    append_path(parent, text);
    const size_t i = kiln_node_index(node);
    if (i == parent->count)
        return;
    kiln_key_push(text, parent->entries[i].key, i);
}

const char *kiln_node_path(const KilnConfig *config, const KilnConfigNode *node)
{
    KilnText text = { 0 };
    const char *path;

    append_path(node, &text);
    path = kiln_text_to_arena(&text, config->arena);
    return path != NULL ? path : "";
}

/* Append to the end of the history, once: the defaults layer is merged again and again. */
static KilnStatus append_default(KilnConfig *config, KilnConfigNode *top, KilnConfigNode *value,
                                 KilnError *err)
{
    KilnConfigNode *last = top;

    for (KilnConfigNode *node = top; node != NULL; node = node->replaced) {
        if (node == value || (kiln_origin_equal(&node->origin, &value->origin) &&
                              node->kind == value->kind && kiln_node_equal(node, value)))
            return KILN_OK;
        last = node;
    }
    KilnStatus status = kiln_list_add_default(config, top, value, err);
    last->replaced = value;
    return status;
}

KilnStatus kiln_node_add_default(KilnConfig *config, KilnConfigNode *map, const char *key,
                                 KilnOrigin key_origin, KilnConfigNode *value, KilnError *err)
{
    KilnEntry *entry = kiln_node_entry(map, key);
    KilnStatus status = KILN_OK;

    if (entry == NULL) {
        const char *copy = kiln_arena_strdup(config->arena, key);

        if (copy == NULL || kiln_node_append(config->arena, map, copy, key_origin, value) == NULL)
            return kiln_error_nomem(err, sizeof(KilnEntry));
        return KILN_OK;
    }
    if (entry->value == value)
        return KILN_OK;
    if (entry->value->kind != KILN_NODE_MAP || value->kind != KILN_NODE_MAP)
        return append_default(config, entry->value, value, err);
    for (size_t i = 0; i < value->count && status >= 0; i++)
        status = kiln_node_add_default(config, entry->value, value->entries[i].key,
                                       value->entries[i].key_origin, value->entries[i].value, err);
    return status;
}

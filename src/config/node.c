/* Reading a tree: children by name, paths, and where a value came from. */
#include "config/node.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "config/compose.h"
#include "config/interpolate.h"
#include "config/mark.h"
#include "config/state.h"
#include "config/tree.h"

KilnConfigNode *kiln_node_get(const KilnConfigNode *map, const char *key)
{
    const KilnEntry *entry = map != NULL && map->kind == KILN_NODE_MAP ? kiln_node_entry(map, key)
                                                                       : NULL;

    return entry != NULL ? entry->value : NULL;
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
    for (size_t i = 0; i < parent->count; i++) {
        if (parent->entries[i].value != node)
            continue;
        if (parent->kind == KILN_NODE_LIST)
            kiln_text_printf(text, "[%zu]", i);
        else
            kiln_text_printf(text, "%s%s", text->length > 0 ? "." : "", parent->entries[i].key);
        return;
    }
}

const char *kiln_node_path(const KilnConfig *config, const KilnConfigNode *node)
{
    KilnText text = { 0 };
    const char *path;

    append_path(node, &text);
    path = kiln_arena_strdup(config->arena, text.data != NULL ? text.data : "");
    kiln_text_release(&text);
    return path != NULL ? path : "";
}

static bool same_origin(const KilnOrigin *a, const KilnOrigin *b)
{
    return a->line == b->line && a->column == b->column && a->source != NULL && b->source != NULL &&
           strcmp(a->source, b->source) == 0;
}

/* To the end of the history, once: bottom layers are laid again and again. */
static KilnStatus push_bottom(KilnConfig *config, KilnConfigNode *top, KilnConfigNode *value,
                              KilnError *err)
{
    KilnConfigNode *node = top;
    KilnStatus status;

    for (;; node = node->replaced) {
        if (node == value || (same_origin(&node->origin, &value->origin) &&
                              node->kind == value->kind && kiln_node_equal(node, value)))
            return KILN_OK;
        if (node->replaced == NULL)
            break;
    }
    status = kiln_list_underlay(config, top, value, err);
    node->replaced = value;
    return status;
}

KilnStatus kiln_node_underlay(KilnConfig *config, KilnConfigNode *map, const char *key,
                              KilnOrigin key_origin, KilnConfigNode *value, KilnError *err)
{
    KilnEntry *entry = kiln_node_entry(map, key);

    if (entry == NULL) {
        const char *copy = kiln_arena_strdup(config->arena, key);

        if (copy == NULL || kiln_node_append(config->arena, map, copy, key_origin, value) == NULL)
            return kiln_error_nomem(err, sizeof(KilnEntry));
        return KILN_OK;
    }
    if (entry->value == value)
        return KILN_OK;
    if (entry->value->kind == KILN_NODE_MAP && value->kind == KILN_NODE_MAP) {
        KilnStatus status = KILN_OK;

        for (size_t i = 0; i < value->count && status >= 0; i++)
            status = kiln_node_underlay(config, entry->value, value->entries[i].key,
                                        value->entries[i].key_origin, value->entries[i].value, err);
        return status;
    }
    return push_bottom(config, entry->value, value, err);
}

static void origin_text(KilnText *text, const KilnOrigin *origin)
{
    if (origin->line > 0)
        kiln_text_printf(text, "%s:%d:%d", origin->source, origin->line, origin->column);
    else
        kiln_text_append(text, origin->source != NULL ? origin->source : "nowhere");
}

void kiln_node_where(const KilnConfig *config, const KilnConfigNode *node,
                     const KilnConfigNode *value, char *buf, size_t size)
{
    KilnText text = { 0 };
    const KilnConfigNode *hop = node;

    if (size == 0)
        return;
    kiln_text_append(&text, "from ");
    origin_text(&text, value != NULL ? &value->origin : &node->origin);
    for (int i = 0; value != NULL && hop != NULL && hop != value && i < KILN_INTERPOLATION_DEPTH;
         i++) {
        if (hop->kind == KILN_NODE_SCALAR && hop->scalar == KILN_SCALAR_INTERPOLATION &&
            !same_origin(&hop->origin, &value->origin)) {
            kiln_text_printf(&text, "%s%s in ", i == 0 ? ", through " : " and ", hop->text);
            origin_text(&text, &hop->origin);
        }
        hop = kiln_interpolation_target(config, hop);
    }
    snprintf(buf, size, "%s", text.data != NULL ? text.data : "");
    kiln_text_release(&text);
}

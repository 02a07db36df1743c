#include "config/tree/set_scalar.h"

#include <string.h>

#include "config/interpolate/interpolate.h"
#include "config/tree/tree.h"

/* References behind each other; a checked config has no circle of them. */
enum { MOST_HOPS = 64 };

/* The node itself, or what its reference means. */
static const KilnConfigNode *follow(const KilnConfig *config, const KilnConfigNode *node)
{
    const KilnConfigNode *target = node;

    for (int hops = 0; target != NULL && hops < MOST_HOPS; hops++) {
        node = target;
        target = kiln_interpolation_target(config, node);
    }
    return node;
}

const char *kiln_config_source(const KilnConfig *config, const char *key)
{
    const KilnConfigNode *node = kiln_config_root(config);
    const char *rest = key;
    char part[KILN_PATH_PART];

    while (node != NULL && kiln_path_next(&rest, part)) {
        const KilnEntry *entry = kiln_node_entry(node, part);

        node = entry != NULL ? follow(config, entry->value) : NULL;
    }
    const bool decides = node != NULL && node->kind == KILN_NODE_SCALAR;
    const char *path = decides ? kiln_node_path(config, node) : NULL;
    return path != NULL ? path : key;
}

/* The entry at `key`, as written; NULL: there is none. */
static KilnEntry *entry_at(const KilnConfig *config, const char *key, KilnConfigNode **ret_parent)
{
    KilnConfigNode *node = kiln_config_root(config);
    KilnEntry *entry = NULL;
    char part[KILN_PATH_PART];

    while (node != NULL && kiln_path_next(&key, part)) {
        if (!kiln_list_own(kiln_config_arena(config), node))
            return NULL;
        *ret_parent = node;
        entry = kiln_node_entry(node, part);
        node = entry != NULL ? entry->value : NULL;
    }
    return node != NULL ? entry : NULL;
}

KilnStatus kiln_config_change(KilnConfig *config, const char *key, const char *value,
                              const char *by, KilnConfigNode **ret_before, KilnError *err)
{
    KilnConfigNode *parent = NULL, *node = NULL;
    KilnEntry *entry = entry_at(config, key, &parent);
    const char *source = kiln_arena_strdup(kiln_config_arena(config), by);

    if (source == NULL)
        return kiln_error_nomem(err, strlen(by));
    if (entry == NULL || entry->value->kind != KILN_NODE_SCALAR)
        return kiln_error_set(err, KILN_E_KEY, "%s: is no value of the config that can be changed",
                              key);
    KilnStatus status = kiln_node_parse(kiln_config_arena(config), value, source, &node, err);
    if (status < 0)
        return status;
    node->layer = KILN_LAYER_ARGUMENT;
    node->origin = (KilnOrigin) { .source = source };
    if (ret_before != NULL)
        *ret_before = entry->value;
    node->replaced = entry->value;
    node->parent = parent;
    node->at = entry->value->at;
    entry->value = node;
    return KILN_OK;
}

void kiln_config_change_back(KilnConfig *config, const char *key, KilnConfigNode *before)
{
    KilnConfigNode *parent = NULL;
    KilnEntry *entry = entry_at(config, key, &parent);

    if (entry != NULL)
        entry->value = before;
}

#include "config/tree/set_scalar.h"

#include <string.h>

#include "config/interpolate/interpolate.h"
#include "config/tree/tree.h"
#include "config/yaml/output.h"

const char *kiln_config_source(const KilnConfig *config, const char *key)
{
    const KilnConfigNode *node = NULL, *target = NULL;

    if (kiln_config_find(config, key, &node, NULL) < 0)
        return key;
    for (int i = 0;
         i < KILN_INTERPOLATION_DEPTH && (target = kiln_interpolation_target(config, node)) != NULL;
         i++)
        node = target;
    return node->kind == KILN_NODE_SCALAR ? kiln_node_path(config, node) : key;
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
        return kiln_error_set(err, KILN_E_KEY, "%s: the config has no such value to change", key);
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

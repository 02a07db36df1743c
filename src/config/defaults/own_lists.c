/* Reads values of the node `kiln` before the config is composed. */
#include "config/defaults/own_lists.h"

#include <string.h>

#include "config/interpolate/interpolate.h"
#include "config/override/override.h"

static const char *const keys[] = { "searchpath", "plugins", "python" };

const char *kiln_own_list_key(size_t i)
{
    return i < KILN_COUNT(keys) ? keys[i] : NULL;
}

const KilnConfigNode *kiln_own_list_find(KilnConfig *config, const char *key, KilnError *err)
{
    for (size_t i = 0; i < config->n_overrides; i++)
        if (strncmp(config->overrides[i].key, "kiln.", 5) == 0 &&
            strcmp(config->overrides[i].key + 5, key) == 0 && config->overrides[i].value != NULL)
            return config->overrides[i].value;
    const KilnConfigFile *file = kiln_search_file(&config->search, config->config_name, err);
    if (file == NULL || file->unreadable || file->content == NULL)
        return NULL;
    const KilnConfigNode *own = kiln_node_get(file->content, "kiln");
    if (own == NULL)
        own = kiln_node_get(file->content, "hydra");
    return kiln_node_get(own, key);
}

const char *kiln_own_list_item(KilnConfig *config, const KilnConfigNode *item, const char *key,
                               const char *what, KilnError *err)
{
    const KilnConfigNode *root = item, *value = NULL;

    while (root->parent != NULL)
        root = root->parent;
    KilnResolution resolving = { .config = config, .root = root, .err = err };
    if (kiln_resolve_node(&resolving, item, &value) < 0)
        return NULL;
    if (value->kind == KILN_NODE_SCALAR)
        return value->text;
    kiln_error_set(err, KILN_E_TYPE, "kiln.%s: expected %s, got %s", key, what,
                   kiln_node_kind_name(value));
    kiln_error_at(err, &item->origin);
    return NULL;
}

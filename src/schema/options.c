/* Options structs of the parts of a config that are no components. */
#include "schema/bind.h"

KilnStatus kiln_config_at(const KilnConfig *config, const char *key, const KilnConfigNode **ret,
                          KilnError *err)
{
    const KilnConfigNode *node = kiln_config_root(config);

    if (key != NULL && key[0] != '\0')
        node = kiln_node_find(node, key);
    *ret = NULL;
    return node != NULL ? kiln_config_resolve(config, node, ret, err) : KILN_OK;
}

KilnStatus kiln_config_options(const KilnConfig *config, const char *key, const KilnField *fields,
                               size_t size, void **ret, KilnError *err)
{
    const KilnConfigNode *node = NULL;
    const char *path = key != NULL ? key : "";
    KilnStatus status = kiln_config_at(config, path, &node, err);

    if (status < 0)
        return status;
    if (node != NULL && node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_NULL)
        node = NULL;
    if (node != NULL && node->kind != KILN_NODE_MAP)
        return kiln_error_set(err, KILN_E_TYPE, "%s: expected a mapping", path);
    return kiln_bind(config, node, path, fields, size, ret, err);
}

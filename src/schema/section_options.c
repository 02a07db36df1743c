/* Values at keys of a config, and options structs of its sections. */
#include "config/provenance/error_origin.h"
#include "schema/bind.h"

#include <string.h>

KilnStatus kiln_config_at(const KilnConfig *config, const char *key, const KilnConfigNode **ret,
                          KilnError *err)
{
    const KilnConfigNode *node = kiln_config_root(config);

    if (key != NULL && key[0] != '\0')
        node = kiln_node_find(node, key);
    *ret = NULL;
    return node != NULL ? kiln_config_resolve(config, node, ret, err) : KILN_OK;
}

bool kiln_node_is_null(const KilnConfigNode *node)
{
    return node == NULL || (node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_NULL);
}

const KilnSection *kiln_section_find(const KilnSection *sections, const char *key)
{
    for (; sections != NULL && sections->key != NULL; sections++)
        if (strcmp(sections->key, key) == 0)
            return sections;
    return NULL;
}

KilnStatus kiln_config_options(const KilnConfig *config, const char *key, const KilnField *fields,
                               size_t size, void **ret, KilnError *err)
{
    const KilnConfigNode *node = NULL;
    const char *path = key != NULL ? key : "";
    KilnStatus status = kiln_config_at(config, path, &node, err);

    if (status < 0)
        return status;
    if (kiln_node_is_null(node))
        node = NULL;
    if (node != NULL && node->kind != KILN_NODE_MAP)
        return kiln_error_set(err, KILN_E_TYPE, "%s: expected a mapping", path);
    return kiln_bind(config, node, path, fields, size, ret, err);
}

/* Remove the key's end ("root: ", "files.train: ") from the beginning of a message. */
static void strip_key(const char *key, char *message)
{
    for (const char *end = key; end != NULL; end = strchr(end, '.')) {
        end += *end == '.';
        const size_t length = strlen(end);

        if (strncmp(message, end, length) == 0 && strncmp(message + length, ": ", 2) == 0) {
            memmove(message, message + length + 2, strlen(message + length + 2) + 1);
            return;
        }
    }
}

KilnStatus kiln_error_about_key(const KilnConfig *config, const char *key, KilnError *err)
{
    const KilnConfigNode *written = kiln_node_find(kiln_config_root(config), key), *value = NULL;
    KilnError found = { 0 };

    if (err == NULL || err->status == KILN_E_NOMEM)
        return err != NULL ? err->status : KILN_E_NOMEM;
    if (kiln_config_at(config, key, &value, &found) < 0 || value == NULL)
        return err->status;
    strip_key(key, err->text);
    kiln_error_about(config, written != NULL ? written : value, value, err);
    return kiln_error_placed(err, key);
}

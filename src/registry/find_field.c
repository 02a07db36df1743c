/* Finds the table of a mapping, and the option that a key of the tree belongs to. */
#include <string.h>

#include "config/compose.h"
#include "config/tree/tree.h"
#include "registry/registry.h"
#include "schema/bind.h"
#include "schema/table.h"

const KilnField *kiln_config_table(const KilnConfig *config, const KilnRegistry *registry,
                                   const char *path)
{
    const KilnComponent *component = NULL;
    const KilnConfigNode *node = NULL;

    const KilnSection *section = kiln_section_find(kiln_config_sections(config), path);

    if (section != NULL)
        return section->fields;
    if (registry != NULL && kiln_config_at(config, path, &node, NULL) >= 0 && node != NULL &&
        kiln_node_component(config, registry, node, KILN_KIND_ANY, &component, NULL) >= 0)
        return component->fields;
    const KilnField *field = kiln_config_field(config, registry, path);
    return field != NULL && field->type == KILN_TYPE_STRUCT ? field->fields : NULL;
}

const KilnField *kiln_config_field(const KilnConfig *config, const KilnRegistry *registry,
                                   const char *key)
{
    char part[KILN_PATH_PART] = "";
    const char *rest = key, *last = key;
    KilnArena *arena = kiln_config_arena(config);

    for (const char *p = key; kiln_path_next(&p, part); rest = p)
        last = rest;
    if (*rest != '\0' || part[0] == '\0')
        return NULL;
    size_t length = (size_t)(last - key);
    while (length > 0 && (key[length - 1] == '.' || key[length - 1] == '['))
        length--;
    const char *parent = kiln_arena_strndup(arena, key, length);
    if (parent == NULL)
        return NULL;
    const KilnField *table = kiln_config_table(config, registry, parent);
    if (table != NULL) {
        const KilnField *former = kiln_table_renamed(table, part);

        return kiln_table_find(table, former != NULL ? former->renamed : part);
    }
    /* An item of a list or mapping belongs to the option of the whole. */
    const KilnField *whole = length > 0 ? kiln_config_field(config, registry, parent) : NULL;
    return whole != NULL && whole->shape != KILN_ONE ? whole : NULL;
}

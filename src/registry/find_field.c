/* Finds the option that a key of the tree belongs to. */
#include <string.h>

#include "config/compose.h"
#include "config/tree/tree.h"
#include "registry/registry.h"
#include "schema/bind.h"
#include "schema/table.h"

/* The table of the section or component at `path`; NULL: none. */
static const KilnField *own_table(const KilnConfig *config, const KilnRegistry *registry,
                                  const char *path)
{
    const KilnSection *section = kiln_section_find(kiln_config_sections(config), path);
    const KilnComponent *component = NULL;
    const KilnConfigNode *node = NULL;

    if (section != NULL)
        return section->fields;
    return registry != NULL && kiln_config_at(config, path, &node, NULL) >= 0 && node != NULL &&
                   kiln_node_component(config, registry, node, KILN_KIND_ANY, &component, NULL) >= 0
               ? component->fields
               : NULL;
}

const KilnField *kiln_config_field(const KilnConfig *config, const KilnRegistry *registry,
                                   const char *key)
{
    const KilnField *field = NULL, *table = own_table(config, registry, "");
    const char *rest = key, *path;
    char part[KILN_PATH_PART];

    while (kiln_path_next(&rest, part)) {
        const KilnField *former = kiln_table_renamed(table, part);
        const bool item = table == NULL && field != NULL && field->shape != KILN_ONE;

        path = kiln_arena_strndup(kiln_config_arena(config), key, (size_t)(rest - key));
        if (path == NULL)
            return NULL;
        if (!item) /* an item of a list or mapping belongs to the option of the whole */
            field = kiln_table_find(table, former != NULL ? former->renamed : part);
        table = own_table(config, registry, path);
        if (table == NULL && field != NULL && field->type == KILN_TYPE_STRUCT &&
            (item || field->shape == KILN_ONE))
            table = field->fields;
    }
    return *rest == '\0' ? field : NULL;
}

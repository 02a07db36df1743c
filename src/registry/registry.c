/* The sorted table of known components. */
#include "registry/registry.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "registry/builtin.h"
#include "schema/table.h"

static int compare(KilnKind kind, const char *name, const KilnComponent *with)
{
    return kind != with->kind ? (kind < with->kind ? -1 : 1) : strcmp(name, with->name);
}

/* Where the component is, or where it belongs. */
static size_t lower_bound(const KilnRegistry *registry, KilnKind kind, const char *name)
{
    size_t low = 0, high = registry->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare(kind, name, registry->items[middle]) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const KilnComponent *kiln_registry_find(const KilnRegistry *registry, KilnKind kind,
                                        const char *name)
{
    size_t i = lower_bound(registry, kind, name);

    if (i < registry->count && compare(kind, name, registry->items[i]) == 0)
        return registry->items[i];
    return NULL;
}

size_t kiln_registry_count(const KilnRegistry *registry)
{
    return registry->count;
}

const KilnComponent *kiln_registry_at(const KilnRegistry *registry, size_t i)
{
    return i < registry->count ? registry->items[i] : NULL;
}

static KilnStatus reserve(KilnRegistry *registry, size_t more, KilnError *err)
{
    size_t capacity = registry->count + more;

    if (capacity <= registry->capacity)
        return KILN_OK;
    const KilnComponent **items = realloc(registry->items, capacity * sizeof(*items));
    if (items == NULL)
        return kiln_error_nomem(err, capacity * sizeof(*items));
    registry->items = items;
    registry->capacity = capacity;
    return KILN_OK;
}

static void insert(KilnRegistry *registry, const KilnComponent *component)
{
    size_t at = lower_bound(registry, component->kind, component->name);

    memmove(&registry->items[at + 1], &registry->items[at],
            (registry->count - at) * sizeof(*registry->items));
    registry->items[at] = component;
    registry->count++;
}

static void take_out(KilnRegistry *registry, const KilnComponent *component)
{
    size_t at = lower_bound(registry, component->kind, component->name);

    registry->count--;
    memmove(&registry->items[at], &registry->items[at + 1],
            (registry->count - at) * sizeof(*registry->items));
}

KilnStatus kiln_registry_add(KilnRegistry *registry, const KilnComponent *const *components,
                             KilnError *err)
{
    size_t n = 0;

    while (components[n] != NULL)
        n++;
    KilnStatus status = reserve(registry, n, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < n; i++) {
        const KilnComponent *c = components[i];

        if (kiln_registry_find(registry, c->kind, c->name) != NULL) {
            while (i-- > 0)
                take_out(registry, components[i]);
            return kiln_error_set(err, KILN_E_PLUGIN,
                                  "%s/%s is registered already: give the component another name",
                                  kiln_kind_name(c->kind), c->name);
        }
        insert(registry, c);
    }
    return KILN_OK;
}

static bool has_operations(const KilnComponent *component)
{
    /* The union's members are all pointers to const structs. */
    return component->ops.callback != NULL;
}

KilnStatus kiln_component_check(const KilnComponent *component, KilnError *err)
{
    if ((int)component->kind < 0 || component->kind >= KILN_KIND_COUNT)
        return kiln_error_set(err, KILN_E_PLUGIN, "a component's kind is %d, which kiln has not",
                              (int)component->kind);
    const char *kind = kiln_kind_name(component->kind);
    if (!kiln_is_snake_case(component->name))
        return kiln_error_set(err, KILN_E_PLUGIN, "a %s's name '%s' is not snake_case", kind,
                              component->name != NULL ? component->name : "");
    if (component->summary == NULL || component->summary[0] == '\0')
        return kiln_error_set(err, KILN_E_PLUGIN, "%s/%s: it has no summary", kind,
                              component->name);
    if (!has_operations(component))
        return kiln_error_set(err, KILN_E_PLUGIN, "%s/%s: its operations (ops.%s) are missing",
                              kind, component->name, kind);
    KilnStatus status = kiln_table_check(component->fields, component->n_fields,
                                         component->opts_size, err);
    return status < 0 && err != NULL ? kiln_error_prefix(err, "%s/%s: ", kind, component->name)
                                     : status;
}

KilnStatus kiln_registry_new(KilnRegistry **ret, KilnError *err)
{
    KilnRegistry *registry = calloc(1, sizeof(*registry));

    if (registry == NULL)
        return kiln_error_nomem(err, sizeof(*registry));
    /* Built-in tables are checked by a test, not at every start. */
    KilnStatus status = kiln_registry_add(registry, kiln_builtin_components, err);
    if (status < 0) {
        kiln_registry_free(registry);
        return status;
    }
    *ret = registry;
    return KILN_OK;
}

const KilnPlugin *kiln_registry_plugin_of(const KilnRegistry *registry,
                                          const KilnComponent *component)
{
    for (size_t i = 0; i < registry->plugin_count; i++)
        for (size_t j = 0; registry->plugins[i].components[j] != NULL; j++)
            if (registry->plugins[i].components[j] == component)
                return &registry->plugins[i];
    return NULL;
}

static void free_paths(char **paths)
{
    for (size_t i = 0; paths != NULL && paths[i] != NULL; i++)
        free(paths[i]);
    free(paths);
}

void kiln_registry_free(KilnRegistry *registry)
{
    if (registry == NULL)
        return;
    for (size_t i = registry->plugin_count; i-- > 0;) {
        dlclose(registry->plugins[i].library);
        free(registry->plugins[i].path);
    }
    free_paths(registry->folders);
    free(registry->plugins);
    free(registry->items);
    free(registry);
}

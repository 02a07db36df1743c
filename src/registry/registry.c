/* The sorted table of known components. */
#include "registry/registry.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"
#include "registry/builtin.h"
#include "registry/required_functions.h"
#include "registry/signature/model_match.h"
#include "schema/table.h"

static int compare(const void *a, const void *b)
{
    const KilnComponent *x = *(const KilnComponent *const *)a,
                        *y = *(const KilnComponent *const *)b;

    return x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : strcmp(x->name, y->name);
}

const KilnComponent *kiln_registry_find(const KilnRegistry *registry, KilnKind kind,
                                        const char *name)
{
    for (size_t i = 0; i < registry->count; i++)
        if (registry->items[i]->kind == kind && strcmp(registry->items[i]->name, name) == 0)
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

static KilnStatus in_use(const KilnRegistry *registry, const KilnComponent *component,
                         KilnError *err)
{
    const KilnComponent *other = kiln_registry_find(registry, component->kind, component->name);
    const KilnPlugin *plugin = other != NULL ? kiln_registry_plugin_of(registry, other) : NULL;
    const char *kind = kiln_kind_name(component->kind);

    if (plugin != NULL)
        return kiln_error_set(
            err, KILN_E_PLUGIN,
            "%s/%s is registered already, by the plugin %.600s: load one of them, "
            "or give the component another name",
            kind, component->name, plugin->path);
    return kiln_error_set(err, KILN_E_PLUGIN,
                          "%s/%s is registered already: give the component another name", kind,
                          component->name);
}

KilnStatus kiln_registry_insert(KilnRegistry *registry, const KilnComponent *const *components,
                                KilnError *err)
{
    size_t n = 0;

    while (components[n] != NULL)
        n++;
    if (!KILN_RESERVE(registry->items, registry->capacity, registry->count + n))
        return kiln_error_nomem(err, n * sizeof(*registry->items));
    for (size_t i = 0; i < n; i++) {
        const KilnComponent *c = components[i];
        bool taken = kiln_registry_find(registry, c->kind, c->name) != NULL;

        for (size_t j = 0; j < i; j++)
            taken = taken || compare(&c, &components[j]) == 0;
        if (taken)
            return in_use(registry, c, err);
    }
    memcpy(registry->items + registry->count, components, n * sizeof(*components));
    registry->count += n;
    qsort(registry->items, registry->count, sizeof(*registry->items), compare);
    return KILN_OK;
}

KilnStatus kiln_component_check(const KilnComponent *component, KilnError *err)
{
    if ((int)component->kind < 0 || component->kind >= KILN_KIND_COUNT)
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "a component's kind is %d, which kiln does not know",
                              (int)component->kind);
    const char *kind = kiln_kind_name(component->kind);
    if (!kiln_is_snake_case(component->name))
        return kiln_error_set(err, KILN_E_PLUGIN, "a %s's name '%s' is not snake_case", kind,
                              component->name != NULL ? component->name : "");
    if (component->summary == NULL || component->summary[0] == '\0')
        return kiln_error_set(err, KILN_E_PLUGIN, "%s/%s: it has no summary", kind,
                              component->name);
    if (component->ops.callback == NULL) /* of any kind: the union's members are all pointers */
        return kiln_error_set(err, KILN_E_PLUGIN, "%s/%s: its operations (ops.%s) are missing",
                              kind, component->name, kind);
    KilnStatus status = kiln_table_check(component->fields, component->n_fields,
                                         component->opts_size, err);
    if (status >= 0)
        status = kiln_required_functions_check(component, err);
    if (status >= 0)
        status = kiln_signature_check(component, err);
    return status < 0 && err != NULL ? kiln_error_prefix(err, "%s/%s: ", kind, component->name)
                                     : status;
}

KilnStatus kiln_registry_new(KilnRegistry **ret, KilnError *err)
{
    KilnRegistry *registry = calloc(1, sizeof(*registry));

    if (registry == NULL)
        return kiln_error_nomem(err, sizeof(*registry));
    registry->self = registry;
    /* Built-in tables are checked by a test, not at every start. */
    KilnStatus status = kiln_registry_insert(registry, kiln_builtin_components, err);
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

void kiln_registry_set_source(KilnRegistry *registry, const KilnComponentSource *source)
{
    registry->source = *source;
}

void kiln_registry_free(KilnRegistry *registry)
{
    if (registry == NULL)
        return;
    for (size_t i = registry->plugin_count; i-- > 0;) {
        if (registry->plugins[i].library != NULL)
            dlclose(registry->plugins[i].library);
        kiln_arena_release(&registry->plugins[i].arena);
        free(registry->plugins[i].path);
    }
    for (size_t i = 0; i < registry->folder_count; i++)
        free(registry->folders[i]);
    if (registry->source.release != NULL)
        registry->source.release(registry->source.ctx);
    kiln_arena_release(&registry->arena);
    free(registry->folders);
    free(registry->plugins);
    free(registry->items);
    free(registry);
}

/* Records loaded plugins, and compares them with a record. */
#include "registry/plugin/plugin_record.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"

enum { SHOWN = 12 /* characters of a checksum in messages */ };

static void put_component(const KilnComponent *component, KilnText *text)
{
    kiln_text_printf(text, "%s/%s", kiln_kind_name(component->kind), component->name);
}

void kiln_plugin_put_components(const KilnPlugin *plugin, KilnText *text)
{
    for (size_t i = 0; plugin->components[i] != NULL; i++) {
        kiln_text_append(text, i > 0 ? ", " : "");
        put_component(plugin->components[i], text);
    }
}

static json_t *components_of(const KilnPlugin *plugin)
{
    json_t *list = json_array();

    for (size_t i = 0; plugin->components[i] != NULL; i++) {
        KilnText text = { 0 };

        put_component(plugin->components[i], &text);
        kiln_json_add(&list, text.failed ? NULL : json_string(text.data));
        kiln_text_release(&text);
    }
    return list;
}

json_t *kiln_plugins_record(const KilnRegistry *registry)
{
    json_t *list = json_array();

    for (size_t i = 0; i < registry->plugin_count; i++) {
        const KilnPlugin *plugin = &registry->plugins[i];
        json_t *entry = json_object();

        kiln_json_put(&entry, "path", kiln_json_text(plugin->path));
        kiln_json_put(&entry, "sha256", json_string(plugin->sum));
        kiln_json_put(&entry, "from", json_string(plugin->from));
        kiln_json_put(&entry, plugin->python ? "python" : "kiln", kiln_json_text(plugin->version));
        kiln_json_put(&entry, "components", components_of(plugin));
        kiln_json_add(&list, entry);
    }
    return list;
}

const char *const *kiln_plugin_record_paths(KilnArena *arena, const json_t *list)
{
    const size_t n = json_array_size(list);
    const char **paths = kiln_arena_alloc(arena, (n + 1) * sizeof(*paths));
    size_t kept = 0;

    for (size_t i = 0; paths != NULL && i < n; i++) {
        const json_t *entry = json_array_get(list, i);
        const json_t *path = json_is_string(entry) ? entry : json_object_get(entry, "path");

        if (json_is_string(path) && json_object_get(entry, "python") == NULL)
            paths[kept++] = kiln_arena_strdup(arena, json_string_value(path));
    }
    return arena->failed ? NULL : paths;
}

/* ---- Comparing ------------------------------------------------------------------------------ */

static bool has_component(const json_t *entry, const KilnComponent *component)
{
    const json_t *list = json_object_get(entry, "components");
    const char *kind = kiln_kind_name(component->kind);
    const size_t n = strlen(kind);

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));

        if (name != NULL && strncmp(name, kind, n) == 0 && name[n] == '/' &&
            strcmp(name + n + 1, component->name) == 0)
            return true;
    }
    return false;
}

/* The recorded plugin that had one of its components; NULL: none. */
static const json_t *entry_of(const json_t *recorded, const KilnPlugin *plugin)
{
    for (size_t i = 0; i < json_array_size(recorded); i++)
        for (size_t j = 0; plugin->components[j] != NULL; j++)
            if (has_component(json_array_get(recorded, i), plugin->components[j]))
                return json_array_get(recorded, i);
    return NULL;
}

void kiln_plugins_compare(const json_t *recorded, const KilnRegistry *registry,
                          void (*say)(void *ctx, const char *line), void *ctx)
{
    for (size_t i = 0; i < registry->plugin_count; i++) {
        const KilnPlugin *plugin = &registry->plugins[i];
        const json_t *entry = entry_of(recorded, plugin);
        const char *sum = json_string_value(json_object_get(entry, "sha256"));
        const char *key = plugin->python ? "python" : "kiln";
        const char *version = json_string_value(json_object_get(entry, key));
        KilnText line = { 0 };

        if (sum == NULL || strcmp(sum, plugin->sum) == 0)
            continue;
        kiln_text_printf(&line,
                         "the %s %s is not the one that was used before: sha256 "
                         "%.*s..., was %.*s...",
                         plugin->python ? "Python module" : "plugin", plugin->path, SHOWN,
                         plugin->sum, SHOWN, sum);
        if (version != NULL && strcmp(version, plugin->version) != 0)
            kiln_text_printf(&line, "; %s %s, was %s", plugin->python ? "Python" : "built for kiln",
                             plugin->version, version);
        if (line.data != NULL)
            say(ctx, line.data);
        kiln_text_release(&line);
    }
}

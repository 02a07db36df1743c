/* Loads plugins: shared objects that export kiln_plugin_v1. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "registry/registry.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/call.h"
#include "base/system/file.h"
#include "base/text.h"
#include "kiln/array.h"
#include "registry/plugin/elf.h"
#include "registry/plugin/component_tables.h"

#define ENTRY "kiln_plugin_v1"

typedef const KilnPluginInfo *PluginFunction(void);

/* dlsym returns an object pointer; POSIX lets it convert to a function pointer. */
static PluginFunction *plugin_function(void *library)
{
    PluginFunction *function = NULL;
    void *symbol = dlsym(library, ENTRY);

    memcpy(&function, &symbol, sizeof(function));
    return function;
}

/* Check the components and register all or none of them. */
static KilnStatus register_list(KilnRegistry *registry, const KilnPluginInfo *info,
                                KilnArena *arena, const KilnComponent *const **ret, KilnError *err)
{
    if (kiln_plugin_check(info, err) < 0)
        return KILN_E_PLUGIN;
    const KilnComponent *const *components = kiln_plugin_components(info, arena);
    KilnStatus status = components != NULL
                            ? KILN_OK
                            : kiln_error_nomem(err, info->n_components * sizeof(KilnComponent));
    for (size_t i = 0; status == KILN_OK && components[i] != NULL; i++)
        status = kiln_component_check(components[i], err);
    if (status >= 0)
        status = kiln_registry_insert(registry, components, err);
    if (status >= 0)
        *ret = components;
    return status;
}

KilnStatus kiln_registry_add(KilnRegistry *registry, const KilnPluginInfo *info, KilnError *err)
{
    const KilnComponent *const *components;

    return register_list(registry, info, &registry->arena, &components, err);
}

static KilnStatus register_library(KilnRegistry *registry, KilnPlugin *plugin, KilnError *err)
{
    PluginFunction *function = plugin_function(plugin->library);

    if (function == NULL)
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "no kiln_plugin_v1 symbol: this is no kiln plugin (its file ends "
                              "with KILN_PLUGIN_DEFINE; if that is in an #ifdef, compile it with "
                              "-DKILN_BUILD_PLUGIN)");
    const KilnPluginInfo *info = function();
    KilnStatus status = register_list(registry, info, &plugin->arena, &plugin->components, err);
    if (status >= 0)
        plugin->version = info->version != NULL ? info->version : "?";
    return status;
}

/* dlopen's message, without the path at its start, which the caller adds. */
static KilnStatus not_loaded(const char *path, KilnError *err)
{
    const char *why = dlerror();

    if (why == NULL)
        why = "unknown error";
    if (kiln_starts_with(why, path))
        why += strlen(path) + strspn(why + strlen(path), ": ");
    if (kiln_starts_with(why, "undefined symbol"))
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "%.600s: this program does not have it, rebuild the plugin with this "
                              "program's headers",
                              why);
    return kiln_error_set(err, KILN_E_PLUGIN, "not a shared object that can be loaded: %.600s",
                          why);
}

/* `path` is absolute. */
static KilnStatus open_library(const char *path, void **ret, KilnError *err)
{
    KilnStatus status = kiln_is_file(path)
                            ? kiln_elf_check(path, ENTRY, err)
                            : kiln_error_set(err, KILN_E_PLUGIN, "there is no such file");

    if (status >= 0 && (*ret = dlopen(path, RTLD_NOW | RTLD_LOCAL)) == NULL)
        status = not_loaded(path, err);
    return status;
}

/* Register the folder conf/ next to the plugin, if there is one: config files for it. */
static KilnStatus add_conf(KilnRegistry *registry, const char *path, KilnError *err)
{
    const char *slash = strrchr(path, '/');
    const size_t n = registry->folder_count;
    KilnText conf = { 0 };

    kiln_text_append_n(&conf, path, slash != NULL ? (size_t)(slash - path) + 1 : 0);
    kiln_text_append(&conf, "conf");
    if (!conf.failed && !kiln_is_dir(conf.data)) {
        kiln_text_release(&conf);
        return KILN_OK;
    }
    char *folder = kiln_text_take(&conf);
    if (folder == NULL || !KILN_RESERVE(registry->folders, registry->folder_capacity, n + 2)) {
        free(folder);
        return kiln_error_nomem(err, strlen(path));
    }
    registry->folders[registry->folder_count++] = folder; /* new entries are NULL: the list's end */
    return KILN_OK;
}

static KilnStatus read_sum(KilnPlugin *plugin, KilnError *err)
{
    const int fd = open(plugin->path, O_RDONLY | O_CLOEXEC);
    KilnStatus status = fd >= 0 ? kiln_fd_sha256(fd, NULL, "", plugin->sum, err)
                                : kiln_error_set(err, KILN_E_PLUGIN, "%s", strerror(errno));

    if (fd >= 0)
        close(fd);
    return status;
}

KilnStatus kiln_registry_add_python(KilnRegistry *registry, const KilnComponent *component,
                                    const char *file, const char *version, KilnError *err)
{
    KilnPlugin plugin = {
        .path = kiln_strdup(file), .from = "_target_", .version = version, .python = true
    };
    const KilnComponent **list = kiln_arena_alloc(&plugin.arena, 2 * sizeof(*list));
    KilnStatus status;

    if (list != NULL && plugin.path != NULL &&
        KILN_RESERVE(registry->plugins, registry->plugin_capacity, registry->plugin_count + 1)) {
        list[0] = component;
        plugin.components = list;
        (void)!read_sum(&plugin, NULL); /* a module that is part of Python has no file */
        status = kiln_registry_insert(registry, list, err);
    } else {
        status = kiln_error_nomem(err, sizeof(plugin));
    }
    if (status < 0) {
        kiln_arena_release(&plugin.arena);
        free(plugin.path);
        return status;
    }
    registry->plugins[registry->plugin_count++] = plugin;
    return KILN_OK;
}

/* dlopen runs code of the plugin, so a crash in here is reported as the plugin's. */
static KilnStatus load(KilnRegistry *registry, KilnPlugin *plugin, KilnError *err)
{
    kiln_call_enter_component(NULL, plugin->path, "load");
    KilnStatus status = open_library(plugin->path, &plugin->library, err);

    if (status >= 0)
        status = read_sum(plugin, err);
    if (status >= 0)
        status = register_library(registry, plugin, err);
    kiln_call_leave();
    return status;
}

KilnStatus kiln_registry_load(KilnRegistry *registry, const char *path, KilnError *err)
{
    return kiln_registry_load_from(registry, path, "--plugin", err);
}

KilnStatus kiln_registry_load_from(KilnRegistry *registry, const char *path, const char *from,
                                   KilnError *err)
{
    KilnPlugin plugin = { .path = realpath(path, NULL), .from = from };
    KilnError inner = { 0 };
    KilnStatus status;

    if (plugin.path == NULL)
        status = kiln_error_set(&inner, KILN_E_PLUGIN, "%s",
                                errno == ENOENT ? "there is no such file" : strerror(errno));
    else if (!KILN_RESERVE(registry->plugins, registry->plugin_capacity,
                           registry->plugin_count + 1))
        status = kiln_error_nomem(&inner, sizeof(plugin));
    else
        status = load(registry, &plugin, &inner);
    if (status < 0) {
        if (plugin.library != NULL)
            dlclose(plugin.library);
        kiln_arena_release(&plugin.arena);
        free(plugin.path);
        return strcmp(from, "--plugin") == 0
                   ? kiln_error_set(err, status, "plugin %.400s: %.1500s", path, inner.text)
                   : kiln_error_set(err, status, "plugin %.400s (of %s): %.1500s", path, from,
                                    inner.text);
    }
    registry->plugins[registry->plugin_count++] = plugin;
    return add_conf(registry, path, err);
}

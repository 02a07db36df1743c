/* Loads plugins: shared objects that export kiln_plugin_v1. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "registry/registry.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/system/file.h"
#include "base/text.h"
#include "kiln.h"
#include "kiln/array.h"
#include "registry/elf.h"

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

/* Sizes of structs that plugins fill in or receive, for this KILN_ABI. When one of these fails, a
 * struct has changed: raise KILN_ABI (once between two releases), then write the new size here. */
_Static_assert(KILN_ABI == 6, "new ABI: check all sizes below");
#define KILN_SIZE(T, bytes) _Static_assert(sizeof(T) == (bytes), #T " has a new size: see above")
KILN_SIZE(KilnDataModuleOps, 96);
KILN_SIZE(KilnModuleOps, 96);
KILN_SIZE(KilnModelOps, 40);
KILN_SIZE(KilnOptimizerOps, 40);
KILN_SIZE(KilnSchedulerOps, 56);
KILN_SIZE(KilnCallbackOps, 376);
KILN_SIZE(KilnLoggerOps, 72);
KILN_SIZE(KilnMetricOps, 64);
KILN_SIZE(KilnTransformOps, 16);
KILN_SIZE(KilnSamplerOps, 40);
KILN_SIZE(KilnBatchTransformOps, 24);
KILN_SIZE(KilnSweeperOps, 32);
KILN_SIZE(KilnLauncherOps, 16);
KILN_SIZE(KilnComponent, 88);
KILN_SIZE(KilnField, 152);
KILN_SIZE(KilnFlat, 96);
KILN_SIZE(KilnRecording, 40);
KILN_SIZE(KilnOptimizers, 136);
KILN_SIZE(KilnTensorSpec, 32);
KILN_SIZE(KilnSignature, 40);
KILN_SIZE(KilnModelUse, 48);
KILN_SIZE(KilnModelIo, 24);
KILN_SIZE(KilnModelOutput, 64);
KILN_SIZE(KilnModelValue, 16);
KILN_SIZE(KilnDataset, 56);
KILN_SIZE(KilnDataSpec, 32);
KILN_SIZE(KilnLoading, 56);
KILN_SIZE(KilnProgress, 40);
KILN_SIZE(KilnMetric, 40);
KILN_SIZE(KilnLogRow, 64);
_Static_assert(sizeof((const uint32_t[])KILN_OPS_SIZES) == KILN_KIND_COUNT * sizeof(uint32_t),
               "a kind of component has no entry in KILN_OPS_SIZES");

/* A struct of another size would be read beyond its end. */
static KilnStatus check_size(const KilnPluginInfo *info, const char *what, const char *of,
                             size_t has, size_t expected, KilnError *err)
{
    if (has == expected)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_PLUGIN,
                          "its %s%s has %zu bytes, this program's %zu (kiln %.20s against %s): "
                          "rebuild the plugin",
                          what, of, has, expected, info->version != NULL ? info->version : "?",
                          KILN_VERSION);
}

static KilnStatus check_sizes(const KilnPluginInfo *info, KilnError *err)
{
    static const uint32_t here[] = KILN_OPS_SIZES;
    KilnStatus status = check_size(info, "KilnComponent", "", info->component_size,
                                   sizeof(KilnComponent), err);

    if (status >= 0)
        status = check_size(info, "KilnField", "", info->field_size, sizeof(KilnField), err);
    for (size_t i = 0; i < KILN_COUNT(here) && status >= 0; i++)
        status = check_size(info, "table of functions of a ", kiln_kind_name((KilnKind)i),
                            info->ops_sizes[i], here[i], err);
    return status;
}

static KilnStatus check_info(const KilnPluginInfo *info, KilnError *err)
{
    if (info == NULL || info->magic != KILN_PLUGIN_MAGIC)
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "its kiln_plugin_v1 does not describe a kiln plugin: define it with "
                              "KILN_PLUGIN_DEFINE");
    if (info->abi != KILN_ABI)
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "built for ABI %u, this program has %u: rebuild the plugin with this "
                              "program's headers",
                              info->abi, KILN_ABI);
    if (check_sizes(info, err) < 0)
        return KILN_E_PLUGIN;
    if (info->components == NULL || info->n_components == 0 || info->components[0] == NULL)
        return kiln_error_set(err, KILN_E_PLUGIN, "it has no components");
    if (info->components[info->n_components - 1] != NULL)
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "its list of components has no end: write NULL as its last entry, "
                              "and give KILN_PLUGIN_DEFINE the array itself");
    return KILN_OK;
}

static KilnStatus register_library(KilnRegistry *registry, void *library,
                                   const KilnComponent *const **ret, KilnError *err)
{
    PluginFunction *function = plugin_function(library);

    if (function == NULL)
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "no kiln_plugin_v1 symbol: this is no kiln plugin (was it compiled "
                              "with -DKILN_BUILD_PLUGIN?)");
    const KilnPluginInfo *info = function();
    KilnStatus status = check_info(info, err);
    for (size_t i = 0; status == KILN_OK && info->components[i] != NULL; i++)
        status = kiln_component_check(info->components[i], err);
    if (status >= 0)
        status = kiln_registry_add(registry, info->components, err);
    if (status >= 0)
        *ret = info->components;
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

/* dlopen runs code of the plugin, so a crash in here is reported as the plugin's. */
static KilnStatus load(KilnRegistry *registry, KilnPlugin *plugin, KilnError *err)
{
    kiln_call_enter_component(NULL, plugin->path, "load");
    KilnStatus status = open_library(plugin->path, &plugin->library, err);

    if (status >= 0)
        status = register_library(registry, plugin->library, &plugin->components, err);
    kiln_call_leave();
    return status;
}

KilnStatus kiln_registry_load(KilnRegistry *registry, const char *path, KilnError *err)
{
    KilnPlugin plugin = { .path = realpath(path, NULL) };
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
        free(plugin.path);
        return kiln_error_set(err, status, "plugin %.400s: %.1500s", path, inner.text);
    }
    registry->plugins[registry->plugin_count++] = plugin;
    return add_conf(registry, path, err);
}

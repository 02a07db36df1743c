/* Finds the user's own plugins, in the order in which they are loaded. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "cli/find_plugins.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/system/file.h"
#include "base/system/journal.h"
#include "base/text.h"
#include "cli/open_config.h"
#include "config/compose.h"
#include "registry/plugin/plugin_trust.h"

#define FOLDER "plugins"
#define VARIABLE "KILN_PLUGIN_PATH"

/* ---- The list ------------------------------------------------------------------------------- */

KilnStatus kiln_plugins_append(KilnFoundPlugins *found, const char *path, const char *from,
                               KilnError *err)
{
    char *real = realpath(path, NULL);
    const char *copy = kiln_arena_strdup(&found->arena, real != NULL ? real : path);
    bool is_new = copy != NULL;

    free(real);
    for (size_t i = 0; i < found->count && is_new; i++)
        is_new = strcmp(found->list[i].path, copy) != 0;
    if (is_new && KILN_ARENA_RESERVE(&found->arena, found->list, found->capacity, found->count + 1))
        found->list[found->count++] = (KilnFoundPlugin) { copy, from };
    return found->arena.failed ? kiln_error_nomem(err, strlen(path)) : KILN_OK;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

const KilnFoundPlugin *kiln_plugins_named(const KilnFoundPlugins *found, const char *path)
{
    for (size_t i = 0; i < found->count; i++)
        if (strcmp(file_name(found->list[i].path), file_name(path)) == 0)
            return &found->list[i];
    return NULL;
}

void kiln_plugins_free(KilnFoundPlugins *found)
{
    if (found != NULL)
        kiln_arena_release(&found->arena);
    free(found);
}

/* ---- What is the user's own ----------------------------------------------------------------- */

/* Only this user, or root, may change it. */
static bool is_own(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && (info.st_uid == geteuid() || info.st_uid == 0) &&
           (info.st_mode & S_IWOTH) == 0;
}

bool kiln_in_run_folder(void)
{
    static const char *const marks[] = { ".kiln", "../.kiln", "../../.kiln" };
    bool is = kiln_is_file(KILN_JOURNAL_FILE);

    for (size_t i = 0; i < KILN_COUNT(marks); i++)
        is = is || kiln_is_dir(marks[i]);
    return is;
}

bool kiln_is_own_config(const char *source)
{
    return !kiln_ends_with(source, ".yaml") ||
           (is_own(source) && !kiln_in_run_folder() && !kiln_starts_with(source, ".kiln/") &&
            strstr(source, "/.kiln/") == NULL);
}

/* ---- kiln.plugins --------------------------------------------------------------------------- */

static KilnStatus add_config(const KilnArgs *args, KilnFoundPlugins *found, KilnError *err)
{
    const KilnComposeRequest request = kiln_command_request(args, NULL);
    KilnOwnValue *plugins = NULL;
    KilnError why = { 0 };
    size_t n = 0;
    KilnStatus status = kiln_config_own(&request, "plugins", &found->arena, &plugins, &n, err);

    for (size_t i = 0; i < n && status >= 0; i++) {
        if (!args->trust && !kiln_is_own_config(plugins[i].source) &&
            kiln_plugin_allowed(plugins[i].text, &why) < 0)
            return kiln_error_set(
                err, KILN_E_PLUGIN,
                "%s is no config of your own project, and names the plugin "
                "%.600s, which is not loaded: %.200s; allow it with --plugin %.600s",
                plugins[i].source, plugins[i].text, why.text, plugins[i].text);
        status = kiln_plugins_append(found, plugins[i].text, "kiln.plugins", err);
    }
    return status;
}

/* ---- Folders -------------------------------------------------------------------------------- */

/* NAME.so, or NAME/NAME.so of a folder; owned by the caller. NULL: it is neither. */
static char *plugin_at(const char *folder, const char *name)
{
    KilnText path = { 0 };

    if (kiln_ends_with(name, ".so"))
        return kiln_path_join(folder, name);
    kiln_text_printf(&path, "%s/%s/%s.so", folder, name, name);
    if (path.data != NULL && kiln_is_file(path.data))
        return kiln_text_take(&path);
    kiln_text_release(&path);
    return NULL;
}

/* All of a folder, in byte order. `project`: leave out those that others can change. */
static KilnStatus add_folder(KilnFoundPlugins *found, const char *folder, const char *from,
                             bool project, KilnError *err)
{
    char **names = NULL;
    size_t n = 0;
    KilnStatus status = kiln_dir_list(folder, &names, &n, err);

    for (size_t i = 0; i < n && status >= 0; i++) {
        char *path = plugin_at(folder, names[i]);

        if (path != NULL && project && (!is_own(folder) || !is_own(path)))
            found->left_out = kiln_arena_printf(
                &found->arena, "%s is not loaded: another user can change it", path);
        else if (path != NULL)
            status = kiln_plugins_append(found, path, from, err);
        free(path);
    }
    kiln_names_free(names, n);
    return status;
}

/* Folders, and files, separated by colons; what does not exist is skipped, as in PATH. */
static KilnStatus add_variable(KilnFoundPlugins *found, KilnError *err)
{
    const char *value = getenv(VARIABLE);
    KilnStatus status = KILN_OK;

    while (value != NULL && *value != '\0' && status >= 0) {
        const size_t n = strcspn(value, ":");
        const char *path = kiln_arena_strndup(&found->arena, value, n);

        if (path == NULL)
            status = kiln_error_nomem(err, n);
        else if (kiln_is_dir(path))
            status = add_folder(found, path, VARIABLE, false, err);
        else if (kiln_is_file(path))
            status = kiln_plugins_append(found, path, VARIABLE, err);
        value += n + (value[n] == ':');
    }
    return status;
}

static KilnStatus add_project(KilnFoundPlugins *found, KilnError *err)
{
    if (!kiln_is_dir(FOLDER))
        return KILN_OK;
    if (!kiln_in_run_folder())
        return add_folder(found, FOLDER, "./" FOLDER, true, err);
    found->left_out = "./" FOLDER " is not loaded: this is the folder of a run";
    return KILN_OK;
}

KilnStatus kiln_plugins_find(const KilnArgs *args, KilnError *err)
{
    KilnFoundPlugins *found = args->plugins_found;
    KilnStatus status = KILN_OK;

    if (found->searched)
        return KILN_OK;
    found->searched = true;
    for (size_t i = 0; args->plugins[i] != NULL && status >= 0; i++)
        status = kiln_plugins_append(found, args->plugins[i], "--plugin", err);
    if (status >= 0)
        status = add_config(args, found, err);
    if (status >= 0)
        status = add_variable(found, err);
    return status >= 0 ? add_project(found, err) : status;
}

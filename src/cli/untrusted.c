/* Checks run folders from elsewhere: their plugins must have been loaded before, their links and
 * outputs must stay inside. */
#include "cli/untrusted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "cli/find_plugins.h"
#include "registry/plugin/plugin_record.h"
#include "registry/plugin/plugin_trust.h"
#include "registry/outputs.h"
#include "train/run/run_journal.h"

KilnStatus kiln_untrusted_plugins(KilnArgs *args, const char *what, const char *dir,
                                  const char *const *plugins, KilnError *err)
{
    const char *from = strcmp(what, "run") == 0 ? "the run" : "the sweep";
    KilnError why = { 0 };
    KilnStatus status = kiln_plugins_find(args, err);

    args->foreign = true;
    for (; *plugins != NULL && args->plugins[0] == NULL && status >= 0; plugins++) {
        if (kiln_plugins_named(args->plugins_found, *plugins) != NULL)
            continue;
        if (!args->trust && kiln_plugin_allowed(*plugins, &why) < 0)
            return kiln_error_set(err, KILN_E_PLUGIN,
                                  "the %s %.600s needs the plugin %.600s, which is not loaded: "
                                  "%.200s; its code would run as you: allow it with --plugin "
                                  "%.600s, or everything in the folder with --trust",
                                  what, dir, *plugins, why.text, *plugins);
        status = kiln_plugins_append(args->plugins_found, *plugins, from, err);
    }
    return status;
}

KilnStatus kiln_untrusted_run_plugins(KilnArgs *args, const char *run, KilnError *err)
{
    KilnArena arena = { 0 };

    if (args->run_plugins == NULL)
        args->run_plugins = kiln_run_journal_plugins(run);
    const char *const *plugins = kiln_plugin_record_paths(&arena, args->run_plugins);
    KilnStatus status = plugins != NULL ? kiln_untrusted_plugins(args, "run", run, plugins, err)
                                        : kiln_error_nomem(err, strlen(run));
    kiln_arena_release(&arena);
    return status;
}

/* ---- Links ------------------------------------------------------------------------------ */

enum { DEEPEST = 16 };

/* A link such as checkpoints/last -> epoch=004 names an entry of its own folder. */
static bool leads_out(const char *link)
{
    char target[4096];

    return !kiln_link_read(link, target, sizeof(target)) || strchr(target, '/') != NULL ||
           strcmp(target, "..") == 0;
}

static KilnStatus check_links(const char *path, int depth, KilnError *err)
{
    KilnStatus status = KILN_OK;
    char **names = NULL;
    struct stat info;
    size_t n = 0;

    if (lstat(path, &info) != 0)
        return errno == ENOENT ? KILN_OK : kiln_error_errno(err, path);
    if (S_ISLNK(info.st_mode) && leads_out(path))
        return kiln_error_set(
            err, KILN_E_IO,
            "%s: a link that leads out of the folder: replace it with its target, "
            "or follow it with --trust",
            path);
    if (!S_ISDIR(info.st_mode))
        return KILN_OK;
    if (depth == DEEPEST)
        return kiln_error_set(err, KILN_E_IO, "%s: folders nested deeper than a run's", path);
    status = kiln_dir_list(path, &names, &n, err);
    for (size_t i = 0; i < n && status >= 0; i++) {
        char *child = kiln_path_join(path, names[i]);

        status = child != NULL ? check_links(child, depth + 1, err)
                               : kiln_error_nomem(err, strlen(path));
        free(child);
    }
    kiln_names_free(names, n);
    return status;
}

KilnStatus kiln_untrusted_links(const KilnArgs *args, const char *run, KilnError *err)
{
    return args->trust ? KILN_OK : check_links(run, 0, err);
}

KilnStatus kiln_untrusted_outputs(const KilnArgs *args, KilnConfig *config,
                                  const KilnRegistry *registry, const char *run, KilnErrors *errors)
{
    return args->trust ? KILN_OK : kiln_config_confine(config, registry, run, errors);
}

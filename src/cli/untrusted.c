/* Checks run folders from elsewhere: their plugins must have been loaded before, their links and
 * outputs must stay inside. */
#include "cli/untrusted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/system/journal.h"
#include "registry/plugin/plugin_trust.h"
#include "registry/outputs.h"

KilnStatus kiln_untrusted_plugins(KilnArgs *args, const char *what, const char *dir,
                                  const char *const *plugins, KilnError *err)
{
    KilnError why = { 0 };

    if (args->plugins[0] != NULL)
        return KILN_OK;
    for (size_t n = 0; n < KILN_MAX_REPEATED && plugins[n] != NULL; n++) {
        if (!args->trust && kiln_plugin_allowed(plugins[n], &why) < 0)
            return kiln_error_set(err, KILN_E_PLUGIN,
                                  "the %s %.600s needs the plugin %.600s, which is not loaded: "
                                  "%.200s; its code would run as you: allow it with --plugin "
                                  "%.600s, or everything in the folder with --trust",
                                  what, dir, plugins[n], why.text, plugins[n]);
        args->plugins[n] = plugins[n];
    }
    return KILN_OK;
}

KilnStatus kiln_untrusted_run_plugins(KilnArgs *args, const char *run, KilnError *err)
{
    const char *plugins[KILN_MAX_REPEATED + 1] = { NULL };
    char *dir = kiln_path_join(run, ".kiln");
    KilnStatus status = dir != NULL ? KILN_OK : kiln_error_nomem(err, 1);

    if (dir != NULL && args->run_plugins == NULL &&
        kiln_journal_peek(dir, &args->run_plugins, NULL) >= 0) {
        const json_t *list = json_object_get(args->run_plugins, "plugins");

        for (size_t n = 0; n < json_array_size(list) && n < KILN_MAX_REPEATED; n++)
            plugins[n] = json_string_value(json_array_get(list, n));
        status = kiln_untrusted_plugins(args, "run", run, plugins, err);
    }
    free(dir);
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

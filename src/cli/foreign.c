/* Plugins that a run folder names are loaded when the user has loaded them before. */
#include "cli/foreign.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/journal.h"
#include "base/text.h"
#include "registry/allow.h"

static KilnStatus check_plugin(const KilnArgs *args, const char *from, const char *plugin,
                               KilnError *err)
{
    KilnError why = { 0 };

    if (args->trust || kiln_plugin_allowed(plugin, &why) >= 0)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_PLUGIN,
                          "%.600s wants the plugin %.600s, which is not loaded: %.200s; its code "
                          "would run as you: allow it with --plugin %.600s, or all that the folder "
                          "names with --trust",
                          from, plugin, why.text, plugin);
}

KilnStatus kiln_foreign_plugins(KilnArgs *args, const char *from, const char *const *plugins,
                                KilnError *err)
{
    KilnStatus status = KILN_OK;

    if (args->plugins[0] != NULL)
        return KILN_OK;
    for (size_t n = 0; n < KILN_MAX_REPEATED && plugins[n] != NULL && status >= 0; n++) {
        status = check_plugin(args, from, plugins[n], err);
        args->plugins[n] = plugins[n];
    }
    return status;
}

KilnStatus kiln_foreign_run_plugins(KilnArgs *args, const char *run, KilnError *err)
{
    const char *plugins[KILN_MAX_REPEATED + 1] = { NULL };
    char *dir = kiln_path_join(run, ".kiln");
    KilnText from = { 0 };
    json_t *first = NULL;
    KilnStatus status = KILN_OK;

    kiln_text_printf(&from, "the run %s", run);
    if (dir == NULL || from.failed) {
        status = kiln_error_nomem(err, 1);
    } else if (args->run_plugins == NULL && kiln_journal_peek(dir, &first, NULL) >= 0) {
        const json_t *list = json_object_get(first, "plugins");

        for (size_t n = 0; n < json_array_size(list) && n < KILN_MAX_REPEATED; n++)
            plugins[n] = json_string_value(json_array_get(list, n));
        args->run_plugins = first;
        status = kiln_foreign_plugins(args, from.data, plugins, err);
    }
    kiln_text_release(&from);
    free(dir);
    return status;
}

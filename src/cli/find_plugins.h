/* Finds the plugins that a command loads. The user's own: --plugin FILE, kiln.plugins of the
 * config, those of $KILN_PLUGIN_PATH and of ./plugins. And those that a past run or sweep used
 * (cli/untrusted.h). */
#ifndef KILN_CLI_FIND_PLUGINS_H
#define KILN_CLI_FIND_PLUGINS_H

#include "base/arena.h"
#include "cli/args.h"

typedef struct KilnFoundPlugin {
    const char *path; /* absolute, without links; as it was named, if there is no such file */
    const char *from; /* who named it: "--plugin", "./plugins"; static */
} KilnFoundPlugin;

typedef struct KilnFoundPlugins {
    bool searched;
    const char *left_out; /* why ./plugins, or one of them, is not among them; NULL: it is */
    KilnArena arena;
    KilnFoundPlugin *list; /* each file once, in the order of loading */
    size_t count, capacity;
} KilnFoundPlugins;

/* Find the user's own, once, in args->plugins_found. KILN_E_PLUGIN: a config that is not the user's
 * own, such as one of a run folder, names a plugin that the user has not loaded before;
 * KILN_E_TYPE: kiln.plugins has something else than files. */
KILN_NODISCARD KilnStatus kiln_plugins_find(const KilnArgs *args, KilnError *err);
/* Append a file, unless it is there already. */
KILN_NODISCARD KilnStatus kiln_plugins_append(KilnFoundPlugins *found, const char *path,
                                              const char *from, KilnError *err);
/* The one with the file name of `path`; NULL: none. */
const KilnFoundPlugin *kiln_plugins_named(const KilnFoundPlugins *found, const char *path);
/* Whether the current folder is, or is in, that of a run or sweep, whose maker may be anybody. */
bool kiln_in_run_folder(void);
/* Whether the source of a config's value is the user's own: an argument, or a file of the user's
 * project that nobody else may change. */
bool kiln_is_own_config(const char *source);
/* Accepts NULL. */
void kiln_plugins_free(KilnFoundPlugins *found);

#endif

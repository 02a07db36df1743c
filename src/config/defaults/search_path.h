/* Where config files are sought: folders, options without a file, the files
 * inside the program; and what they hold, each read once. */
#ifndef KILN_CONFIG_DEFAULTS_SEARCH_PATH_H
#define KILN_CONFIG_DEFAULTS_SEARCH_PATH_H

#include "config/compose.h"
#include "config/defaults/shipped.h"

typedef struct KilnConfigFile {
    const char *path;         /* "model/resnet", as the defaults list names it */
    const char *source;       /* "conf/model/resnet.yaml", for origins */
    const char *package;      /* of its "# @package" header; NULL: none */
    KilnConfigNode *content;  /* mapping or list, without the defaults list */
    KilnConfigNode *defaults; /* the defaults list; NULL: none */
    KilnOrigin defaults_origin;
    bool unreadable; /* the error was reported when it was read */
    struct KilnConfigFile *next;
} KilnConfigFile;

typedef struct KilnSearchFolder {
    const char *path;
    const char *provider; /* where it was set: "--config-dir"; static */
    struct KilnSearchFolder *next;
} KilnSearchFolder;

typedef struct KilnSearch {
    KilnArena *arena;
    KilnConfig *config;            /* for the hooks */
    const KilnComposeHooks *hooks; /* may be NULL; valid while composing only */
    KilnSearchFolder *folders;     /* in order */
    KilnConfigFile *files;         /* those read already */
} KilnSearch;

/* Append a folder; KILN_E_IO when it does not exist. `what` (static) is where it was set:
 * "--config-dir". */
KILN_NODISCARD KilnStatus kiln_search_add(KilnSearch *search, const char *path, const char *what,
                                          KilnError *err);
/* Append the plugins' folders, which the hooks name. */
KILN_NODISCARD KilnStatus kiln_search_add_plugins(KilnSearch *search, KilnError *err);
/* The file of a config path ("model/resnet"); NULL when there is none or memory is out. A file that
 * cannot be read is returned as `unreadable`; its error is in `err` the first time only. */
KilnConfigFile *kiln_search_file(KilnSearch *search, const char *path, KilnError *err);
/* A file inside the program by its path below conf/, "model/resnet.yaml"; NULL: none. */
const KilnShippedFile *kiln_shipped_find(const char *name);
/* Is there such a group? `own`: in the user's folders, not shipped with kiln or registered. */
bool kiln_search_is_group(const KilnSearch *search, const char *group, bool own);
/* Options of a group (`groups` false) or groups below it, in byte order and
 * once; NULL-terminated, in the arena. */
const char *const *kiln_search_options(const KilnSearch *search, const char *group, bool groups);
/* "conf, /x/extra and what ships with kiln", for messages; in the arena; NULL when memory is out.
 */
const char *kiln_search_describe(const KilnSearch *search);

#endif

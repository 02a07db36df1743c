/* The defaults list of a whole config: which files are merged, in which order,
 * each to where. */
#ifndef KILN_CONFIG_DEFAULTS_DEFAULTS_LIST_H
#define KILN_CONFIG_DEFAULTS_DEFAULTS_LIST_H

#include "config/defaults/defaults_entry.h"
#include "config/override/override.h"

/* A file to merge. */
typedef struct KilnMergeFile {
    KilnConfigFile *file;
    const char *package; /* "" is the top */
    const char *key;     /* of a group's choice, "model@other"; NULL: none */
    const KilnDefaultsEntry *entry;
    bool primary;
    bool self; /* stands at _self_ in a list of its own */
} KilnMergeFile;

typedef struct KilnDefaultsList {
    KilnDefaultsEntry *roots[2]; /* the trees of entries: the primary config, kiln's own */
    KilnMergeFile *files;
    size_t count, capacity;
    KilnSelection *selections; /* groups and their options, in the order they are listed */
    size_t n_selections, selections_capacity;
    /* Packages whose config could not be had: what is missing there is no news. */
    const char **failed;
    size_t n_failed, failed_capacity;
} KilnDefaultsList;

/* Expand the defaults lists from the primary config on. `overrides` that choose
 * options are marked is_group; those that are marked and then turn out to be
 * values (see kiln_search_is_group) lose the mark. What is wrong goes to `errors`;
 * only KILN_E_NOMEM is returned. Everything lives in the config's arena. */
KILN_NODISCARD KilnStatus kiln_defaults_expand(KilnConfig *config, KilnOverride *overrides,
                                               size_t n_overrides, KilnErrors *errors,
                                               KilnDefaultsList *ret);

#endif

/* The defaults list of a whole config: which files are merged, in which order and into which
 * packages. */
#ifndef KILN_CONFIG_DEFAULTS_DEFAULTS_LIST_H
#define KILN_CONFIG_DEFAULTS_DEFAULTS_LIST_H

#include "config/defaults/defaults_entry.h"
#include "config/override/override.h"

/* A file to merge: that of an entry. */
typedef struct KilnMergeFile {
    const KilnDefaultsEntry *entry;
    bool self; /* the position of _self_ in its own defaults list */
} KilnMergeFile;

typedef struct KilnDefaultsList {
    KilnDefaultsEntry *roots[2]; /* the trees of entries: the primary config, kiln's own */
    KilnMergeFile *files;
    size_t count, capacity;
    KilnSelection *selections; /* groups and their options, in the order they are listed */
    size_t n_selections, selections_capacity;
    /* Packages of configs that could not be read: keys missing below them are not reported. */
    const char **failed;
    size_t n_failed, failed_capacity;
} KilnDefaultsList;

/* Expand the defaults lists, starting with the primary config, into config->defaults. Sets is_group
 * of the overrides that select options. Errors go to `errors`, except that memory is out, which the
 * config's arena notes: everything lives there. */
void kiln_defaults_expand(KilnConfig *config, KilnErrors *errors);

#endif

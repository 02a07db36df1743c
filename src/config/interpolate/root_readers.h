/* Which keys of the root are read by a ${...}. */
#ifndef KILN_CONFIG_INTERPOLATE_ROOT_READERS_H
#define KILN_CONFIG_INTERPOLATE_ROOT_READERS_H

#include "config/defaults/search_path.h"

/* What may read: a config and, when needed, all files that it could select. */
typedef struct KilnReads {
    const KilnConfig *config; /* borrowed; zero the rest */
    KilnConfig *files;
} KilnReads;

/* Does any ${...} outside of the root's key `entry` read it, or an alias repeat it? Searches the
 * tree with overridden values, and every file of the search path: an option that is not selected
 * now may read it. A computed name (`${${which}}`) may be any key's. */
bool kiln_reads_key(KilnReads *reads, const KilnEntry *entry);
void kiln_reads_release(KilnReads *reads);

/* Is it the config that a run recorded, in its folder or in a checkpoint? There, values replace
 * the references, so keys may be left without a reader. */
bool kiln_config_is_recorded(const KilnConfig *config);

#endif

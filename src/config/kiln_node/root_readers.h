/* Who reads the keys of the root. */
#ifndef KILN_CONFIG_KILN_NODE_ROOT_READERS_H
#define KILN_CONFIG_KILN_NODE_ROOT_READERS_H

#include "config/defaults/search_path.h"

/* A text with ${...}. */
typedef struct KilnRead {
    const char *text;
    const char *top; /* the root's key that it stands below */
} KilnRead;

/* Those of a config and, when they are needed, of the files that it could choose. */
typedef struct KilnReads {
    const KilnConfig *config; /* borrowed; all else is zero at first */
    KilnConfig *files;
    KilnRead *items;
    size_t count, capacity;
    bool failed; /* memory is out */
} KilnReads;

/* Does any ${...} outside of the key itself read the root's key `entry`, or an alias of its file
 * repeat it? Sought are the tree with all values that others replaced, and every file of the
 * search path: a variable may be read by a group option that is not selected now. A name that is
 * computed (`${${which}}`) may be any key's. */
bool kiln_reads_key(KilnReads *reads, const KilnEntry *entry);
void kiln_reads_release(KilnReads *reads);

/* Is it the config that a run recorded, in its folder or in a checkpoint? There, values replace
 * the references, so keys may be left without a reader. */
bool kiln_config_is_recorded(const KilnConfig *config);

#endif

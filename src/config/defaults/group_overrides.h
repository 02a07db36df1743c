/* Overrides of groups: other options, added groups, deleted groups. */
#ifndef KILN_CONFIG_DEFAULTS_GROUP_OVERRIDES_H
#define KILN_CONFIG_DEFAULTS_GROUP_OVERRIDES_H

#include "config/defaults/defaults_list.h"

/* Another option for a group, by an argument or by `override` in a file. */
typedef struct KilnGroupOverride {
    const char *key;
    const KilnDefaultsEntry *entry; /* has the option or options */
    KilnOverride *argument;         /* NULL: from a file */
    bool deletes;                   /* ~group, ~group=option */
    bool used;
} KilnGroupOverride;

typedef struct KilnExpander KilnExpander; /* config/defaults/expand.h has the overrides */

/* Collect the config's overrides that select options, and set their is_group. */
void kiln_group_overrides_read(KilnExpander *expander);
/* Add a file's `override group: option`, unless that group is overridden already. */
void kiln_group_overrides_add(KilnExpander *expander, const KilnDefaultsEntry *entry);
/* The override of a key, or with `deletes` its deletion; NULL: none. */
KilnGroupOverride *kiln_group_overrides_find(const KilnExpander *expander, const char *key,
                                             bool deletes);
/* Report the overrides whose group is in no defaults list. Arguments that may mean a key instead
 * lose is_group. */
void kiln_group_overrides_check_used(const KilnExpander *expander);

#endif

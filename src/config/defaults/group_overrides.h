/* Overrides of groups: other options, added groups, deleted groups. */
#ifndef KILN_CONFIG_DEFAULTS_GROUP_OVERRIDES_H
#define KILN_CONFIG_DEFAULTS_GROUP_OVERRIDES_H

#include "config/defaults/defaults_list.h"

/* Another option for a group, by an argument or by `override` in a file. */
typedef struct KilnGroupOverride {
    const char *key;
    const char *option;
    const char **options;
    KilnOrigin origin, option_origin;
    KilnOverride *argument; /* NULL: from a file */
    const char *below;      /* the package of a file without a header; NULL */
    const char *relative;   /* the group that a file named without '/', if there is one; NULL */
    bool deletes;           /* ~group, ~group=option */
    bool used;
} KilnGroupOverride;

typedef struct KilnGroupOverrides {
    KilnArena *arena;
    const KilnSearch *search;
    KilnGroupOverride *list;
    size_t count, capacity;
    KilnDefaultsEntry **appended; /* +group=option */
    size_t n_appended;
} KilnGroupOverrides;

/* Collect the overrides that select options, and set their is_group. */
KILN_NODISCARD KilnStatus kiln_group_overrides_read(KilnConfig *config, KilnErrors *errors,
                                                    KilnGroupOverrides *ret);
/* Add a file's `override group: option`, unless that group is overridden already. */
KILN_NODISCARD KilnStatus kiln_group_overrides_add(KilnGroupOverrides *overrides,
                                                   const KilnDefaultsEntry *entry, KilnError *err);
/* The override of a key, or with `deletes` its deletion; NULL: none. */
KilnGroupOverride *kiln_group_overrides_find(const KilnGroupOverrides *overrides, const char *key,
                                             bool deletes);
/* Report the overrides whose group is in no defaults list. Arguments that may mean a key instead
 * lose is_group. */
void kiln_group_overrides_check_used(const KilnConfig *config, const KilnGroupOverrides *overrides,
                                     const KilnDefaultsList *list, KilnErrors *errors);

#endif

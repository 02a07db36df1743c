/* What overrides say about groups: other options, more groups, fewer. */
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
    const char *below;      /* a file's, which goes below this key for want of a header; NULL */
    const char *relative; /* the group that a file named without '/', if it meant that one; NULL */
    bool deletes;         /* ~group, ~group=option */
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

/* Sort out which overrides choose options; they are marked is_group. */
KILN_NODISCARD KilnStatus kiln_group_overrides_read(KilnConfig *config, KilnOverride *overrides,
                                                    size_t n_overrides, KilnErrors *errors,
                                                    KilnGroupOverrides *ret);
/* Add a file's `override group: option`, unless something above has said more. */
KILN_NODISCARD KilnStatus kiln_group_overrides_add(KilnGroupOverrides *choices,
                                                   const KilnDefaultsEntry *entry, KilnError *err);
/* The choice for a key; `deletes`: the deletion of it. NULL: none. */
KilnGroupOverride *kiln_group_overrides_find(const KilnGroupOverrides *choices, const char *key,
                                             bool deletes);
/* Those that no defaults list asked for: errors, or values after all. */
void kiln_group_overrides_unused(KilnConfig *config, const KilnGroupOverrides *choices,
                                 const KilnDefaultsList *list, KilnErrors *errors);

#endif

/* What overrides say about groups: other options, more groups, fewer. */
#ifndef KILN_CONFIG_DEFAULTS_GROUP_OVERRIDES_H
#define KILN_CONFIG_DEFAULTS_GROUP_OVERRIDES_H

#include "config/defaults/defaults_list.h"

/* Another option for a group, by an argument or by `override` in a file. */
typedef struct KilnGroupChoice {
    const char *key;
    const char *option;
    const char **options;
    KilnOrigin origin, option_origin;
    KilnOverride *argument; /* NULL: from a file */
    const char *below;      /* a file's, which goes below this key for want of a header; NULL */
    const char *relative; /* the group that a file named without '/', if it meant that one; NULL */
    bool deletes;         /* ~group, ~group=option */
    bool used;
} KilnGroupChoice;

typedef struct KilnChoices {
    KilnArena *arena;
    const KilnSearch *search;
    KilnGroupChoice *list;
    size_t count, capacity;
    KilnDefault **appended; /* +group=option */
    size_t n_appended;
} KilnChoices;

/* Sort out which overrides choose options; they are marked is_group. */
KILN_NODISCARD KilnStatus kiln_choices_read(KilnConfig *config, KilnOverride *overrides,
                                            size_t n_overrides, KilnErrors *errors,
                                            KilnChoices *ret);
/* Add a file's `override group: option`, unless something above has said more. */
KILN_NODISCARD KilnStatus kiln_choices_add(KilnChoices *choices, const KilnDefault *entry,
                                           KilnError *err);
/* The choice for a key; `deletes`: the deletion of it. NULL: none. */
KilnGroupChoice *kiln_choices_find(const KilnChoices *choices, const char *key, bool deletes);
/* Those that no defaults list asked for: errors, or values after all. */
void kiln_choices_unused(KilnConfig *config, const KilnChoices *choices,
                         const KilnDefaultsList *list, KilnErrors *errors);

#endif

/* The state of expanding defaults lists, and how it tells what is wrong. */
#ifndef KILN_CONFIG_DEFAULTS_EXPAND_H
#define KILN_CONFIG_DEFAULTS_EXPAND_H

#include "config/defaults/group_overrides.h"
#include "config/composed.h"

#define KILN_DEFAULTS_LEVELS 64
#define KILN_DEFAULTS_ENTRIES 5000

typedef struct KilnDefaultsExpander {
    KilnConfig *config;
    KilnArena *arena;
    KilnErrors *errors;
    KilnGroupOverrides choices;
    KilnDefaultsList *list;
    size_t n_entries;
    bool failed; /* memory is out */
} KilnDefaultsExpander;

/* Expand an entry that is placed: read its file and the lists below it. */
void kiln_expand_entry(KilnDefaultsExpander *expander, KilnDefaultsEntry *entry, int depth);

/* Add an error; `origin` goes in front when it is not NULL. */
void kiln_expand_tell(KilnDefaultsExpander *expander, const KilnOrigin *origin, KilnError *err);
/* The entry can't be had; what lies below its package may be missing because of it. */
void kiln_expand_give_up(KilnDefaultsExpander *expander, KilnDefaultsEntry *entry);
/* Tell that there is no such config or option, and which there are; give up. */
void kiln_expand_not_found(KilnDefaultsExpander *expander, KilnDefaultsEntry *entry,
                           const char *path);
/* Tell that ??? stands where an option must be chosen; give up. */
void kiln_expand_choice_missing(KilnDefaultsExpander *expander, KilnDefaultsEntry *entry,
                                const char *key);

#endif

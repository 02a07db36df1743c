/* Expands entries of defaults lists; expand_errors.c writes the messages. */
#ifndef KILN_CONFIG_DEFAULTS_EXPAND_H
#define KILN_CONFIG_DEFAULTS_EXPAND_H

#include "config/defaults/group_overrides.h"
#include "config/composed.h"

#define KILN_DEFAULTS_LEVELS 64
#define KILN_DEFAULTS_ENTRIES 5000

struct KilnExpander {
    KilnConfig *config;
    KilnArena *arena;
    KilnErrors *errors;
    KilnDefaultsList *list;
    size_t n_entries;
    KilnGroupOverride *overrides;
    size_t n_overrides, overrides_capacity;
    KilnDefaultsEntry **appended; /* +group=option */
    size_t n_appended;
};

/* Expand an attached entry: read its file and the defaults lists below it. */
void kiln_expand_entry(KilnExpander *expander, KilnDefaultsEntry *entry, int depth);

/* Leave the entry out because of an error. Keys below its package may be missing, which is then
 * not reported. */
void kiln_expand_leave_out(KilnExpander *expander, KilnDefaultsEntry *entry);
/* Report that the entry's config or option does not exist, with those that do; leave it out. */
void kiln_expand_not_found(KilnExpander *expander, KilnDefaultsEntry *entry);
/* Report an option of ???, which must be selected; leave the entry out. */
void kiln_expand_option_missing(KilnExpander *expander, KilnDefaultsEntry *entry);

#endif

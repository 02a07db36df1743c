/* Values of the node `kiln` that are needed before anything is composed, and so may be set only in
 * the primary config and by arguments: the lists searchpath and plugins, the text python. */
#ifndef KILN_CONFIG_DEFAULTS_OWN_LISTS_H
#define KILN_CONFIG_DEFAULTS_OWN_LISTS_H

#include "config/composed.h"

/* The value of `kiln.KEY`: the argument's, else the primary config's; NULL: there is none. `err`
 * has what is wrong with that file. */
const KilnConfigNode *kiln_own_list_find(KilnConfig *config, const char *key, KilnError *err);
/* The text of an item, or of the value itself, NULL on an error. References in it can only be
 * resolved from the environment or from the file that lists it: nothing is composed yet. */
const char *kiln_own_list_item(KilnConfig *config, const KilnConfigNode *item, const char *key,
                               const char *what, KilnError *err);

/* Such a key; NULL after the last. */
const char *kiln_own_list_key(size_t i);

#endif

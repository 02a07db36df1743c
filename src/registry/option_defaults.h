/* The bottom layers of a tree: what options tables say, below what was written. */
#ifndef KILN_REGISTRY_OPTION_DEFAULTS_H
#define KILN_REGISTRY_OPTION_DEFAULTS_H

#include "config/tree/node.h"

/* What a mapping was given the defaults of. */
typedef struct KilnDefaultsLayer {
    const KilnConfigNode *map;
    const void *owner;  /* KilnComponent or KilnSection; NULL: of nothing known */
    const char *source; /* of the defaults' origin */
    const KilnField *fields;
    int pass;
} KilnDefaultsLayer;

/* What is remembered from one call to the next; zeroed at the start. */
typedef struct KilnOptionDefaults {
    const KilnRegistry *registry; /* NULL: none */
    KilnDefaultsLayer *layers;
    size_t count, capacity;
    int pass;
    KilnErrors *unknown; /* names that the last call could not place */
} KilnOptionDefaults;

/* Lay defaults below the sections of `config` and below every mapping with
 * _target_; plain names where a component is expected become mappings. Can be
 * called again after changes: a mapping whose _target_ changed loses the old
 * component's defaults. Former names of options become the new ones, with a warning.
 * Names of no component are left for the check. */
KILN_NODISCARD KilnStatus kiln_option_defaults_apply(KilnOptionDefaults *defaults_layer,
                                                     KilnConfig *config, KilnErrors *errors);
/* The option that `key` of `map`, a mapping with a table, is a former name of; NULL:
 * it is none. */
const KilnField *kiln_option_defaults_renamed(const KilnOptionDefaults *defaults_layer,
                                              const KilnConfigNode *map, const char *key);
void kiln_option_defaults_release(KilnOptionDefaults *defaults_layer);
/* Is the tree one that the sections are about: has it one of the components that the root
 * requires? Any other tree is composed as it is. */
bool kiln_option_defaults_is_about(const KilnConfig *config, const KilnSection *sections);

#endif

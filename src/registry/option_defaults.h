/* The defaults layer of a tree: defaults of options tables, below the values that were written. */
#ifndef KILN_REGISTRY_OPTION_DEFAULTS_H
#define KILN_REGISTRY_OPTION_DEFAULTS_H

#include "config/tree/node.h"

/* A table whose defaults a mapping has. The mapping of a section may name a component, too: then it
 * has two. */
typedef struct KilnDefaultsLayer {
    const KilnConfigNode *map;
    bool section;       /* of a section, not of a component */
    const void *owner;  /* KilnComponent or KilnSection; NULL: unknown */
    const char *source; /* of the defaults' origin; NULL: it has none */
    const KilnField *fields;
    int pass;
} KilnDefaultsLayer;

/* State between calls; zeroed at the start. */
typedef struct KilnOptionDefaults {
    const KilnRegistry *registry; /* NULL: none */
    KilnDefaultsLayer *layers;
    size_t count, capacity;
    int pass;
    KilnErrors *unknown; /* names of no component, in the last call */
} KilnOptionDefaults;

/* Put defaults below the values of the sections of `config` and of every mapping with _target_;
 * plain names where a component is expected become mappings, former names of options the present
 * ones, with a warning. Can be called again after changes: a mapping whose _target_ changed loses
 * the defaults of the former component. Names of no component are left for the check. */
KILN_NODISCARD KilnStatus kiln_option_defaults_apply(KilnOptionDefaults *defaults,
                                                     KilnConfig *config, KilnErrors *errors);
/* The row of `key` in the table of `map` if it is a former name; NULL otherwise. */
const KilnField *kiln_option_defaults_renamed(const KilnOptionDefaults *defaults,
                                              const KilnConfigNode *map, const char *key);
void kiln_option_defaults_release(KilnOptionDefaults *defaults);
/* Has the tree one of the components that the root section requires? Any other tree is no kiln
 * config and is composed as it is. */
bool kiln_option_defaults_is_about(const KilnConfig *config);

#endif

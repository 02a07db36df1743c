/* Parts of a config for those who print it. */
#ifndef KILN_CONFIG_YAML_OUTPUT_H
#define KILN_CONFIG_YAML_OUTPUT_H

#include "config/tree/node.h"

/* Is the key of the root no part of the job's config (`kiln`)? */
bool kiln_config_hides(const KilnConfig *config, const char *key);
typedef enum KilnConfigPart {
    KILN_CONFIG_JOB, /* what the job is configured with */
    KILN_CONFIG_OWN, /* the node `kiln`, below its name */
    KILN_CONFIG_ALL
} KilnConfigPart;
/* kiln_config_yaml of one part; of the node at `key` when that is given, which must
 * lie in the part. */
KILN_NODISCARD KilnStatus kiln_config_part_yaml(const KilnConfig *config, KilnConfigPart part,
                                                const char *key, bool resolve, char **ret,
                                                KilnError *err);
/* The same with the origin of each value as a comment at the end of its line, all of
 * them aligned. */
KILN_NODISCARD KilnStatus kiln_config_origins_part(const KilnConfig *config, KilnConfigPart part,
                                                   const char *key, bool resolve, char **ret,
                                                   KilnError *err);
/* The node at `key` (NULL or "": the root) as it is written there; on the way
 * interpolations are followed. KILN_E_KEY, with the nearest name, when there is none. */
KILN_NODISCARD KilnStatus kiln_config_find(const KilnConfig *config, const char *key,
                                           const KilnConfigNode **ret, KilnError *err);

#endif

/* A config, or a part of it, as YAML text: for --cfg and for the files of a run folder. Texts are
 * owned by the caller. */
#ifndef KILN_CONFIG_YAML_OUTPUT_H
#define KILN_CONFIG_YAML_OUTPUT_H

#include "config/tree/node.h"

typedef enum KilnConfigPart {
    KILN_CONFIG_JOB, /* everything but `kiln` and what sections hide */
    KILN_CONFIG_OWN, /* the node `kiln` */
    KILN_CONFIG_ALL
} KilnConfigPart;

/* Is this key of the root, or the root's key in a path, no part of KILN_CONFIG_JOB? */
bool kiln_config_hides(const KilnConfig *config, const char *key);
bool kiln_config_hides_path(const KilnConfig *config, const char *path);
/* The node at `key` (NULL or "": the root) as written; interpolations on the way to it are
 * followed. KILN_E_KEY, with the nearest name, when there is none. */
KILN_NODISCARD KilnStatus kiln_config_find(const KilnConfig *config, const char *key,
                                           const KilnConfigNode **ret, KilnError *err);
/* kiln_config_yaml of one part, or of the node at `key` in it (NULL: the whole part). With
 * `origins`, each line ends in a comment that names the origin of its value. */
KILN_NODISCARD KilnStatus kiln_config_part_yaml(const KilnConfig *config, KilnConfigPart part,
                                                const char *key, bool resolve, bool origins,
                                                char **ret, KilnError *err);

/* overrides.yaml: the arguments as a list. */
KILN_NODISCARD KilnStatus kiln_config_overrides_yaml(const KilnConfig *config, char **ret,
                                                     KilnError *err);
/* job.yaml, from which a run resumes: the job's config with values resolved, except that values
 * keep their references to other values of the job, so that an override of one reaches all. */
KILN_NODISCARD KilnStatus kiln_config_job_yaml(const KilnConfig *config, char **ret,
                                               KilnError *err);
/* kiln.yaml: the node `kiln` below its name, unresolved. */
KILN_NODISCARD KilnStatus kiln_config_own_yaml(const KilnConfig *config, char **ret,
                                               KilnError *err);

#endif

/* What a run folder, help and completion need of a config besides its values. */
#ifndef KILN_CONFIG_KILN_NODE_RUN_FILES_H
#define KILN_CONFIG_KILN_NODE_RUN_FILES_H

#include "config/compose.h"

/* The arguments as a YAML list of texts (overrides.yaml). Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_config_overrides_yaml(const KilnConfig *config, char **ret,
                                                     KilnError *err);
/* The job's config as the run can go on with it (job.yaml): like config.yaml, with every value, but
 * what refers to other values of the job still does, so that an override of one reaches all.
 * Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_config_job_yaml(const KilnConfig *config, char **ret,
                                               KilnError *err);
/* The node `kiln` as YAML, below its name (kiln.yaml). What has no value yet stays
 * ???. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_config_own_yaml(const KilnConfig *config, char **ret,
                                               KilnError *err);
/* Where each value came from (origins.yaml, docs/design.md): a mapping from "a.b" to a
 * list of {value, from}, the value in force first, then what it replaced; {removed, from}
 * is what took a key away, {more, from} are items appended to the list that the next one has. Lists
 * count as one value. With `before` (NULL: none), the file that a run left which goes on now, its
 * histories go on. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_config_origins_yaml(const KilnConfig *config, const char *before,
                                                   char **ret, KilnError *err);
/* Read such a file, to find out whether it is whole. */
KILN_NODISCARD KilnStatus kiln_config_origins_check(const char *path, KilnError *err);

/* Is the config one that a run recorded, in its folder or in a checkpoint? What its files referred
 * to has values there, and may be referred to no more. */
bool kiln_config_is_recorded(const KilnConfig *config);

/* A choice of the defaults list: "model" -> "resnet"; option NULL for null. */
typedef struct KilnGroupSelection {
    const char *group, *option; /* borrowed from the config */
} KilnGroupSelection;

/* Choices in the order in which they are listed, without those of `kiln`; the number
 * of them. At most `size` are stored. */
size_t kiln_config_selections(const KilnConfig *config, KilnGroupSelection *ret, size_t size);

/* The options of a group (`model`), or with `groups` the groups below it ("": the
 * top ones), as the request would find them; files and what the hooks offer, in
 * byte order. NULL-terminated; owned by the caller (kiln_names_free). */
KILN_NODISCARD KilnStatus kiln_group_options(const KilnComposeRequest *request,
                                             const KilnComposeHooks *hooks, const char *group,
                                             bool groups, char ***ret, size_t *ret_count,
                                             KilnError *err);

#endif

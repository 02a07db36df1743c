/* What a config was composed from, as text: --info. */
#ifndef KILN_CONFIG_PROVENANCE_INFO_H
#define KILN_CONFIG_PROVENANCE_INFO_H

#include "base/text.h"
#include "config/tree/node.h"

/* The search path in order: who added each folder, and its path. */
void kiln_info_searchpath(const KilnConfig *config, KilnText *text);
/* The merged files in order: config, package, whether _self_ of its own list put it there, the
 * file that lists it, its path. */
void kiln_info_defaults(const KilnConfig *config, KilnText *text);
/* The defaults lists as a tree: groups with their options and what selected them, what was deleted,
 * what is missing. */
void kiln_info_tree(const KilnConfig *config, KilnText *text);

#endif

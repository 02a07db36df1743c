/* What a config was composed from, as text to read: --info. */
#ifndef KILN_CONFIG_PROVENANCE_INFO_H
#define KILN_CONFIG_PROVENANCE_INFO_H

#include "base/text.h"
#include "config/tree/node.h"

/* Where files are sought, in that order: who named the place, and its path. */
void kiln_info_searchpath(const KilnConfig *config, KilnText *text);
/* The files in the order in which they are merged: path, package, whether they stand
 * at _self_ of their own list, who lists them, where they lie. */
void kiln_info_defaults(const KilnConfig *config, KilnText *text);
/* Who lists whom: groups with the options that were chosen, and by what; what was
 * deleted; what is not there. */
void kiln_info_tree(const KilnConfig *config, KilnText *text);
/* Rows of `columns` cells each, in columns as wide as they need; the first row is
 * underlined. */
void kiln_info_table(const char *const *cells, size_t n_cells, size_t columns, KilnText *text);

#endif

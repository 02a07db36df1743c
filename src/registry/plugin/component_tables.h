/* Brings the tables of components that were compiled against older headers to this program's sizes.
 */
#ifndef KILN_REGISTRY_PLUGIN_COMPONENT_TABLES_H
#define KILN_REGISTRY_PLUGIN_COMPONENT_TABLES_H

#include "base/arena.h"
#include "kiln/embed/registry.h"

/* Check a description: magic, ABI, sizes, list. KILN_E_PLUGIN with the difference. */
KILN_NODISCARD KilnStatus kiln_plugin_check(const KilnPluginInfo *info, KilnError *err);
/* The components of a checked description, NULL-terminated: its own where all tables have this
 * program's sizes, else copies in the arena, with zeros for what they lack. NULL: memory is out. */
const KilnComponent *const *kiln_plugin_components(const KilnPluginInfo *info, KilnArena *arena);

#endif

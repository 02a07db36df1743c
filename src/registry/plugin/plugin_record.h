/* Which plugins a run used, as its folder records them, and whether those of today are the same. */
#ifndef KILN_REGISTRY_PLUGIN_PLUGIN_RECORD_H
#define KILN_REGISTRY_PLUGIN_PLUGIN_RECORD_H

#include <jansson.h>

#include "registry/registry.h"

/* "model/mine, loss/mine": the components of a plugin. */
void kiln_plugin_put_components(const KilnPlugin *plugin, KilnText *text);

/* [{"path": ..., "sha256": ..., "from": ..., "kiln": ..., "components": [...]}]: the loaded
 * plugins, and modules of Python, with its version as "python" in place of "kiln". Owned by the
 * caller; NULL: memory is out. */
json_t *kiln_plugins_record(const KilnRegistry *registry);
/* The paths of plugins in such a list, or in one of an earlier version, which has only the paths;
 * in the arena, NULL-terminated. NULL: memory is out. */
const char *const *kiln_plugin_record_paths(KilnArena *arena, const json_t *list);
/* Call `say` with a line for each loaded plugin that has components of a recorded one, but another
 * checksum: other code than the run's. */
void kiln_plugins_compare(const json_t *recorded, const KilnRegistry *registry,
                          void (*say)(void *ctx, const char *line), void *ctx);

#endif

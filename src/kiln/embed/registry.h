/* The registry of components, for programs that embed kiln. */
#ifndef KILN_KILN_EMBED_REGISTRY_H
#define KILN_KILN_EMBED_REGISTRY_H

#include "kiln/plugin.h"

/* All known components: built-in ones, those of plugins, and the program's own. */
typedef struct KilnRegistry KilnRegistry;

/* A registry with the built-in components. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_registry_new(KilnRegistry **ret, KilnError *err);
/* Also unloads plugins: no instance of theirs may be alive. Accepts NULL. */
KILN_API void kiln_registry_free(KilnRegistry *registry);
/* Load a plugin and register its components. A folder conf/ beside it joins the search path after
 * the user's own. On failure nothing is registered. A wrong ABI, a missing symbol, an invalid
 * options table and a duplicate name are errors (KILN_E_PLUGIN) that name the file and the
 * difference. */
KILN_API KILN_NODISCARD KilnStatus kiln_registry_load(KilnRegistry *registry, const char *path,
                                                      KilnError *err);
/* Register components of the embedding program itself, which describes them as a plugin does
 * (KILN_PLUGIN_FUNCTION). They must outlive the registry. Errors as of kiln_registry_load. */
KILN_API KILN_NODISCARD KilnStatus kiln_registry_add(KilnRegistry *registry,
                                                     const KilnPluginInfo *info, KilnError *err);
/* Number of components, and the i-th in order of kind, then name. */
KILN_API size_t kiln_registry_count(const KilnRegistry *registry);
KILN_API const KilnComponent *kiln_registry_at(const KilnRegistry *registry, size_t i);
/* NULL when there is none of that kind and name. */
KILN_API const KilnComponent *kiln_registry_find(const KilnRegistry *registry, KilnKind kind,
                                                 const char *name);

#endif

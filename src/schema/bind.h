/* From a checked subtree to the component's own options struct. */
#ifndef KILN_SCHEMA_BIND_H
#define KILN_SCHEMA_BIND_H

#include "config/tree/node.h"

/* A zeroed struct of `size` bytes filled from `map` (resolved; NULL: nothing
 * but defaults); keys that are absent take their defaults, components stay
 * NULL. `path` is for messages. Freed with kiln_options_free; `*ret` is NULL
 * when `size` is 0. */
KILN_NODISCARD KilnStatus kiln_bind(const KilnConfig *config, const KilnConfigNode *map,
                                    const char *path, const KilnField *fields, size_t size,
                                    void **ret, KilnError *err);

/* The node at `key` (NULL or "": the root), interpolations at its end followed;
 * `*ret` is NULL with KILN_OK when nothing is there. */
KILN_NODISCARD KilnStatus kiln_config_at(const KilnConfig *config, const char *key,
                                         const KilnConfigNode **ret, KilnError *err);

/* The message in err is about the value at `key`, which may begin it ("root: no such folder"; only
 * the key's last name then): put the value's place and the key in front. Returns err->status. */
KilnStatus kiln_error_about_key(const KilnConfig *config, const char *key, KilnError *err);

#endif

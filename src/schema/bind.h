/* Loads a checked subtree of the config into a component's options struct. */
#ifndef KILN_SCHEMA_BIND_H
#define KILN_SCHEMA_BIND_H

#include "schema/document.h"

/* Load a document, which was read without errors, into a new struct of `size` bytes, and set where
 * the members of its slots are. Components stay NULL. `path` is for messages. Freed with
 * kiln_options_free; `*ret` is NULL when `size` is 0. */
KILN_NODISCARD KilnStatus kiln_options_load(const KilnDocument *document, const char *path,
                                            const KilnField *fields, size_t size, void **ret,
                                            KilnError *err);
/* Read `map` (resolved; NULL: only defaults), whose key is `path`, without its components, and load
 * it. */
KILN_NODISCARD KilnStatus kiln_bind(const KilnConfig *config, const KilnConfigNode *map,
                                    const char *path, const KilnField *fields, size_t size,
                                    void **ret, KilnError *err);

/* The node at `key` (NULL or "": the root), resolved; NULL with KILN_OK when nothing is there. */
KILN_NODISCARD KilnStatus kiln_config_at(const KilnConfig *config, const char *key,
                                         const KilnConfigNode **ret, KilnError *err);

bool kiln_node_is_null(const KilnConfigNode *node);
/* The section of exactly that key ("": the root); NULL: none. */
const KilnSection *kiln_section_find(const KilnSection *sections, const char *key);

/* The error is about the value at `key`, and may start with the key's last name ("root: no such
 * folder"): prefix the value's origin and the whole key. Returns err->status. */
KilnStatus kiln_error_about_key(const KilnConfig *config, const char *key, KilnError *err);

#endif

/* YAML text to nodes with origins, through libyaml's events. */
#ifndef KILN_CONFIG_YAML_YAML_READER_H
#define KILN_CONFIG_YAML_YAML_READER_H

#include "config/tree/tree.h"

/* Limits: what is larger is data, not config. */
#define KILN_YAML_BYTES (4u << 20)
#define KILN_YAML_DEPTH 64
#define KILN_YAML_NODES 200000

/* Parse the one document in `text`; *ret is NULL when there is none. `maker->origin.source` names
 * the text in origins and messages; with `one_origin` every node gets the maker's origin without
 * line and column (text that is not in a file). */
KILN_NODISCARD KilnStatus kiln_yaml_read(const KilnMaker *maker, const char *text, size_t size,
                                         bool one_origin, KilnConfigNode **ret, KilnError *err);
/* The same for a file, into the arena. */
KILN_NODISCARD KilnStatus kiln_yaml_read_file(KilnArena *arena, const char *path,
                                              KilnConfigNode **ret, KilnError *err);

#endif

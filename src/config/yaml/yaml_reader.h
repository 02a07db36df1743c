/* YAML text to nodes with origins, through libyaml's events. */
#ifndef KILN_CONFIG_YAML_YAML_READER_H
#define KILN_CONFIG_YAML_YAML_READER_H

#include "config/tree/tree.h"

/* Limits on what is read: more is data, not config. */
#define KILN_YAML_BYTES (4u << 20)
#define KILN_YAML_DEPTH 64
#define KILN_YAML_NODES 200000

/* Parse the one document in `text`; *ret is NULL when there is none in it.
 * `maker->origin.source` names the text in origins and messages; with
 * `one_place` every node gets the maker's origin as it is (text that is not in
 * a file). */
KILN_NODISCARD KilnStatus kiln_yaml_read(const KilnMaker *maker, const char *text, size_t size,
                                         bool one_place, KilnConfigNode **ret, KilnError *err);

#endif

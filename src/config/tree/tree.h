/* Making and changing trees of nodes: what reader, merge and overrides share. */
#ifndef KILN_CONFIG_TREE_TREE_H
#define KILN_CONFIG_TREE_TREE_H

#include "config/tree/node.h"

/* Where new nodes come from: who writes them and into which arena. */
typedef struct KilnMaker {
    KilnArena *arena;
    KilnOrigin origin;
    KilnLayer layer;
} KilnMaker;

/* A new node; NULL when memory is out. `text` is borrowed from the arena. */
KilnConfigNode *kiln_node_new(const KilnMaker *maker, KilnNodeKind kind);
KilnConfigNode *kiln_node_scalar(const KilnMaker *maker, KilnScalar type, const char *text);
/* A scalar of quoted text, copied: STR, or INTERPOLATION or MISSING by its text. */
KilnConfigNode *kiln_node_string(const KilnMaker *maker, const char *text);
/* Append a child (key NULL in lists) and become its parent; NULL when `value`
 * is NULL or memory is out. A map's key must not be there yet. */
KilnEntry *kiln_node_append(KilnArena *arena, KilnConfigNode *node, const char *key,
                            KilnOrigin key_origin, KilnConfigNode *value);
/* The entry of a mapping, or of a list by decimal index (from the end when it is
 * negative); NULL when there is none. */
KilnEntry *kiln_node_entry(const KilnConfigNode *node, const char *key);
/* Take an entry out; order of the others is kept. */
void kiln_node_remove(KilnConfigNode *node, KilnEntry *entry);
/* A deep copy below no parent, histories too; NULL when memory is out. */
KilnConfigNode *kiln_node_copy(KilnArena *arena, const KilnConfigNode *node);
/* Have entries of its own, with the same values: for a copy of the struct. False when memory is
 * out. */
bool kiln_node_own_entries(KilnArena *arena, KilnConfigNode *node);
/* Let `value` stand in the entry; what stood there becomes the end of its history. */
void kiln_node_replace(KilnEntry *entry, KilnConfigNode *parent, KilnConfigNode *value);
/* Give an entry of the mapping another key, which is not there yet. */
void kiln_node_rename(KilnConfigNode *map, KilnEntry *entry, const char *key);
/* Where the node stands in its parent's entries; the parent's count: nowhere. */
size_t kiln_node_index(const KilnConfigNode *node);

/* Put the list as it is into its own history, in constant time: the two share the items, and
 * as many of the entries. From here on the list may grow; false when memory is out. */
bool kiln_list_freeze(KilnArena *arena, KilnConfigNode *list);
/* Before anything in the list changes: have entries and items that no history shares. False
 * when memory is out. */
bool kiln_list_own(KilnArena *arena, KilnConfigNode *list);

/* "a mapping", "a list", "text", "an integer", ... for messages. */
const char *kiln_node_kind_name(const KilnConfigNode *node);
/* Same kind, type and text, recursively; mappings in any order. */
bool kiln_node_equal(const KilnConfigNode *a, const KilnConfigNode *b);

/* The next part of a path "a.b[0].c" at `*path`, which moves behind it: a copy in
 * `buf`. False at the end, and when a part is longer than the buffer. */
#define KILN_PATH_PART 256
bool kiln_path_next(const char **path, char buf[KILN_PATH_PART]);
/* Is it a path of up to KILN_PATH_PARTS parts, none of them too long, with nothing
 * left over ("a.")? Deeper trees than that are not made: functions on trees recurse. */
#define KILN_PATH_PARTS 64
bool kiln_path_fits(const char *path);

/* The child name in `node` (a mapping) nearest to `key`; NULL when none is near. */
const char *kiln_node_nearest(const KilnConfigNode *node, const char *key);

#endif

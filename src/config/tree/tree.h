/* Builds and changes trees of nodes, for the reader, merge and overrides. */
#ifndef KILN_CONFIG_TREE_TREE_H
#define KILN_CONFIG_TREE_TREE_H

#include "config/tree/node.h"

/* What new nodes get: arena, origin, layer. */
typedef struct KilnMaker {
    KilnArena *arena;
    KilnOrigin origin;
    KilnLayer layer;
} KilnMaker;

/* A new node; NULL when memory is out or `text` is NULL. `text` is borrowed from the arena. */
KilnConfigNode *kiln_node_new(const KilnMaker *maker, KilnNodeKind kind);
KilnConfigNode *kiln_node_scalar(const KilnMaker *maker, KilnScalar type, const char *text);
/* A scalar of quoted text, copied: STR, or INTERPOLATION or MISSING by its text. */
KilnConfigNode *kiln_node_string(const KilnMaker *maker, const char *text);
/* Append a child (key NULL in lists) and become its parent; NULL when `node`, `value`
 * or a map's key is NULL, or memory is out. A map's key must not be there yet. */
KilnEntry *kiln_node_append(KilnArena *arena, KilnConfigNode *node, const char *key,
                            KilnOrigin key_origin, KilnConfigNode *value);
/* The entry of a mapping, or of a list by decimal index (from the end when it is
 * negative); NULL when there is none. */
KilnEntry *kiln_node_entry(const KilnConfigNode *node, const char *key);
/* Remove an entry; the others keep their order. */
void kiln_node_remove(KilnConfigNode *node, KilnEntry *entry);
/* A deep copy without a parent, with histories; NULL when memory is out. */
KilnConfigNode *kiln_node_copy(KilnArena *arena, const KilnConfigNode *node);
/* How many nodes: it and all in it, without history. */
size_t kiln_node_size(const KilnConfigNode *node);
/* Give a copied struct entries of its own, with the same values. False when memory is out. */
bool kiln_node_own_entries(KilnArena *arena, KilnConfigNode *node);
/* Set the entry to `value`; the old value becomes the end of its history. */
void kiln_node_replace(KilnEntry *entry, KilnConfigNode *parent, KilnConfigNode *value);
/* Give an entry of the mapping a new key, which is not in use. */
void kiln_node_rename(KilnConfigNode *map, KilnEntry *entry, const char *key);
/* The node's index in its parent's entries; the parent's count: not found. */
size_t kiln_node_index(const KilnConfigNode *node);

/* Put the current list into its own history, in constant time: both share the items, and the
 * history's entries. After that the list may only grow; false when memory is out. */
bool kiln_list_freeze(KilnArena *arena, KilnConfigNode *list);
/* Before any other change: give the list entries and items that no history shares. False when
 * memory is out. */
bool kiln_list_own(KilnArena *arena, KilnConfigNode *list);

/* "a mapping", "a list", "text", "an integer", ... for messages. */
const char *kiln_node_kind_name(const KilnConfigNode *node);
/* Same kind, type and text, recursively; mappings in any order. */
bool kiln_node_equal(const KilnConfigNode *a, const KilnConfigNode *b);

/* Copy the next part of the path "a.b[0].c" at *path to `buf` and advance *path. False at the end,
 * and for a part longer than the buffer. */
#define KILN_PATH_PART 256
bool kiln_path_next(const char **path, char buf[KILN_PATH_PART]);
/* Is it a complete path ("a." is not) of at most KILN_PATH_PARTS parts that fit the buffer? Deeper
 * trees are never built: functions on trees recurse. */
#define KILN_PATH_PARTS 64
bool kiln_path_fits(const char *path);

/* The key of the mapping that is nearest to `key`; NULL when none is near. */
const char *kiln_node_nearest(const KilnConfigNode *node, const char *key);

#endif

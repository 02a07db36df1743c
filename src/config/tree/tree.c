/* Builds and changes trees of nodes. */
#include "config/tree/tree.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/parse.h"
#include "base/text.h"
#include "config/yaml/scalar.h"

KilnConfigNode *kiln_node_new(const KilnMaker *maker, KilnNodeKind kind)
{
    KilnConfigNode *node = kiln_arena_alloc(maker->arena, sizeof(*node));

    if (node != NULL) {
        node->kind = kind;
        node->origin = maker->origin;
        node->layer = maker->layer;
    }
    return node;
}

KilnConfigNode *kiln_node_scalar(const KilnMaker *maker, KilnScalar type, const char *text)
{
    KilnConfigNode *node = text != NULL ? kiln_node_new(maker, KILN_NODE_SCALAR) : NULL;

    if (node != NULL) {
        node->scalar = type;
        node->text = text;
    }
    return node;
}

KilnConfigNode *kiln_node_string(const KilnMaker *maker, const char *text)
{
    const char *copy = text != NULL ? kiln_arena_strdup(maker->arena, text) : NULL;
    KilnConfigNode *node = copy != NULL ? kiln_node_scalar(maker, kiln_scalar_text(copy), copy)
                                        : NULL;

    if (node != NULL)
        node->quoted = true;
    return node;
}

/* ---- Entries ---------------------------------------------------------------------- */

/* A mapping with more capacity than this finds its keys by hash (open addressing). The slots follow
 * the entries; they hold an entry's index + 1, or 0 when free. */
enum { MAX_SCANNED = 16, SLOTS_PER_ENTRY = 2 };

static bool is_hashed(const KilnConfigNode *node)
{
    return node->kind == KILN_NODE_MAP && node->capacity > MAX_SCANNED;
}

static uint32_t *slots_of(const KilnConfigNode *node)
{
    return (uint32_t *)(node->entries + node->capacity);
}

/* The slot of the key's entry, or the free one for it. */
static uint32_t *find_slot(const KilnConfigNode *node, const char *key)
{
    uint32_t *slots = slots_of(node);
    const size_t n = node->capacity * SLOTS_PER_ENTRY;
    size_t at = XXH3_64bits(key, strlen(key)) % n;

    while (slots[at] != 0 && strcmp(node->entries[slots[at] - 1].key, key) != 0)
        at = (at + 1) % n;
    return &slots[at];
}

static void hash_entry(KilnConfigNode *node, size_t index)
{
    uint32_t *slot = find_slot(node, node->entries[index].key);

    if (*slot == 0)
        *slot = (uint32_t)index + 1;
}

static void hash_entries(KilnConfigNode *node)
{
    if (!is_hashed(node))
        return;
    memset(slots_of(node), 0, node->capacity * SLOTS_PER_ENTRY * sizeof(uint32_t));
    for (size_t i = 0; i < node->count; i++)
        hash_entry(node, i);
}

/* Allocate room for `capacity` entries and copy the current ones. */
static bool set_capacity(KilnArena *arena, KilnConfigNode *node, size_t capacity)
{
    KilnConfigNode old = *node;
    size_t size = sizeof(*node->entries);

    node->capacity = capacity;
    if (is_hashed(node))
        size += SLOTS_PER_ENTRY * sizeof(uint32_t);
    node->entries = capacity < UINT32_MAX ? kiln_arena_alloc(arena, capacity * size) : NULL;
    if (node->entries == NULL) {
        arena->failed = true;
        *node = old;
        return false;
    }
    if (node->count > 0)
        memcpy(node->entries, old.entries, node->count * sizeof(*node->entries));
    hash_entries(node);
    return true;
}

KilnEntry *kiln_node_append(KilnArena *arena, KilnConfigNode *node, const char *key,
                            KilnOrigin key_origin, KilnConfigNode *value)
{
    KilnEntry *entry;

    if (node == NULL || value == NULL || (key == NULL && node->kind == KILN_NODE_MAP) ||
        (node->count == node->capacity &&
         !set_capacity(arena, node, node->count > 0 ? node->count * 2 : 4)))
        return NULL;
    entry = &node->entries[node->count++];
    *entry = (KilnEntry) { .key = key, .key_origin = key_origin, .value = value };
    value->parent = node;
    value->at = (uint32_t)(node->count - 1);
    if (is_hashed(node))
        hash_entry(node, node->count - 1);
    return entry;
}

static KilnEntry *list_entry(const KilnConfigNode *list, const char *key)
{
    int64_t index;

    if (kiln_parse_i64(key, &index, NULL) < 0)
        return NULL;
    if (index < 0)
        index += (int64_t)list->count; /* -1 is the last */
    return index >= 0 && (uint64_t)index < list->count ? &list->entries[index] : NULL;
}

KilnEntry *kiln_node_entry(const KilnConfigNode *node, const char *key)
{
    if (node == NULL || node->kind == KILN_NODE_SCALAR)
        return NULL;
    if (node->kind == KILN_NODE_LIST)
        return list_entry(node, key);
    if (is_hashed(node)) {
        const uint32_t slot = *find_slot(node, key);

        return slot != 0 ? &node->entries[slot - 1] : NULL;
    }
    for (size_t i = 0; i < node->count; i++)
        if (strcmp(node->entries[i].key, key) == 0)
            return &node->entries[i];
    return NULL;
}

void kiln_node_remove(KilnConfigNode *node, KilnEntry *entry)
{
    size_t index = (size_t)(entry - node->entries);

    memmove(entry, entry + 1, (node->count - index - 1) * sizeof(*entry));
    node->count--;
    for (size_t i = index; i < node->count; i++)
        node->entries[i].value->at = (uint32_t)i;
    hash_entries(node);
}

void kiln_node_rename(KilnConfigNode *map, KilnEntry *entry, const char *key)
{
    entry->key = key;
    hash_entries(map);
}

size_t kiln_node_index(const KilnConfigNode *node)
{
    const KilnConfigNode *parent = node->parent;
    size_t i = node->at;

    if (i < parent->count && parent->entries[i].value == node)
        return i;
    for (i = 0; i < parent->count && parent->entries[i].value != node; i++)
        ;
    return i;
}

bool kiln_node_own_entries(KilnArena *arena, KilnConfigNode *node)
{
    if (node->count > 0)
        return set_capacity(arena, node, node->count);
    node->entries = NULL;
    node->capacity = 0;
    return true;
}

/* Replace the items by copies. */
static bool copy_items(KilnArena *arena, KilnConfigNode *node)
{
    for (size_t i = 0; i < node->count; i++) {
        KilnConfigNode *item = kiln_node_copy(arena, node->entries[i].value);

        if (item == NULL)
            return false;
        item->parent = node;
        item->at = (uint32_t)i;
        node->entries[i].value = item;
    }
    return true;
}

KilnConfigNode *kiln_node_copy(KilnArena *arena, const KilnConfigNode *node)
{
    KilnConfigNode *copy = kiln_arena_alloc(arena, sizeof(*copy));

    if (copy == NULL)
        return NULL;
    *copy = *node;
    copy->parent = NULL;
    copy->shared = false;
    if (node->replaced != NULL && (copy->replaced = kiln_node_copy(arena, node->replaced)) == NULL)
        return NULL;
    return kiln_node_own_entries(arena, copy) && copy_items(arena, copy) ? copy : NULL;
}

void kiln_node_replace(KilnEntry *entry, KilnConfigNode *parent, KilnConfigNode *value)
{
    KilnConfigNode *last = value;

    while (last->replaced != NULL)
        last = last->replaced;
    if (last != entry->value)
        last->replaced = entry->value;
    value->parent = parent;
    value->at = (uint32_t)(entry - parent->entries);
    entry->value = value;
}

bool kiln_list_freeze(KilnArena *arena, KilnConfigNode *list)
{
    KilnConfigNode *before = kiln_arena_alloc(arena, sizeof(*before));

    if (before == NULL)
        return false;
    *before = *list;
    list->replaced = before;
    list->shared = true;
    return true;
}

bool kiln_list_own(KilnArena *arena, KilnConfigNode *list)
{
    if (!list->shared)
        return true;
    list->shared = false;
    return kiln_node_own_entries(arena, list) && copy_items(arena, list);
}

size_t kiln_node_size(const KilnConfigNode *node)
{
    size_t n = 1;

    for (size_t i = 0; i < node->count; i++)
        n += kiln_node_size(node->entries[i].value);
    return n;
}

const char *kiln_node_kind_name(const KilnConfigNode *node)
{
    static const char *const names[] = {
        [KILN_SCALAR_STR] = "text",
        [KILN_SCALAR_NULL] = "null",
        [KILN_SCALAR_BOOL] = "a boolean",
        [KILN_SCALAR_INT] = "an integer",
        [KILN_SCALAR_FLOAT] = "a number",
        [KILN_SCALAR_MISSING] = "a missing value (?\?\?)",
        [KILN_SCALAR_INTERPOLATION] = "an interpolation",
    };

    if (node->kind == KILN_NODE_SCALAR)
        return names[node->scalar];
    return node->kind == KILN_NODE_MAP ? "a mapping" : "a list";
}

static bool equal_scalars(const KilnConfigNode *a, const KilnConfigNode *b)
{
    double x, y;

    if (a->scalar == KILN_SCALAR_INT || a->scalar == KILN_SCALAR_FLOAT)
        if ((b->scalar == KILN_SCALAR_INT || b->scalar == KILN_SCALAR_FLOAT) &&
            kiln_parse_f64(a->text, &x, NULL) == KILN_OK &&
            kiln_parse_f64(b->text, &y, NULL) == KILN_OK)
            return x == y;
    return a->scalar == b->scalar && strcmp(a->text, b->text) == 0;
}

bool kiln_node_equal(const KilnConfigNode *a, const KilnConfigNode *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == KILN_NODE_SCALAR)
        return equal_scalars(a, b);
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const KilnEntry *other = a->kind == KILN_NODE_LIST ? &b->entries[i]
                                                           : kiln_node_entry(b, a->entries[i].key);

        if (other == NULL || !kiln_node_equal(a->entries[i].value, other->value))
            return false;
    }
    return true;
}

bool kiln_path_next(const char **path, char buf[KILN_PATH_PART])
{
    const char *p = *path, *end;
    size_t length;

    if (*p == '.')
        p++;
    if (*p == '\0')
        return false;
    if (*p == '[') {
        end = strchr(++p, ']');
        if (end == NULL)
            end = p + strlen(p);
    } else {
        end = p + strcspn(p, ".[");
    }
    length = (size_t)(end - p);
    if (length >= KILN_PATH_PART)
        return false;
    memcpy(buf, p, length);
    buf[length] = '\0';
    *path = *end == ']' ? end + 1 : end;
    return true;
}

bool kiln_path_fits(const char *path)
{
    char part[KILN_PATH_PART];
    int parts = 0;

    while (parts <= KILN_PATH_PARTS && kiln_path_next(&path, part))
        parts++;
    return *path == '\0' && parts <= KILN_PATH_PARTS;
}

const char *kiln_node_nearest(const KilnConfigNode *node, const char *key)
{
    const char *near;
    const char **names;

    if (node == NULL || node->kind != KILN_NODE_MAP || node->count == 0)
        return NULL;
    names = malloc(node->count * sizeof(*names));
    if (names == NULL)
        return NULL;
    for (size_t i = 0; i < node->count; i++)
        names[i] = node->entries[i].key;
    near = kiln_nearest(key, names, node->count);
    free(names);
    return near;
}

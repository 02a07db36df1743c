/* Appends to lists, removes from them, replaces and deletes keys. */
#include "config/tree/edit.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "config/composed.h"
#include "config/interpolate/interpolate.h"
#include "config/provenance/error_origin.h"
#include "config/yaml/output.h"

static const char *const tags[] = { [KILN_EDIT_NONE] = "",
                                    [KILN_EDIT_APPEND] = "!append",
                                    [KILN_EDIT_REMOVE] = "!remove",
                                    [KILN_EDIT_REPLACE] = "!replace",
                                    [KILN_EDIT_DELETE] = "!delete" };

const char *kiln_edit_tag(KilnEdit mark)
{
    return tags[mark];
}

KilnEdit kiln_edit_find(const char *tag)
{
    for (size_t i = 1; tag != NULL && i < KILN_COUNT(tags); i++)
        if (strcmp(tags[i], tag) == 0)
            return (KilnEdit)i;
    return KILN_EDIT_NONE;
}

/* KILN_OK, or the error when memory ran out: functions here only check at their end. */
static KilnStatus memory_of(const KilnConfig *config, KilnError *err)
{
    return config->arena->failed ? kiln_error_nomem(err, sizeof(KilnConfigNode)) : KILN_OK;
}

/* ---- Lists ------------------------------------------------------------------------ */

/* The list of an entry, through interpolations; *ret is NULL when it is empty. */
static KilnStatus find_list(const KilnConfig *config, const KilnConfigNode *written,
                            const KilnConfigNode **ret, KilnError *err)
{
    const KilnConfigNode *node = NULL;
    char where[512] = "";
    KilnStatus status = kiln_config_resolve(config, written, &node, err);

    if (status < 0)
        return status;
    const bool empty = kiln_node_is_scalar(node, KILN_SCALAR_NULL) ||
                       kiln_node_is_scalar(node, KILN_SCALAR_MISSING);
    *ret = empty ? NULL : node;
    if (empty || node->kind == KILN_NODE_LIST)
        return KILN_OK;
    kiln_node_where(config, written, node, where, sizeof(where));
    return kiln_error_set(err, KILN_E_TYPE,
                          "%s is %s, not a list (%s); only lists can be appended to and removed "
                          "from",
                          kiln_node_path(config, written), kiln_node_kind_name(node), where);
}

static KilnConfigNode *new_list(KilnConfig *config, const KilnConfigNode *by)
{
    KilnMaker maker = { .arena = config->arena, .origin = by->origin, .layer = by->layer };
    KilnConfigNode *list = kiln_node_new(&maker, KILN_NODE_LIST);

    if (list != NULL)
        list->mark = by->mark;
    return list;
}

static void append_item(KilnConfig *config, KilnConfigNode *list, const KilnConfigNode *item)
{
    KilnConfigNode *copy = kiln_node_copy(config->arena, item);

    (void)kiln_node_append(config->arena, list, NULL, item->origin, copy);
}

static void append_items(KilnConfig *config, KilnConfigNode *list, const KilnConfigNode *from)
{
    if (from->kind != KILN_NODE_LIST)
        append_item(config, list, from);
    for (size_t i = 0; from->kind == KILN_NODE_LIST && i < from->count; i++)
        append_item(config, list, from->entries[i].value);
}

/* Append again to a list, in time and memory that do not grow with the list. */
static KilnStatus grow_list(KilnConfig *config, KilnConfigNode *list, const KilnConfigNode *more,
                            KilnError *err)
{
    if (kiln_list_freeze(config->arena, list)) {
        list->origin = more->origin;
        list->layer = more->layer;
        list->mark = more->mark;
        append_items(config, list, more);
    }
    return memory_of(config, err);
}

KilnStatus kiln_list_append(KilnConfig *config, KilnConfigNode *parent, KilnEntry *entry,
                            KilnConfigNode *more, KilnError *err)
{
    const KilnConfigNode *there = NULL;

    if (entry->value->grown)
        return grow_list(config, entry->value, more, err);
    KilnConfigNode *list = new_list(config, more);
    KilnStatus status = find_list(config, entry->value, &there, err);
    if (status < 0)
        return status;
    if (there != NULL)
        append_items(config, list, there);
    append_items(config, list, more);
    if (list != NULL) {
        list->grown = true;
        kiln_node_replace(entry, parent, list);
    }
    return memory_of(config, err);
}

static bool is_same(const KilnConfig *config, const KilnConfigNode *a, const KilnConfigNode *b)
{
    const KilnConfigNode *value = NULL;

    return kiln_node_equal(a, b) ||
           (kiln_config_resolve(config, a, &value, NULL) >= 0 && kiln_node_equal(value, b));
}

static bool holds(const KilnConfig *config, const KilnConfigNode *list, const KilnConfigNode *item)
{
    for (size_t i = 0; i < list->count; i++)
        if (is_same(config, list->entries[i].value, item))
            return true;
    return false;
}

/* Report that there is no such item, and which there are. */
static KilnStatus no_item(const KilnConfig *config, const KilnConfigNode *written,
                          const KilnConfigNode *list, const KilnConfigNode *item, KilnError *err)
{
    const char **names = calloc(list->count + 1, sizeof(*names)), *near = NULL;
    KilnText text = { 0 };
    size_t n = 0;

    for (size_t i = 0; names != NULL && i < list->count; i++)
        if (list->entries[i].value->kind == KILN_NODE_SCALAR)
            names[n++] = list->entries[i].value->text;
    if (item->kind == KILN_NODE_SCALAR && names != NULL)
        near = kiln_nearest(item->text, names, n);
    for (size_t i = 0; i < n && i < 20; i++)
        kiln_text_printf(&text, "%s%s", i == 0 ? "; it has " : ", ", names[i]);
    kiln_error_set(err, KILN_E_KEY, "%s has no item %s to remove%s%s%s%s",
                   kiln_node_path(config, written),
                   item->kind == KILN_NODE_SCALAR ? item->text : kiln_node_kind_name(item),
                   near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "", near == NULL && text.data != NULL ? text.data : "");
    free(names);
    kiln_text_release(&text);
    return KILN_E_KEY;
}

KilnStatus kiln_list_remove(KilnConfig *config, KilnConfigNode *parent, KilnEntry *entry,
                            KilnConfigNode *less, KilnError *err)
{
    const KilnConfigNode *there = NULL;
    KilnConfigNode *list = new_list(config, less), *items = new_list(config, less);
    KilnStatus status = find_list(config, entry->value, &there, err);

    if (status < 0)
        return status;
    append_items(config, items, less);
    if (list == NULL || items == NULL)
        return memory_of(config, err);
    for (size_t i = 0; i < items->count; i++)
        if (there == NULL || !holds(config, there, items->entries[i].value))
            return no_item(config, entry->value, there != NULL ? there : list,
                           items->entries[i].value, err);
    for (size_t i = 0; there != NULL && i < there->count; i++) {
        const KilnConfigNode *item = there->entries[i].value;
        bool goes = false;

        for (size_t j = 0; j < items->count; j++)
            goes |= is_same(config, item, items->entries[j].value);
        if (!goes)
            append_item(config, list, item);
    }
    kiln_node_replace(entry, parent, list);
    return memory_of(config, err);
}

/* Do the list and its history only edit the default? */
static bool only_edits(const KilnConfigNode *node)
{
    for (; node != NULL; node = node->replaced)
        if (node->kind != KILN_NODE_LIST ||
            (node->mark != KILN_EDIT_APPEND && node->mark != KILN_EDIT_REMOVE))
            return false;
    return true;
}

KilnStatus kiln_list_add_default(KilnConfig *config, KilnConfigNode *node,
                                 const KilnConfigNode *value, KilnError *err)
{
    if (value->kind != KILN_NODE_LIST || !only_edits(node))
        return KILN_OK;
    if (!kiln_list_own(config->arena, node))
        return kiln_error_nomem(err, sizeof(*node));
    for (; node != NULL; node = node->replaced) {
        KilnConfigNode own = *node;

        node->entries = NULL;
        node->count = node->capacity = 0;
        append_items(config, node, value);
        for (size_t i = 0; i < own.count; i++)
            (void)kiln_node_append(config->arena, node, NULL, own.entries[i].key_origin,
                                   own.entries[i].value);
    }
    return memory_of(config, err);
}

/* ---- Keys ------------------------------------------------------------------------- */

void kiln_removal_add(KilnConfig *config, const KilnRemoved *removal)
{
    if (KILN_ARENA_RESERVE(config->arena, config->removed, config->removed_capacity,
                           config->n_removed + 1))
        config->removed[config->n_removed++] = *removal;
}

const KilnRemoved *kiln_removal_find(const KilnConfig *config, const char *path)
{
    for (size_t i = config->n_removed; i-- > 0;)
        if (strcmp(config->removed[i].path, path) == 0)
            return &config->removed[i];
    return NULL;
}

KilnStatus kiln_entry_delete(KilnConfig *config, KilnConfigNode *parent, KilnEntry *entry,
                             KilnOrigin origin, const char *why, KilnError *err)
{
    KilnRemoved removal = { .path = kiln_node_path(config, entry->value),
                            .origin = origin,
                            .why = why,
                            .value = entry->value };

    kiln_removal_add(config, &removal);
    kiln_node_remove(parent, entry);
    return config->arena->failed ? kiln_error_nomem(err, sizeof(removal)) : KILN_OK;
}

static KilnStatus no_value(const KilnConfig *config, const KilnConfigNode *map, const char *key,
                           KilnEdit mark, KilnError *err)
{
    const char *near = kiln_node_nearest(map, key), *path = kiln_node_path(config, map);
    const char *dot = *path != '\0' ? "." : "";

    if (near == NULL)
        return kiln_error_set(err, KILN_E_KEY, "%s%s%s: no value to %s; a new key needs no tag",
                              path, dot, key, tags[mark]);
    return kiln_error_set(err, KILN_E_KEY, "%s%s%s: no value to %s; did you mean '%s%s%s'?", path,
                          dot, key, tags[mark], path, dot, near);
}

static KilnStatus put_new(KilnConfig *config, KilnConfigNode *map, const char *key,
                          KilnOrigin key_origin, KilnConfigNode *value, KilnError *err)
{
    KilnConfigNode *list = value;

    if (value->mark == KILN_EDIT_DELETE || value->mark == KILN_EDIT_REMOVE)
        return no_value(config, map, key, value->mark, err);
    if (value->mark == KILN_EDIT_APPEND && value->kind != KILN_NODE_LIST) {
        list = new_list(config, value);
        append_items(config, list, value);
    }
    if (kiln_node_append(config->arena, map, key, key_origin, list) == NULL)
        return memory_of(config, err);
    return kiln_edit_settle(config, list, err);
}

KilnStatus kiln_edit_apply(KilnConfig *config, KilnConfigNode *map, const char *key,
                           KilnOrigin key_origin, KilnConfigNode *value, KilnError *err)
{
    KilnEntry *entry = kiln_node_entry(map, key);

    if (entry == NULL)
        return put_new(config, map, key, key_origin, value, err);
    if (value->mark == KILN_EDIT_APPEND)
        return kiln_list_append(config, map, entry, value, err);
    if (value->mark == KILN_EDIT_REMOVE)
        return kiln_list_remove(config, map, entry, value, err);
    if (value->mark == KILN_EDIT_DELETE)
        return kiln_entry_delete(config, map, entry, value->origin, NULL, err);
    kiln_node_replace(entry, map, value);
    return kiln_edit_settle(config, value, err);
}

KilnStatus kiln_edit_settle(const KilnConfig *config, const KilnConfigNode *value, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < value->count && status >= 0; i++) {
        const KilnEntry *entry = &value->entries[i];
        KilnEdit mark = entry->value->mark;

        status = kiln_edit_settle(config, entry->value, err);
        if (status >= 0 && (mark == KILN_EDIT_REMOVE || mark == KILN_EDIT_DELETE)) {
            kiln_error_set(err, KILN_E_KEY, "%s: no value to %s",
                           kiln_node_path(config, entry->value), tags[mark]);
            status = kiln_error_at(err, &entry->value->origin);
        }
    }
    return status;
}

/* ---- Values of a composed config ------------------------------------------------ */

const char *kiln_config_source(const KilnConfig *config, const char *key)
{
    const KilnConfigNode *node = NULL, *target = NULL;

    if (kiln_config_find(config, key, &node, NULL) < 0)
        return key;
    for (int i = 0;
         i < KILN_INTERPOLATION_DEPTH && (target = kiln_interpolation_target(config, node)) != NULL;
         i++)
        node = target;
    return node->kind == KILN_NODE_SCALAR ? kiln_node_path(config, node) : key;
}

/* The entry at `key`, as written; NULL: there is none. */
static KilnEntry *entry_at(const KilnConfig *config, const char *key, KilnConfigNode **ret_parent)
{
    KilnConfigNode *node = kiln_config_root(config);
    KilnEntry *entry = NULL;
    char part[KILN_PATH_PART];

    while (node != NULL && kiln_path_next(&key, part)) {
        if (!kiln_list_own(kiln_config_arena(config), node))
            return NULL;
        *ret_parent = node;
        entry = kiln_node_entry(node, part);
        node = entry != NULL ? entry->value : NULL;
    }
    return node != NULL ? entry : NULL;
}

KilnStatus kiln_config_change(KilnConfig *config, const char *key, const char *value,
                              const char *by, KilnConfigNode **ret_before, KilnError *err)
{
    KilnConfigNode *parent = NULL, *node = NULL;
    KilnEntry *entry = entry_at(config, key, &parent);
    const char *source = kiln_arena_strdup(kiln_config_arena(config), by);

    if (source == NULL)
        return kiln_error_nomem(err, strlen(by));
    if (entry == NULL || entry->value->kind != KILN_NODE_SCALAR)
        return kiln_error_set(err, KILN_E_KEY, "%s: the config has no such value to change", key);
    KilnStatus status = kiln_node_parse(kiln_config_arena(config), value, source, &node, err);
    if (status < 0)
        return status;
    node->layer = KILN_LAYER_ARGUMENT;
    node->origin = (KilnOrigin) { .source = source };
    if (ret_before != NULL)
        *ret_before = entry->value;
    kiln_node_replace(entry, parent, node);
    return KILN_OK;
}

void kiln_config_change_back(KilnConfig *config, const char *key, KilnConfigNode *before)
{
    KilnConfigNode *parent = NULL;
    KilnEntry *entry = entry_at(config, key, &parent);

    if (entry != NULL)
        entry->value = before;
}

static KilnStatus no_mapping(const char *path, KilnError *err)
{
    return kiln_error_set(err, KILN_E_KEY, "%s: the config has no such mapping", path);
}

/* The mapping at `path`, which nothing else refers to. */
static KilnStatus own_mapping(KilnConfig *config, const char *path, KilnConfigNode **ret,
                              KilnError *err)
{
    KilnConfigNode *node = kiln_config_root(config);
    const char *rest = path;
    char part[KILN_PATH_PART];

    while (kiln_path_next(&rest, part)) {
        KilnEntry *entry = node->kind == KILN_NODE_MAP ? kiln_node_entry(node, part) : NULL;
        const KilnConfigNode *value = NULL;

        if (entry == NULL)
            return no_mapping(path, err);
        KilnStatus status = kiln_config_resolve(config, entry->value, &value, err);
        if (status < 0)
            return status;
        if (value != entry->value) {
            KilnConfigNode *copy = kiln_node_copy(kiln_config_arena(config), value);

            if (copy == NULL)
                return kiln_error_nomem(err, sizeof(*copy));
            kiln_node_replace(entry, node, copy);
        }
        node = entry->value;
    }
    *ret = node;
    return node->kind == KILN_NODE_MAP ? KILN_OK : no_mapping(path, err);
}

KilnStatus kiln_config_put(KilnConfig *config, const char *path, const char *key, const char *value,
                           const char *by, KilnError *err)
{
    KilnArena *arena = kiln_config_arena(config);
    KilnConfigNode *map = NULL, *node = NULL;
    const char *source = kiln_arena_strdup(arena, by), *own = kiln_arena_strdup(arena, key);
    KilnStatus status = source != NULL && own != NULL ? own_mapping(config, path, &map, err)
                                                      : kiln_error_nomem(err, strlen(key));

    if (status >= 0)
        status = kiln_node_parse(arena, value, source, &node, err);
    if (status < 0)
        return status;
    node->layer = KILN_LAYER_ARGUMENT;
    KilnEntry *entry = kiln_node_entry(map, own);
    if (entry != NULL)
        kiln_node_replace(entry, map, node);
    else if (kiln_node_append(arena, map, own, node->origin, node) == NULL)
        return kiln_error_nomem(err, sizeof(*node));
    return KILN_OK;
}

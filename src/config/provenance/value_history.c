/* Collects the histories of a config's values. */
#include "config/provenance/value_history.h"

#include <string.h>

#include "base/array.h"
#include "config/interpolate/interpolate.h"
#include "config/tree/edit.h"
#include "config/provenance/origin.h"
#include "config/composed.h"

enum { MAX_REFERENCES = 16 };

KilnValueHistory *kiln_histories_add(KilnValueHistories *histories, const char *key)
{
    if (!KILN_ARENA_RESERVE(histories->arena, histories->list, histories->capacity,
                            histories->count + 1))
        return NULL;
    KilnValueHistory *history = &histories->list[histories->count++];
    *history = (KilnValueHistory) { .key = key, .is_set = true };
    return history;
}

KilnValueChange *kiln_history_add_change(KilnValueHistories *histories, KilnValueHistory *history)
{
    if (history == NULL || !KILN_ARENA_RESERVE(histories->arena, history->changes,
                                               history->capacity, history->count + 1))
        return NULL;
    KilnValueChange *change = &history->changes[history->count++];
    *change = (KilnValueChange) { 0 };
    return change;
}

KilnValueHistory *kiln_histories_find(const KilnValueHistories *histories, const char *key)
{
    for (size_t i = 0; i < histories->count; i++)
        if (strcmp(histories->list[i].key, key) == 0)
            return &histories->list[i];
    return NULL;
}

/* ---- References -------------------------------------------------------------------------- */

static void find_references(KilnValueHistories *histories, const KilnConfigNode *node,
                            const char **ret, size_t *n)
{
    bool text = kiln_node_is_scalar(node, KILN_SCALAR_INTERPOLATION);

    for (const char *p = text ? strstr(node->text, "${") : NULL; p != NULL && *n < MAX_REFERENCES;
         p = strstr(p + 2, "${")) {
        const KilnConfigNode *target = kiln_interpolation_at(histories->config, node, p);
        const char *key = target != NULL ? kiln_node_path(histories->config, target) : NULL;
        bool known = key == NULL || *key == '\0';

        for (size_t i = 0; i < *n && !known; i++)
            known = strcmp(ret[i], key) == 0;
        if (!known)
            ret[(*n)++] = key;
    }
    for (size_t i = 0; node->kind == KILN_NODE_LIST && i < node->count; i++)
        find_references(histories, node->entries[i].value, ret, n);
}

static const char **references_of(KilnValueHistories *histories, const KilnConfigNode *node)
{
    const char *found[MAX_REFERENCES + 1] = { NULL };
    size_t n = 0;

    find_references(histories, node, found, &n);
    if (n == 0)
        return NULL;
    const char **copy = kiln_arena_alloc(histories->arena, (n + 1) * sizeof(*found));
    return copy != NULL ? memcpy(copy, found, (n + 1) * sizeof(*found)) : NULL;
}

/* ---- Changes ----------------------------------------------------------------------------- */

static const char *origin_text(KilnValueHistories *histories, const KilnOrigin *origin)
{
    KilnText text = { 0 };

    kiln_origin_write(&text, origin);
    const char *copy = kiln_text_to_arena(&text, histories->arena);
    return copy != NULL ? copy : "";
}

/* References are printed for the value in force only: the first. */
static void add_values(KilnValueHistories *histories, KilnValueHistory *history,
                       const KilnConfigNode *node)
{
    for (; node != NULL; node = node->replaced) {
        KilnValueChange *change = kiln_history_add_change(histories, history);

        if (change == NULL)
            return;
        *change = (KilnValueChange) {
            .value = node,
            .origin = origin_text(histories, &node->origin),
            .tag = node->mark != KILN_EDIT_NONE ? kiln_edit_tag(node->mark) : NULL,
            .references = history->count == 1 ? references_of(histories, node) : NULL,
        };
    }
}

/* The removals of the key, newest first, each with the values that the key had until then. */
static void add_removals(KilnValueHistories *histories, KilnValueHistory *history)
{
    for (size_t i = histories->config->n_removed; i-- > 0;) {
        const KilnRemoved *removed = &histories->config->removed[i];

        if (strcmp(removed->path, history->key) != 0)
            continue;
        KilnValueChange *change = kiln_history_add_change(histories, history);
        if (change == NULL)
            return;
        change->origin = origin_text(histories, &removed->origin);
        change->why = removed->why;
        add_values(histories, history, removed->value);
    }
}

/* `node` is NULL for a key that was only removed. */
static KilnValueHistory *add_history(KilnValueHistories *histories, const char *key,
                                     const KilnConfigNode *node)
{
    KilnValueHistory *history = kiln_histories_add(histories, key);

    if (history != NULL) {
        add_values(histories, history, node);
        add_removals(histories, history);
    }
    return history;
}

/* ---- The tree ---------------------------------------------------------------------------- */

/* Do items come from elsewhere than their list? */
static bool has_own_histories(const KilnConfigNode *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const KilnConfigNode *item = list->entries[i].value;

        if (item->replaced != NULL || item->count > 0 || item->layer != list->layer ||
            (item->origin.source != list->origin.source && item->origin.source != NULL &&
             list->origin.source != NULL && strcmp(item->origin.source, list->origin.source) != 0))
            return true;
    }
    return false;
}

static void collect(KilnValueHistories *histories, const KilnConfigNode *node)
{
    bool map = node->kind == KILN_NODE_MAP && node->count > 0;

    if ((!map || node->replaced != NULL) && node->parent != NULL)
        (void)add_history(histories, kiln_node_path(histories->config, node), node);
    if (!map && !(node->kind == KILN_NODE_LIST && has_own_histories(node)))
        return;
    for (size_t i = 0; i < node->count; i++)
        collect(histories, node->entries[i].value);
}

static void collect_removed(KilnValueHistories *histories)
{
    const KilnConfig *config = histories->config;

    for (size_t i = 0; i < config->n_removed; i++) {
        const char *key = config->removed[i].path;

        if (kiln_histories_find(histories, key) != NULL)
            continue;
        KilnValueHistory *history = add_history(histories, key, NULL);
        if (history != NULL)
            history->is_set = kiln_node_find(config->root, key) != NULL;
    }
}

KilnStatus kiln_histories_collect(const KilnConfig *config, KilnValueHistories *ret, KilnError *err)
{
    KilnValueHistories histories = { .config = config, .arena = config->arena };

    collect(&histories, config->root);
    collect_removed(&histories);
    if (config->arena->failed)
        return kiln_error_nomem(err, sizeof(KilnValueHistory));
    *ret = histories;
    return KILN_OK;
}

/* Collects the histories of a config's values. */
#include "config/provenance/value_history.h"

#include <string.h>

#include "base/array.h"
#include "config/interpolate/interpolate.h"
#include "config/tree/edit.h"
#include "config/provenance/origin.h"
#include "config/composed.h"

enum { MAX_REFERENCES = 16 };

typedef struct Collector {
    const KilnConfig *config;
    KilnValueHistories *histories;
} Collector;

KilnValueHistory *kiln_histories_add(KilnValueHistories *histories, const char *key, size_t size)
{
    KilnValueChange *changes = kiln_arena_alloc(histories->arena, (size + 1) * sizeof(*changes));

    if (changes == NULL || !KILN_ARENA_RESERVE(histories->arena, histories->list,
                                               histories->capacity, histories->count + 1)) {
        histories->failed = true;
        return NULL;
    }
    KilnValueHistory *history = &histories->list[histories->count++];
    *history = (KilnValueHistory) { .key = key, .is_set = true, .changes = changes };
    return history;
}

KilnValueHistory *kiln_histories_find(const KilnValueHistories *histories, const char *key)
{
    for (size_t i = 0; i < histories->count; i++)
        if (strcmp(histories->list[i].key, key) == 0)
            return &histories->list[i];
    return NULL;
}

/* ---- References -------------------------------------------------------------------------- */

/* The key that the ${path} at `text` leads to from `node`; NULL for any other ${...}. */
static const char *referenced_key(const Collector *collector, const KilnConfigNode *node,
                                  const char *text)
{
    size_t n = strcspn(text + 2, "}:$ {");
    const char *whole = text[2 + n] == '}'
                            ? kiln_arena_strndup(collector->histories->arena, text, n + 3)
                            : NULL;
    KilnConfigNode alone = { .kind = KILN_NODE_SCALAR,
                             .scalar = KILN_SCALAR_INTERPOLATION,
                             .text = whole,
                             .parent = node->parent };
    const KilnConfigNode *target = whole != NULL
                                       ? kiln_interpolation_target(collector->config, &alone)
                                       : NULL;

    return target != NULL ? kiln_node_path(collector->config, target) : NULL;
}

static void find_references(const Collector *collector, const KilnConfigNode *node,
                            const char **ret, size_t *n)
{
    bool text = node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_INTERPOLATION;

    for (const char *p = text ? strstr(node->text, "${") : NULL; p != NULL && *n < MAX_REFERENCES;
         p = strstr(p + 2, "${")) {
        const char *key = referenced_key(collector, node, p);
        bool known = key == NULL || *key == '\0';

        for (size_t i = 0; i < *n && !known; i++)
            known = strcmp(ret[i], key) == 0;
        if (!known)
            ret[(*n)++] = key;
    }
    for (size_t i = 0; node->kind == KILN_NODE_LIST && i < node->count; i++)
        find_references(collector, node->entries[i].value, ret, n);
}

static const char **references_of(const Collector *collector, const KilnConfigNode *node)
{
    const char *found[MAX_REFERENCES + 1] = { NULL };
    size_t n = 0;

    find_references(collector, node, found, &n);
    if (n == 0)
        return NULL;
    const char **copy = kiln_arena_alloc(collector->histories->arena, (n + 1) * sizeof(*found));
    collector->histories->failed |= copy == NULL;
    return copy != NULL ? memcpy(copy, found, (n + 1) * sizeof(*found)) : NULL;
}

/* ---- Changes ----------------------------------------------------------------------------- */

static const char *origin_text(const Collector *collector, const KilnOrigin *origin)
{
    KilnText text = { 0 };

    kiln_origin_write(&text, origin);
    const char *copy = kiln_text_to_arena(&text, collector->histories->arena);
    collector->histories->failed |= copy == NULL;
    return copy != NULL ? copy : "";
}

static size_t count_values(const KilnConfigNode *node)
{
    size_t n = 0;

    for (; node != NULL; node = node->replaced)
        n++;
    return n;
}

/* How many changes add_removals makes. */
static size_t count_removals(const KilnConfig *config, const char *key)
{
    size_t n = 0;

    for (size_t i = 0; i < config->n_removed; i++)
        if (strcmp(config->removed[i].path, key) == 0)
            n += 1 + count_values(config->removed[i].value);
    return n;
}

/* References are printed for the value in force only: the first. */
static void add_values(const Collector *collector, KilnValueHistory *history,
                       const KilnConfigNode *node)
{
    for (; node != NULL; node = node->replaced) {
        bool first = history->count == 0;

        history->changes[history->count++] = (KilnValueChange) {
            .value = node,
            .origin = origin_text(collector, &node->origin),
            .tag = node->mark != KILN_EDIT_NONE ? kiln_edit_tag(node->mark) : NULL,
            .references = first ? references_of(collector, node) : NULL,
        };
    }
}

/* The removals of the key, newest first, each with the values that the key had until then. */
static void add_removals(const Collector *collector, KilnValueHistory *history)
{
    for (size_t i = collector->config->n_removed; i-- > 0;) {
        const KilnRemoved *removed = &collector->config->removed[i];

        if (strcmp(removed->path, history->key) != 0)
            continue;
        history->changes[history->count++] = (KilnValueChange) {
            .origin = origin_text(collector, &removed->origin),
            .why = removed->why,
        };
        add_values(collector, history, removed->value);
    }
}

/* `node` is NULL for a key that was only removed. */
static KilnValueHistory *add_history(const Collector *collector, const char *key,
                                     const KilnConfigNode *node)
{
    size_t size = count_values(node) + count_removals(collector->config, key);
    KilnValueHistory *history = kiln_histories_add(collector->histories, key, size);

    if (history != NULL) {
        add_values(collector, history, node);
        add_removals(collector, history);
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

static void collect(const Collector *collector, const KilnConfigNode *node)
{
    bool map = node->kind == KILN_NODE_MAP && node->count > 0;

    if ((!map || node->replaced != NULL) && node->parent != NULL)
        (void)add_history(collector, kiln_node_path(collector->config, node), node);
    if (!map && !(node->kind == KILN_NODE_LIST && has_own_histories(node)))
        return;
    for (size_t i = 0; i < node->count; i++)
        collect(collector, node->entries[i].value);
}

static void collect_removed(const Collector *collector)
{
    const KilnConfig *config = collector->config;

    for (size_t i = 0; i < config->n_removed; i++) {
        const char *key = config->removed[i].path;

        if (kiln_histories_find(collector->histories, key) != NULL)
            continue;
        KilnValueHistory *history = add_history(collector, key, NULL);
        if (history != NULL)
            history->is_set = kiln_node_find(config->root, key) != NULL;
    }
}

KilnStatus kiln_histories_collect(const KilnConfig *config, KilnValueHistories *ret, KilnError *err)
{
    KilnValueHistories histories = { .arena = config->arena };
    Collector collector = { .config = config, .histories = &histories };

    collect(&collector, config->root);
    collect_removed(&collector);
    if (histories.failed)
        return kiln_error_nomem(err, sizeof(KilnValueHistory));
    *ret = histories;
    return KILN_OK;
}

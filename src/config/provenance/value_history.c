/* Collects the histories of a config's values. */
#include "config/provenance/value_history.h"

#include <string.h>

#include "config/interpolate/interpolate.h"
#include "config/tree/edit.h"
#include "config/provenance/origin.h"
#include "config/composed.h"

enum { MOST_REFERENCES = 16 };

typedef struct Collector {
    const KilnConfig *config;
    KilnValueHistories *histories;
} Collector;

/* ---- Growing --------------------------------------------------------------------------- */

/* A larger copy of `items`, each of `size` bytes; NULL when memory ran out. */
static void *grow(KilnValueHistories *histories, const void *items, size_t count, size_t size)
{
    void *more = kiln_arena_alloc(histories->arena, (count + 1) * 2 * size);

    histories->failed |= more == NULL;
    if (more != NULL && count > 0)
        memcpy(more, items, count * size);
    return more;
}

KilnValueHistory *kiln_histories_add(KilnValueHistories *histories, const char *key)
{
    if (histories->count == histories->capacity) {
        KilnValueHistory *list = grow(histories, histories->list, histories->count, sizeof(*list));

        if (list == NULL)
            return NULL;
        histories->capacity = (histories->count + 1) * 2;
        histories->list = list;
    }
    KilnValueHistory *history = &histories->list[histories->count++];
    *history = (KilnValueHistory) { .key = key, .there = true };
    return history;
}

/* A story holds 0, 2, 6, 14, ... steps before it has to grow. */
static bool is_full(size_t count)
{
    return ((count + 2) & (count + 1)) == 0;
}

KilnValueChange *kiln_history_add_change(KilnValueHistories *histories, KilnValueHistory *history)
{
    if (is_full(history->count)) {
        KilnValueChange *steps = grow(histories, history->steps, history->count, sizeof(*steps));

        if (steps == NULL)
            return NULL;
        history->steps = steps;
    }
    history->steps[history->count] = (KilnValueChange) { 0 };
    return &history->steps[history->count++];
}

/* ---- References -------------------------------------------------------------------------- */

/* The key that the ${path} at `text` leads to from `node`; NULL when it is no such thing. */
static const char *reference(const Collector *collector, const KilnConfigNode *node,
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

    for (const char *p = text ? strstr(node->text, "${") : NULL; p != NULL && *n < MOST_REFERENCES;
         p = strstr(p + 2, "${")) {
        const char *key = reference(collector, node, p);
        bool known = key == NULL || *key == '\0';

        for (size_t i = 0; i < *n && !known; i++)
            known = strcmp(ret[i], key) == 0;
        if (!known)
            ret[(*n)++] = key;
    }
    for (size_t i = 0; node->kind == KILN_NODE_LIST && i < node->count; i++)
        find_references(collector, node->entries[i].value, ret, n);
}

/* ---- Steps ------------------------------------------------------------------------------- */

static const char *place_of(const Collector *collector, const KilnOrigin *origin)
{
    KilnText text = { 0 };
    const char *copy;

    kiln_origin_write(&text, origin);
    copy = kiln_arena_strdup(collector->histories->arena, text.data != NULL ? text.data : "");
    collector->histories->failed |= copy == NULL || text.failed;
    kiln_text_release(&text);
    return copy != NULL ? copy : "";
}

static void add_values(const Collector *collector, KilnValueHistory *history,
                       const KilnConfigNode *node)
{
    for (; node != NULL; node = node->replaced) {
        KilnValueChange *step = kiln_history_add_change(collector->histories, history);
        const char *refers[MOST_REFERENCES + 1] = { NULL };
        size_t n = 0;

        if (step == NULL)
            return;
        step->value = node;
        step->place = place_of(collector, &node->origin);
        if (node->mark != KILN_EDIT_NONE)
            step->tag = kiln_edit_tag(node->mark);
        if (history->count == 1) /* those of what is in force are told, no others */
            find_references(collector, node, refers, &n);
        if (n == 0)
            continue;
        step->refers = kiln_arena_alloc(collector->histories->arena, (n + 1) * sizeof(*refers));
        if (step->refers != NULL)
            memcpy(step->refers, refers, (n + 1) * sizeof(*refers));
        collector->histories->failed |= step->refers == NULL;
    }
}

/* How often the key was taken away, newest first, and what it had been until then. */
static void add_removals(const Collector *collector, KilnValueHistory *history)
{
    for (size_t i = collector->config->n_removed; i-- > 0;) {
        const KilnRemoved *removed = &collector->config->removed[i];
        KilnValueChange *step;

        if (strcmp(removed->path, history->key) != 0)
            continue;
        step = kiln_history_add_change(collector->histories, history);
        if (step == NULL)
            return;
        step->place = place_of(collector, &removed->origin);
        step->why = removed->why;
        add_values(collector, history, removed->value);
    }
}

static void add_story(const Collector *collector, const KilnConfigNode *node)
{
    KilnValueHistory *history = kiln_histories_add(collector->histories,
                                                   kiln_node_path(collector->config, node));

    if (history == NULL)
        return;
    add_values(collector, history, node);
    add_removals(collector, history);
}

/* ---- The tree ------------------------------------------------------------------------------ */

/* Does an item have anything to tell that its list does not? */
static bool tells_more(const KilnConfigNode *list)
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
        add_story(collector, node);
    if (!map && !(node->kind == KILN_NODE_LIST && tells_more(node)))
        return;
    for (size_t i = 0; i < node->count; i++)
        collect(collector, node->entries[i].value);
}

static bool has_story(const KilnValueHistories *histories, const char *key)
{
    for (size_t i = 0; i < histories->count; i++)
        if (strcmp(histories->list[i].key, key) == 0)
            return true;
    return false;
}

static void collect_removed(const Collector *collector)
{
    for (size_t i = 0; i < collector->config->n_removed; i++) {
        const char *key = collector->config->removed[i].path;
        KilnValueHistory *history;

        if (has_story(collector->histories, key))
            continue;
        history = kiln_histories_add(collector->histories, key);
        if (history == NULL)
            return;
        history->there = kiln_node_find(collector->config->root, key) != NULL;
        add_removals(collector, history);
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

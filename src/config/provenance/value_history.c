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
    KilnStories *stories;
} Collector;

/* ---- Growing --------------------------------------------------------------------------- */

/* A larger copy of `items`, each of `size` bytes; NULL when memory ran out. */
static void *grow(KilnStories *stories, const void *items, size_t count, size_t size)
{
    void *more = kiln_arena_alloc(stories->arena, (count + 1) * 2 * size);

    stories->failed |= more == NULL;
    if (more != NULL && count > 0)
        memcpy(more, items, count * size);
    return more;
}

KilnStory *kiln_stories_add(KilnStories *stories, const char *key)
{
    if (stories->count == stories->capacity) {
        KilnStory *list = grow(stories, stories->list, stories->count, sizeof(*list));

        if (list == NULL)
            return NULL;
        stories->capacity = (stories->count + 1) * 2;
        stories->list = list;
    }
    KilnStory *story = &stories->list[stories->count++];
    *story = (KilnStory) { .key = key, .there = true };
    return story;
}

/* A story holds 0, 2, 6, 14, ... steps before it has to grow. */
static bool is_full(size_t count)
{
    return ((count + 2) & (count + 1)) == 0;
}

KilnStep *kiln_story_add(KilnStories *stories, KilnStory *story)
{
    if (is_full(story->count)) {
        KilnStep *steps = grow(stories, story->steps, story->count, sizeof(*steps));

        if (steps == NULL)
            return NULL;
        story->steps = steps;
    }
    story->steps[story->count] = (KilnStep) { 0 };
    return &story->steps[story->count++];
}

/* ---- References -------------------------------------------------------------------------- */

/* The key that the ${path} at `text` leads to from `node`; NULL when it is no such thing. */
static const char *reference(const Collector *collector, const KilnConfigNode *node,
                             const char *text)
{
    size_t n = strcspn(text + 2, "}:$ {");
    const char *whole = text[2 + n] == '}'
                            ? kiln_arena_strndup(collector->stories->arena, text, n + 3)
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

    kiln_place_write(&text, origin);
    copy = kiln_arena_strdup(collector->stories->arena, text.data != NULL ? text.data : "");
    collector->stories->failed |= copy == NULL || text.failed;
    kiln_text_release(&text);
    return copy != NULL ? copy : "";
}

static void add_values(const Collector *collector, KilnStory *story, const KilnConfigNode *node)
{
    for (; node != NULL; node = node->replaced) {
        KilnStep *step = kiln_story_add(collector->stories, story);
        const char *refers[MOST_REFERENCES + 1] = { NULL };
        size_t n = 0;

        if (step == NULL)
            return;
        step->value = node;
        step->place = place_of(collector, &node->origin);
        if (node->mark != KILN_MARK_NONE)
            step->tag = kiln_mark_tag(node->mark);
        if (story->count == 1) /* those of what is in force are told, no others */
            find_references(collector, node, refers, &n);
        if (n == 0)
            continue;
        step->refers = kiln_arena_alloc(collector->stories->arena, (n + 1) * sizeof(*refers));
        if (step->refers != NULL)
            memcpy(step->refers, refers, (n + 1) * sizeof(*refers));
        collector->stories->failed |= step->refers == NULL;
    }
}

/* How often the key was taken away, newest first, and what it had been until then. */
static void add_removals(const Collector *collector, KilnStory *story)
{
    for (size_t i = collector->config->n_removed; i-- > 0;) {
        const KilnRemoved *removed = &collector->config->removed[i];
        KilnStep *step;

        if (strcmp(removed->path, story->key) != 0)
            continue;
        step = kiln_story_add(collector->stories, story);
        if (step == NULL)
            return;
        step->place = place_of(collector, &removed->origin);
        step->why = removed->why;
        add_values(collector, story, removed->value);
    }
}

static void add_story(const Collector *collector, const KilnConfigNode *node)
{
    KilnStory *story = kiln_stories_add(collector->stories,
                                        kiln_node_path(collector->config, node));

    if (story == NULL)
        return;
    add_values(collector, story, node);
    add_removals(collector, story);
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

static bool has_story(const KilnStories *stories, const char *key)
{
    for (size_t i = 0; i < stories->count; i++)
        if (strcmp(stories->list[i].key, key) == 0)
            return true;
    return false;
}

static void collect_removed(const Collector *collector)
{
    for (size_t i = 0; i < collector->config->n_removed; i++) {
        const char *key = collector->config->removed[i].path;
        KilnStory *story;

        if (has_story(collector->stories, key))
            continue;
        story = kiln_stories_add(collector->stories, key);
        if (story == NULL)
            return;
        story->there = kiln_node_find(collector->config->root, key) != NULL;
        add_removals(collector, story);
    }
}

KilnStatus kiln_stories_collect(const KilnConfig *config, KilnStories *ret, KilnError *err)
{
    KilnStories stories = { .arena = config->arena };
    Collector collector = { .config = config, .stories = &stories };

    collect(&collector, config->root);
    collect_removed(&collector);
    if (stories.failed)
        return kiln_error_nomem(err, sizeof(KilnStory));
    *ret = stories;
    return KILN_OK;
}

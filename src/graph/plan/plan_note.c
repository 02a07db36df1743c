/* Compares the plan keys of two steps, which are sequences of leaves and nodes (record.c), up to
 * the first difference. */
#include "graph/plan/plan_note.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"

enum { LEAF_WORDS = 4 + KILN_MAX_RANK, NODE_WORDS = 3 };

/* An attribute's eight bytes: most are doubles or small integers. */
static void print_word(char *buf, size_t size, int64_t word)
{
    double number;

    memcpy(&number, &word, sizeof(number));
    if (word > -(INT64_C(1) << 40) && word < INT64_C(1) << 40)
        snprintf(buf, size, "%" PRId64, word);
    else
        snprintf(buf, size, "%g", number);
}

static void note_attribute(KilnGraph *graph, const KilnOp *op, const char *layer,
                           const unsigned char *now, const unsigned char *before)
{
    char *note = graph->plan_cache.note, old[32], new[32];
    int64_t words[2] = { 0 };

    for (size_t at = 0; at < op->attrs_size && words[0] == words[1]; at += sizeof(*words)) {
        const size_t left = op->attrs_size - at;
        const size_t bytes = left < sizeof(*words) ? left : sizeof(*words);

        words[0] = words[1] = 0;
        memcpy(&words[0], before + at, bytes);
        memcpy(&words[1], now + at, bytes);
    }
    print_word(old, sizeof(old), words[0]);
    print_word(new, sizeof(new), words[1]);
    snprintf(note, sizeof(graph->plan_cache.note),
             "%zu plans were made, since the attribute of %s%s%s changes from step to step (%s, "
             "then %s); make the number data, which needs no new plan: kiln_graph_scalar",
             graph->plan_cache.made, op->name, layer[0] != '\0' ? " in " : "", layer, old, new);
}

static void note_shape(KilnGraph *graph, const int64_t *now, const int64_t *before)
{
    KilnShape shapes[2] = { { .rank = (int)before[3] }, { .rank = (int)now[3] } };
    char texts[2][KILN_SHAPE_TEXT];

    memcpy(shapes[0].dim, before + 4, sizeof(shapes[0].dim));
    memcpy(shapes[1].dim, now + 4, sizeof(shapes[1].dim));
    snprintf(graph->plan_cache.note, sizeof(graph->plan_cache.note),
             "%zu plans were made, since the shape of an input changes from step to step (%s, then "
             "%s); pad the lengths to a few sizes: datamodule.buckets",
             graph->plan_cache.made, kiln_shape_text(&shapes[0], texts[0], sizeof(texts[0])),
             kiln_shape_text(&shapes[1], texts[1], sizeof(texts[1])));
}

/* The words at `at`; false at the end of the key. */
static bool read_words(const unsigned char *key, size_t n, size_t at, int64_t *ret, size_t words)
{
    if (n - at < words * sizeof(*ret))
        return false;
    memcpy(ret, key + at, words * sizeof(*ret));
    return true;
}

/* Notes the first difference of two keys whose leaves and operations correspond. */
static void compare(KilnGraph *graph, const KilnPlanKey *now, const unsigned char *before, size_t n)
{
    size_t at = 0, node = 0;
    int64_t a[LEAF_WORDS], b[LEAF_WORDS];

    while (read_words(now->bytes, now->n, at, a, NODE_WORDS) &&
           read_words(before, n, at, b, NODE_WORDS) && a[0] == b[0]) {
        if (a[0] == -1) {
            if (!read_words(now->bytes, now->n, at, a, LEAF_WORDS) ||
                !read_words(before, n, at, b, LEAF_WORDS))
                return;
            if (memcmp(a, b, sizeof(a)) != 0 && graph->plan_cache.made > KILN_NOTE_SHAPES)
                note_shape(graph, a, b);
            if (memcmp(a, b, sizeof(a)) != 0)
                return;
            at += sizeof(a);
            continue;
        }
        const KilnNode *of = graph->nodes[node++];
        const size_t head = (NODE_WORDS + (size_t)of->n_inputs) * sizeof(int64_t);
        if (n - at < head + of->op->attrs_size || memcmp(now->bytes + at, before + at, head) != 0)
            return;
        at += head;
        if (memcmp(now->bytes + at, before + at, of->op->attrs_size) != 0) {
            note_attribute(graph, of->op, of->layer != NULL ? of->layer : "", now->bytes + at,
                           before + at);
            return;
        }
        at += of->op->attrs_size;
    }
}

void kiln_plan_note(KilnGraph *graph)
{
    KilnPlanCache *cache = &graph->plan_cache;
    const KilnPlanKey *now = &graph->plan_key;

    if (cache->made < KILN_NOTE_PLANS || cache->note[0] != '\0')
        return;
    if (cache->made > KILN_NOTE_PLANS && cache->last_key != NULL)
        compare(graph, now, cache->last_key, cache->last_n);
    unsigned char *copy = realloc(cache->last_key, now->n + 1);
    if (copy == NULL)
        return;
    memcpy(copy, now->bytes, now->n);
    cache->last_key = copy;
    cache->last_n = now->n;
}

const char *kiln_plan_note_take(KilnGraph *graph)
{
    KilnPlanCache *cache = &graph->plan_cache;

    if (cache->note[0] == '\0' || cache->note_taken)
        return NULL;
    cache->note_taken = true;
    return cache->note;
}

/* Writes and reads origins.yaml, the histories of a run's values. */
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "config/yaml/output.h"
#include "config/yaml/yaml_reader.h"
#include "config/kiln_node/run_files.h"
#include "config/composed.h"
#include "config/provenance/value_history.h"
#include "config/yaml/yaml_writer.h"

/* ---- Writing --------------------------------------------------------------------------- */

/* A value in one line, in flow style: {a: 1, b: [x]}; its entries from the one at `first`. */
static void flow(KilnText *text, const KilnConfigNode *node, size_t first)
{
    bool map = node->kind == KILN_NODE_MAP;

    if (node->kind == KILN_NODE_SCALAR) {
        if (node->scalar == KILN_SCALAR_STR || node->scalar == KILN_SCALAR_INTERPOLATION) {
            kiln_write_quoted(text, node->text);
        } else if (node->scalar == KILN_SCALAR_MISSING) {
            kiln_text_append(text, "'?\?\?'");
        } else {
            kiln_write_scalar(text, node);
        }
        return;
    }
    kiln_text_char(text, map ? '{' : '[');
    for (size_t i = first; i < node->count; i++) {
        kiln_text_append(text, i > first ? ", " : "");
        if (map) {
            kiln_write_quoted(text, node->entries[i].key);
            kiln_text_append(text, ": ");
        }
        flow(text, node->entries[i].value, 0);
    }
    kiln_text_char(text, map ? '}' : ']');
}

/* The step, of which `older` (NULL: none) is the one before. A list that was appended to has
 * its new items alone, or ten thousand appends would fill the disk. */
static void write_step(const KilnValueChange *step, const KilnValueChange *older, KilnText *text)
{
    const KilnConfigNode *value = step->value;

    if (value != NULL && value->shared && older != NULL && value->replaced == older->value) {
        kiln_text_append(text, "  - {more: ");
        flow(text, value, older->value->count);
    } else if (value != NULL) {
        kiln_text_append(text, "  - {value: ");
        flow(text, value, 0);
    } else {
        kiln_text_append(text, "  - {removed: true");
    }
    kiln_text_append(text, ", from: ");
    kiln_write_quoted(text, step->place);
    if (step->tag != NULL) {
        kiln_text_append(text, ", tag: ");
        kiln_write_quoted(text, step->tag);
    }
    if (step->why != NULL) {
        kiln_text_append(text, ", why: ");
        kiln_write_quoted(text, step->why);
    }
    for (size_t i = 0; step->refers != NULL && step->refers[i] != NULL; i++) {
        kiln_text_append(text, i == 0 ? ", refers: [" : ", ");
        kiln_write_quoted(text, step->refers[i]);
    }
    kiln_text_append(text, step->refers != NULL ? "]}\n" : "}\n");
}

static bool is_hidden(const KilnConfig *config, const char *key)
{
    char part[KILN_PATH_PART];

    return kiln_path_next(&key, part) && kiln_config_hides(config, part);
}

void kiln_histories_write(const KilnValueHistories *histories, const KilnConfig *config,
                          KilnText *text)
{
    size_t start = text->length;

    for (size_t i = 0; i < histories->count; i++) {
        const KilnValueHistory *history = &histories->list[i];

        if (is_hidden(config, history->key))
            continue;
        kiln_write_string(text, history->key);
        kiln_text_append(text, ":\n");
        for (size_t j = 0; j < history->count; j++)
            write_step(&history->steps[j], j + 1 < history->count ? &history->steps[j + 1] : NULL,
                       text);
    }
    if (text->length == start)
        kiln_text_append(text, "{}\n");
}

KilnStatus kiln_config_origins_yaml(const KilnConfig *config, const char *before, char **ret,
                                    KilnError *err)
{
    KilnValueHistories histories = { 0 };
    KilnText text = { 0 };
    char *taken;
    KilnStatus status = before != NULL ? kiln_histories_resume(config, before, &histories, err)
                                       : kiln_histories_collect(config, &histories, err);

    if (status < 0)
        return status;
    kiln_histories_write(&histories, config, &text);
    taken = kiln_text_take(&text);
    if (taken == NULL)
        return kiln_error_nomem(err, 1);
    *ret = taken;
    return KILN_OK;
}

KilnStatus kiln_config_origins_check(const char *path, KilnError *err)
{
    KilnArena arena = { 0 };
    KilnValueHistories histories = { 0 };
    KilnStatus status = kiln_histories_read(&arena, path, &histories, err);

    kiln_arena_release(&arena);
    return status;
}

/* ---- Reading ----------------------------------------------------------------------------- */

static KilnStatus damaged(const KilnConfigNode *at, KilnError *err)
{
    kiln_error_set(err, KILN_E_FORMAT,
                   "this is not what kiln writes into a run folder: expected a mapping from keys "
                   "to lists of {value: ..., from: ...}");
    return kiln_error_at(err, &at->origin);
}

static const char *text_at(const KilnConfigNode *map, const char *key)
{
    const KilnConfigNode *node = kiln_node_get(map, key);

    return node != NULL && node->kind == KILN_NODE_SCALAR ? node->text : NULL;
}

static KilnStatus read_step(KilnValueHistories *histories, KilnValueHistory *history,
                            const KilnConfigNode *from, KilnError *err)
{
    const KilnConfigNode *refers = kiln_node_get(from, "refers");
    KilnValueChange *step = kiln_history_add_change(histories, history);

    if (step == NULL)
        return kiln_error_nomem(err, sizeof(*step));
    step->value = kiln_node_get(from, "value");
    step->place = text_at(from, "from");
    step->why = text_at(from, "why");
    step->tag = text_at(from, "tag");
    if (step->place == NULL || (step->value == NULL && kiln_node_get(from, "more") == NULL &&
                                text_at(from, "removed") == NULL))
        return damaged(from, err);
    if (refers == NULL || refers->kind != KILN_NODE_LIST)
        return KILN_OK;
    step->refers = kiln_arena_alloc(histories->arena, (refers->count + 1) * sizeof(*step->refers));
    if (step->refers == NULL)
        return kiln_error_nomem(err, sizeof(*step));
    for (size_t i = 0; i < refers->count; i++) {
        if (refers->entries[i].value->kind != KILN_NODE_SCALAR)
            return damaged(refers, err);
        step->refers[i] = refers->entries[i].value->text;
    }
    step->refers[refers->count] = NULL;
    return KILN_OK;
}

/* The list `before` with the items of `more` after its own. */
static KilnStatus lengthen(KilnArena *arena, const KilnConfigNode *before,
                           const KilnConfigNode *more, KilnValueChange *ret, KilnError *err)
{
    KilnConfigNode *list = kiln_arena_alloc(arena, sizeof(*list));
    bool ok = list != NULL;

    if (ok) {
        *list = *before;
        list->replaced = (KilnConfigNode *)before;
        ok = before->shared || kiln_node_own_entries(arena, list);
        list->shared = true;
    }
    for (size_t i = 0; i < more->count && ok; i++)
        ok = kiln_node_append(arena, list, NULL, more->origin, more->entries[i].value) != NULL;
    ret->value = list;
    return ok ? KILN_OK : kiln_error_nomem(err, sizeof(*list));
}

/* Put together the lists of which the file has the new items alone, the oldest first. */
static KilnStatus read_more(const KilnValueHistories *histories, const KilnValueHistory *history,
                            const KilnConfigNode *steps, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = history->count; i-- > 0 && status >= 0;) {
        const KilnConfigNode *more = kiln_node_get(steps->entries[i].value, "more");
        const KilnConfigNode *before = i + 1 < history->count ? history->steps[i + 1].value : NULL;

        if (more == NULL || history->steps[i].value != NULL)
            continue;
        if (before == NULL || before->kind != KILN_NODE_LIST || more->kind != KILN_NODE_LIST)
            return damaged(more, err);
        status = lengthen(histories->arena, before, more, &history->steps[i], err);
    }
    return status;
}

static KilnStatus read_story(KilnValueHistories *histories, const KilnEntry *entry, KilnError *err)
{
    KilnValueHistory *history = kiln_histories_add(histories, entry->key);
    KilnStatus status = KILN_OK;

    if (history == NULL)
        return kiln_error_nomem(err, sizeof(*history));
    if (entry->value->kind != KILN_NODE_LIST || entry->value->count == 0)
        return damaged(entry->value, err);
    for (size_t i = 0; i < entry->value->count && status >= 0; i++)
        status = read_step(histories, history, entry->value->entries[i].value, err);
    if (status >= 0)
        status = read_more(histories, history, entry->value, err);
    history->there = history->count > 0 && history->steps[0].value != NULL;
    return status;
}

/* The YAML file as a mapping, whose nodes live in the arena. */
static KilnStatus read_map(KilnArena *arena, const char *path, KilnConfigNode **ret, KilnError *err)
{
    KilnMaker maker = { .arena = arena, .origin = { .source = kiln_arena_strdup(arena, path) } };
    char *text = NULL;
    size_t size = 0;
    KilnStatus status = maker.origin.source == NULL
                            ? kiln_error_nomem(err, strlen(path))
                            : kiln_file_read(path, KILN_YAML_BYTES, &text, &size, err);

    if (status >= 0)
        status = kiln_yaml_read(&maker, text, size, false, ret, err);
    free(text);
    if (status >= 0 && (*ret == NULL || (*ret)->kind != KILN_NODE_MAP))
        return kiln_error_set(err, KILN_E_FORMAT, "%s: expected a mapping", path);
    return status;
}

KilnStatus kiln_histories_read(KilnArena *arena, const char *path, KilnValueHistories *ret,
                               KilnError *err)
{
    KilnValueHistories histories = { .arena = arena };
    KilnConfigNode *map = NULL;
    KilnStatus status = read_map(arena, path, &map, err);

    for (size_t i = 0; status >= 0 && i < map->count; i++)
        status = read_story(&histories, &map->entries[i], err);
    if (status >= 0)
        *ret = histories;
    return status;
}

/* ---- A run that goes on ------------------------------------------------------------------- */

/* Set, or taken away, by the command line: see kiln_origin_write. */
static bool is_argument(const KilnValueChange *step)
{
    return kiln_starts_with(step->place, "argument ");
}

static KilnValueHistory *find(const KilnValueHistories *histories, const char *key)
{
    for (size_t i = 0; i < histories->count; i++)
        if (strcmp(histories->list[i].key, key) == 0)
            return &histories->list[i];
    return NULL;
}

/* The first `n` steps of `from` in front of those of `to`. */
static bool put_first(KilnValueHistories *histories, KilnValueHistory *to,
                      const KilnValueHistory *from, size_t n)
{
    const KilnValueHistory old = *to;
    bool ok = true;

    *to = (KilnValueHistory) { .key = old.key, .there = from->there };
    for (size_t i = 0; i < n + old.count && ok; i++) {
        KilnValueChange *step = kiln_history_add_change(histories, to);

        ok = step != NULL;
        if (ok)
            *step = i < n ? from->steps[i] : old.steps[i - n];
    }
    return ok;
}

KilnStatus kiln_histories_resume(const KilnConfig *config, const char *path,
                                 KilnValueHistories *ret, KilnError *err)
{
    KilnValueHistories now = { 0 }, run = { 0 };
    KilnStatus status = kiln_histories_collect(config, &now, err);
    bool ok = true;

    if (status >= 0)
        status = kiln_histories_read(config->arena, path, &run, err);
    for (size_t i = 0; i < now.count && ok && status >= 0; i++) {
        const KilnValueHistory *history = &now.list[i];
        KilnValueHistory *before = find(&run, history->key);
        size_t n = 0;

        while (n < history->count && is_argument(&history->steps[n]))
            n++;
        /* It may be there already: a run is resumed twice by the same words. */
        if (n == 0 || (before != NULL && before->count > 0 &&
                       strcmp(before->steps[0].place, history->steps[0].place) == 0))
            continue;
        if (before == NULL)
            before = kiln_histories_add(&run, history->key);
        ok = before != NULL && put_first(&run, before, history, n);
    }
    if (status >= 0 && !ok)
        status = kiln_error_nomem(err, sizeof(KilnValueHistory));
    if (status >= 0)
        *ret = run;
    return status;
}

/* ---- A past run --------------------------------------------------------------------------- */

static KilnStatus tell(KilnArena *arena, const char *origins, const char *values, const char *key,
                       KilnText *text, KilnError *err)
{
    KilnValueHistories histories = { 0 };
    KilnConfigNode *root = NULL;
    KilnStatus status = kiln_histories_read(arena, origins, &histories, err);

    if (status >= 0)
        status = read_map(arena, values, &root, err);
    if (status >= 0)
        status = kiln_histories_explain(&histories, NULL, root, key, text, err);
    if (err != NULL)
        err->origin = (KilnOrigin) { 0 }; /* it ends with the arena */
    return status;
}

KilnStatus kiln_run_explain(const char *dir, const char *key, char **ret, KilnError *err)
{
    KilnArena arena = { 0 };
    KilnText text = { 0 };
    char *origins = kiln_path_join(dir, ".kiln/origins.yaml");
    char *values = kiln_path_join(dir, ".kiln/config.yaml");
    KilnStatus status = origins == NULL || values == NULL
                            ? kiln_error_nomem(err, strlen(dir))
                            : tell(&arena, origins, values, key, &text, err);
    char *taken = status >= 0 ? kiln_text_take(&text) : NULL;

    if (status >= 0 && taken == NULL)
        status = kiln_error_nomem(err, 1);
    if (status >= 0)
        *ret = taken;
    kiln_text_release(&text);
    kiln_arena_release(&arena);
    free(origins);
    free(values);
    return status;
}

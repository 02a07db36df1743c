/* Writes and reads origins.yaml, and explains past runs from it. */
#include "config/provenance/origins_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/system/file.h"
#include "config/composed.h"
#include "config/provenance/origin.h"
#include "config/tree/tree.h"
#include "config/yaml/output.h"
#include "config/yaml/yaml_reader.h"
#include "config/yaml/yaml_writer.h"

/* ---- Writing --------------------------------------------------------------------------- */

static void write_field(KilnText *text, const char *name, const char *value)
{
    if (value == NULL)
        return;
    kiln_text_printf(text, ", %s: ", name);
    kiln_write_quoted(text, value);
}

/* `older` is the change before; NULL: none. Of a list that was appended to, only the new items are
 * written: whole lists would make ten thousand appends fill the disk. */
static void write_change(const KilnValueChange *change, const KilnValueChange *older,
                         KilnText *text)
{
    const KilnConfigNode *value = change->value;

    if (value != NULL && value->shared && older != NULL && value->replaced == older->value) {
        kiln_text_append(text, "  - {more: ");
        kiln_write_flow(text, value, older->value->count);
    } else if (value != NULL) {
        kiln_text_append(text, "  - {value: ");
        kiln_write_flow(text, value, 0);
    } else {
        kiln_text_append(text, "  - {removed: true");
    }
    write_field(text, "from", change->origin);
    write_field(text, "tag", change->tag);
    write_field(text, "why", change->why);
    for (size_t i = 0; change->references != NULL && change->references[i] != NULL; i++) {
        kiln_text_append(text, i == 0 ? ", refers: [" : ", ");
        kiln_write_quoted(text, change->references[i]);
    }
    kiln_text_append(text, change->references != NULL ? "]}\n" : "}\n");
}

KilnStatus kiln_config_origins_yaml(const KilnConfig *config, const char *before, char **ret,
                                    KilnError *err)
{
    KilnValueHistories histories = { 0 };
    KilnText text = { 0 };
    KilnStatus status = before != NULL ? kiln_histories_resume(config, before, &histories, err)
                                       : kiln_histories_collect(config, &histories, err);

    for (size_t i = 0; status >= 0 && i < histories.count; i++) {
        const KilnValueHistory *history = &histories.list[i];

        if (kiln_config_hides_path(config, history->key))
            continue;
        kiln_write_string(&text, history->key);
        kiln_text_append(&text, ":\n");
        for (size_t j = 0; j < history->count; j++)
            write_change(&history->changes[j],
                         j + 1 < history->count ? &history->changes[j + 1] : NULL, &text);
    }
    if (text.length == 0)
        kiln_text_append(&text, "{}\n");
    return kiln_text_finish(&text, status, ret, err);
}

/* ---- Reading ----------------------------------------------------------------------------- */

static KilnStatus damaged(const KilnConfigNode *at, KilnError *err)
{
    kiln_error_set(err, KILN_E_FORMAT,
                   "not an origins.yaml of kiln: expected a mapping from keys to lists of "
                   "{value: ..., from: ...}");
    return kiln_error_at(err, &at->origin);
}

/* False: the list is damaged. */
static bool read_references(KilnArena *arena, const KilnConfigNode *list, const char ***ret)
{
    const char **keys = NULL;

    if (list != NULL && list->kind == KILN_NODE_LIST)
        keys = kiln_arena_alloc(arena, (list->count + 1) * sizeof(*keys));
    *ret = keys;
    for (size_t i = 0; keys != NULL && i < list->count; i++)
        if ((keys[i] = list->entries[i].value->text) == NULL)
            return false;
    return true;
}

/* The value of a change: as it is written, or the list `before` with the items of `more`
 * appended. NULL: there is none. */
static const KilnConfigNode *read_value(KilnArena *arena, const KilnConfigNode *from,
                                        const KilnConfigNode *before)
{
    const KilnConfigNode *value = kiln_node_get(from, "value"), *more = kiln_node_get(from, "more");
    KilnConfigNode *list;

    if (value != NULL || more == NULL || more->kind != KILN_NODE_LIST || before == NULL ||
        before->kind != KILN_NODE_LIST || (list = kiln_arena_alloc(arena, sizeof(*list))) == NULL)
        return value;
    *list = *before;
    list->replaced = (KilnConfigNode *)before;
    if (!before->shared)
        (void)kiln_node_own_entries(arena, list);
    list->shared = true;
    for (size_t i = 0; i < more->count; i++)
        (void)kiln_node_append(arena, list, NULL, more->origin, more->entries[i].value);
    return list;
}

/* Changes are read oldest first: a list may continue the one before. */
static KilnStatus read_history(KilnValueHistories *histories, const KilnEntry *entry,
                               KilnError *err)
{
    KilnArena *arena = histories->arena;
    const KilnConfigNode *changes = entry->value, *value = NULL;
    KilnValueHistory *history = kiln_histories_add(histories, entry->key);

    if (changes->kind != KILN_NODE_LIST || changes->count == 0)
        return damaged(changes, err);
    if (history == NULL ||
        !KILN_ARENA_RESERVE(arena, history->changes, history->capacity, changes->count))
        return KILN_OK; /* the arena remembers it */
    history->count = changes->count;
    for (size_t i = changes->count; i-- > 0;) {
        const KilnConfigNode *from = changes->entries[i].value;
        KilnValueChange *change = &history->changes[i];

        value = read_value(arena, from, value);
        *change = (KilnValueChange) {
            .value = value,
            .origin = kiln_node_text(from, "from"),
            .why = kiln_node_text(from, "why"),
            .tag = kiln_node_text(from, "tag"),
        };
        if (change->origin == NULL || (value == NULL && kiln_node_text(from, "removed") == NULL) ||
            !read_references(arena, kiln_node_get(from, "refers"), &change->references))
            return damaged(from, err);
    }
    history->is_set = value != NULL;
    return KILN_OK;
}

/* A YAML file that holds a mapping. */
static KilnStatus read_map(KilnArena *arena, const char *path, KilnConfigNode **ret, KilnError *err)
{
    KilnStatus status = kiln_yaml_read_file(arena, path, ret, err);

    if (status >= 0 && (*ret == NULL || (*ret)->kind != KILN_NODE_MAP))
        return kiln_error_set(err, KILN_E_FORMAT, "%s: expected a mapping", path);
    return status;
}

static KilnStatus read_histories(KilnArena *arena, const char *path, KilnValueHistories *ret,
                                 KilnError *err)
{
    KilnConfigNode *map = NULL;
    KilnStatus status = read_map(arena, path, &map, err);

    *ret = (KilnValueHistories) { .arena = arena };
    for (size_t i = 0; status >= 0 && i < map->count; i++)
        status = read_history(ret, &map->entries[i], err);
    return arena->failed ? kiln_error_nomem(err, sizeof(KilnValueHistory)) : status;
}

KilnStatus kiln_config_origins_check(const char *path, KilnError *err)
{
    KilnArena arena = { 0 };
    KilnValueHistories histories;
    KilnStatus status = read_histories(&arena, path, &histories, err);

    kiln_arena_release(&arena);
    return status;
}

/* ---- Resumed runs ------------------------------------------------------------------------- */

/* Whether a value did not come from the files of the run, but from its command line or data. */
static bool is_of_session(const char *origin)
{
    return kiln_starts_with(origin, "argument ") || kiln_starts_with(origin, KILN_ORIGIN_INFERRED);
}

static bool resume_history(KilnValueHistories *run, const KilnValueHistory *now)
{
    KilnValueHistory *before = kiln_histories_find(run, now->key);
    size_t n = 0;

    while (n < now->count && is_of_session(now->changes[n].origin))
        n++;
    /* A run that is resumed twice by the same arguments has the change already. */
    if (n == 0 || (before != NULL && before->count > 0 &&
                   strcmp(before->changes[0].origin, now->changes[0].origin) == 0))
        return true;
    if (before == NULL)
        before = kiln_histories_add(run, now->key);
    if (before == NULL ||
        !KILN_ARENA_RESERVE(run->arena, before->changes, before->capacity, before->count + n))
        return false;
    memmove(before->changes + n, before->changes, before->count * sizeof(*before->changes));
    memcpy(before->changes, now->changes, n * sizeof(*now->changes));
    before->count += n;
    before->is_set = now->is_set;
    return true;
}

KilnStatus kiln_histories_resume(const KilnConfig *config, const char *path,
                                 KilnValueHistories *ret, KilnError *err)
{
    KilnValueHistories now = { 0 }, run = { 0 };
    KilnStatus status = kiln_histories_collect(config, &now, err);

    if (status >= 0)
        status = read_histories(config->arena, path, &run, err);
    for (size_t i = 0; i < now.count && status >= 0; i++)
        if (!resume_history(&run, &now.list[i]))
            status = kiln_error_nomem(err, sizeof(KilnValueHistory));
    if (status >= 0)
        *ret = run;
    return status;
}

/* ---- Past runs ---------------------------------------------------------------------------- */

KilnStatus kiln_run_explain(const char *dir, const char *key, char **ret, KilnError *err)
{
    KilnArena arena = { 0 };
    KilnValueHistories histories;
    KilnConfigNode *values = NULL;
    char *origins_path = kiln_path_join(dir, ".kiln/origins.yaml");
    char *values_path = kiln_path_join(dir, ".kiln/config.yaml");
    KilnStatus status = origins_path != NULL && values_path != NULL
                            ? read_histories(&arena, origins_path, &histories, err)
                            : kiln_error_nomem(err, strlen(dir));

    if (status >= 0)
        status = read_map(&arena, values_path, &values, err);
    if (status >= 0)
        status = kiln_histories_explain(&histories, values, key, ret, err);
    if (err != NULL)
        err->origin = (KilnOrigin) { 0 }; /* its text ends with the arena */
    kiln_arena_release(&arena);
    free(origins_path);
    free(values_path);
    return status;
}

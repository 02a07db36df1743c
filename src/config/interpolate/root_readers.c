/* Finds out whether a key of the root is read. Searches texts and resolves nothing: a condition
 * that is false today reads too. */
#include "config/interpolate/root_readers.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "kiln/array.h"
#include "config/defaults/group_files.h"
#include "config/composed.h"

/* ---- Text ------------------------------------------------------------------------ */

/* Does a path begin at `p`: `lr` in "..lr", but not in "optimizer.lr"? */
static bool is_first(const char *text, const char *p)
{
    while (p > text && p[-1] == '.')
        p--;
    return p == text || (!kiln_is_word(p[-1]) && p[-1] != ']' && p[-1] != '}');
}

/* Does a resolver that takes keys, "oc.select:", end at `p`? */
static bool takes_keys(const char *text, const char *p)
{
    static const char *const names[] = { "select", "deprecated", "keys", "values" };

    while (p > text && p[-1] == ' ')
        p--;
    if (p == text || *--p != ':')
        return false;
    for (size_t i = 0; i < KILN_COUNT(names); i++) {
        size_t length = strlen(names[i]);

        if ((size_t)(p - text) >= length && strncmp(p - length, names[i], length) == 0)
            return true;
    }
    return false;
}

/* The "${" at `p` computes part of a name: could that be the key? */
static bool may_become(const char *text, const char *p, const char *key)
{
    const char *start = p;

    while (start > text && kiln_is_word(start[-1]))
        start--;
    if (start < p)
        return is_first(text, start) && strncmp(start, key, (size_t)(p - start)) == 0;
    return (p - text >= 2 && p[-1] == '{' && p[-2] == '$') || takes_keys(text, p);
}

static bool text_reads(const char *text, const char *key)
{
    size_t length = strlen(key);
    int depth = 0;

    for (const char *p = strstr(text, "${"); p != NULL && *p != '\0'; p++) {
        if (p[0] == '$' && p[1] == '{') {
            if (depth++ > 0 && may_become(text, p, key))
                return true;
            p++;
        } else if (*p == '}' && depth > 0) {
            depth--;
        } else if (depth > 0 && strncmp(p, key, length) == 0 && !kiln_is_word(p[length]) &&
                   (p == text || !kiln_is_word(p[-1])) && is_first(text, p)) {
            return true;
        }
    }
    return false;
}

/* ---- Texts ----------------------------------------------------------------------- */

static void add_text(KilnReads *reads, const char *text, const char *top)
{
    if (!KILN_RESERVE(reads->items, reads->capacity, reads->count + 1)) {
        reads->failed = true;
        return;
    }
    reads->items[reads->count++] = (KilnRead) { text, top };
}

/* Everything in the root's key `top`, with overridden values; items that a list shares with its
 * history only once. */
static void add_node(KilnReads *reads, const KilnConfigNode *node, const char *top)
{
    bool added = false;

    for (; node != NULL; added = node->shared, node = node->replaced) {
        if (kiln_node_is_scalar(node, KILN_SCALAR_INTERPOLATION))
            add_text(reads, node->text, top);
        for (size_t i = 0; i < node->count && !added; i++)
            add_node(reads, node->entries[i].value, top);
    }
}

static void add_root(KilnReads *reads, const KilnConfigNode *root)
{
    for (size_t i = 0; i < root->count; i++)
        add_node(reads, root->entries[i].value,
                 root->entries[i].key != NULL ? root->entries[i].key : "");
}

static void visit_file(void *ctx, const char *group, const char *option, const KilnConfigFile *file)
{
    KilnReads *reads = ctx;
    bool global = file->package != NULL ? strcmp(file->package, "_global_") == 0
                                        : strchr(file->path, '/') == NULL;
    const char *top = file->package != NULL ? file->package : file->path;

    top = kiln_arena_strndup(reads->files->arena, top, strcspn(top, "/."));
    reads->failed |= top == NULL;
    (void)group, (void)option;
    if (file->content == NULL || top == NULL)
        return;
    if (global)
        add_root(reads, file->content);
    else
        add_node(reads, file->content, top);
}

static void read_files(KilnReads *reads)
{
    KilnConfig *files = calloc(1, sizeof(*files));

    reads->files = files;
    reads->failed |= files == NULL;
    if (files == NULL)
        return;
    files->arena = &files->storage;
    files->search = (KilnSearch) { .arena = files->arena,
                                   .config = files,
                                   .folders = reads->config->search.folders };
    reads->failed |= kiln_search_walk(&files->search, "", visit_file, reads, NULL) == KILN_E_NOMEM;
}

/* ---- Queries --------------------------------------------------------------------- */

static bool is_repeated(const KilnConfigNode *node)
{
    if (node->aliased)
        return true;
    for (size_t i = 0; i < node->count; i++)
        if (is_repeated(node->entries[i].value))
            return true;
    return node->replaced != NULL && is_repeated(node->replaced);
}

static bool find(const KilnReads *reads, const char *key)
{
    for (size_t i = 0; i < reads->count; i++)
        if (strcmp(reads->items[i].top, key) != 0 && text_reads(reads->items[i].text, key))
            return true;
    return reads->failed; /* unknown: no warning */
}

bool kiln_reads_key(KilnReads *reads, const KilnEntry *entry)
{
    if (reads->count == 0)
        add_root(reads, reads->config->root);
    if (is_repeated(entry->value) || find(reads, entry->key))
        return true;
    if (reads->files == NULL)
        read_files(reads);
    return find(reads, entry->key);
}

void kiln_reads_release(KilnReads *reads)
{
    kiln_config_free(reads->files);
    free(reads->items);
    *reads = (KilnReads) { .config = reads->config };
}

/* ---- Recorded configs ------------------------------------------------------------- */

/* Is "a/b/.kiln" or ".kiln/" a folder of that name? */
static bool is_own_folder(const char *path)
{
    const size_t n = strlen(".kiln");
    size_t end = strlen(path);

    while (end > 0 && path[end - 1] == '/')
        end--;
    return end >= n && kiln_starts_with(path + end - n, ".kiln") &&
           (end == n || path[end - n - 1] == '/');
}

bool kiln_config_is_recorded(const KilnConfig *config)
{
    const char *folder = config->search.folders != NULL ? config->search.folders->path : "";
    char *state = kiln_path_join(folder, "state.json");
    bool recorded = is_own_folder(folder) || (state != NULL && kiln_is_file(state));

    free(state);
    return recorded;
}

/* Finds out whether a key of the root is read. Searches texts and resolves nothing: a condition
 * that is false today reads too. */
#include "config/interpolate/root_readers.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "config/defaults/group_files.h"
#include "config/composed.h"

/* ---- Text ------------------------------------------------------------------------ */

/* Is a name that begins at `p` a key: after "${", or after a resolver that takes keys? */
static bool is_key(const char *text, const char *p)
{
    static const char *const before[] = { "${", "select:", "deprecated:", "keys:", "values:" };

    while (p > text && p[-1] == ' ')
        p--;
    for (size_t i = 0; i < KILN_COUNT(before); i++) {
        size_t length = strlen(before[i]);

        if ((size_t)(p - text) >= length && strncmp(p - length, before[i], length) == 0)
            return true;
    }
    return false;
}

/* Goes from path to path. One that "${" continues is computed: could the key be its first name? */
static bool text_reads(const char *text, const char *key)
{
    size_t length = strlen(key);
    int depth = 0;

    for (const char *p = text; *p != '\0';) {
        const char *path = p, *name = p + strspn(p, ".");
        size_t n = 0;

        while (kiln_is_word(name[n]))
            n++;
        while (kiln_is_word(*p) || (*p != '\0' && strchr(".[]", *p) != NULL))
            p++;
        bool computed = p[0] == '$' && p[1] == '{', continues = path > text && path[-1] == '}';
        bool whole = !computed || name + n < p;
        if (depth > 0 && !continues && strncmp(name, key, n) == 0 &&
            (n == length || (!whole && (n > 0 || is_key(text, path)))))
            return true;
        depth += computed;
        depth -= *p == '}' && depth > 0;
        p += computed ? 2 : *p != '\0';
    }
    return false;
}

/* ---- Trees ----------------------------------------------------------------------- */

/* Does anything in the node, with overridden values, read the key? Items that a list shares with
 * its history count only once. */
static bool node_reads(const KilnConfigNode *node, const char *key)
{
    bool seen = false;

    for (; node != NULL; seen = node->shared, node = node->replaced) {
        if (kiln_node_is_scalar(node, KILN_SCALAR_INTERPOLATION) && text_reads(node->text, key))
            return true;
        for (size_t i = 0; i < node->count && !seen; i++)
            if (node_reads(node->entries[i].value, key))
                return true;
    }
    return false;
}

static bool root_reads(const KilnConfigNode *root, const char *key)
{
    for (size_t i = 0; i < root->count; i++)
        if ((root->entries[i].key == NULL || strcmp(root->entries[i].key, key) != 0) &&
            node_reads(root->entries[i].value, key))
            return true;
    return false;
}

static bool file_reads(const KilnConfigFile *file, const char *key)
{
    const char *package = file->package != NULL ? file->package : file->path;
    size_t n = strcspn(package, "/.");

    if (file->content == NULL)
        return false;
    if (file->package != NULL ? strcmp(package, "_global_") == 0 : strchr(package, '/') == NULL)
        return root_reads(file->content, key);
    return !(strncmp(package, key, n) == 0 && key[n] == '\0') && node_reads(file->content, key);
}

static bool is_repeated(const KilnConfigNode *node)
{
    if (node->aliased)
        return true;
    for (size_t i = 0; i < node->count; i++)
        if (is_repeated(node->entries[i].value))
            return true;
    return node->replaced != NULL && is_repeated(node->replaced);
}

/* ---- Queries --------------------------------------------------------------------- */

static KilnConfig *read_files(const KilnConfig *config)
{
    KilnConfig *files = calloc(1, sizeof(*files));

    if (files == NULL)
        return NULL;
    files->arena = &files->storage;
    files->search =
        (KilnSearch) { .arena = files->arena, .config = files, .folders = config->search.folders };
    kiln_search_walk(&files->search, "", NULL, NULL); /* the search keeps them */
    return files;
}

bool kiln_reads_key(KilnReads *reads, const KilnEntry *entry)
{
    if (is_repeated(entry->value) || root_reads(reads->config->root, entry->key))
        return true;
    if (reads->files == NULL)
        reads->files = read_files(reads->config);
    if (reads->files == NULL || reads->files->arena->failed)
        return true; /* unknown: no warning */
    for (const KilnConfigFile *file = reads->files->search.files; file != NULL; file = file->next)
        if (file_reads(file, entry->key))
            return true;
    return false;
}

void kiln_reads_release(KilnReads *reads)
{
    kiln_config_free(reads->files);
    reads->files = NULL;
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

/* Reads the entries of defaults lists, and derives their paths, packages and keys. */
#include "config/defaults/defaults_entry.h"

#include <string.h>

#include "base/text.h"
#include "config/composed.h"
#include "config/provenance/error_list.h"
#include "config/tree/tree.h"

static const char *dots_for_slashes(KilnArena *arena, const char *text)
{
    char *copy = kiln_arena_strdup(arena, text);

    for (char *p = copy; p != NULL && *p != '\0'; p++)
        if (*p == '/')
            *p = '.';
    return copy;
}

static const char *join(KilnArena *arena, const char *a, char between, const char *b)
{
    if (*a == '\0' || *b == '\0')
        return *a == '\0' ? b : a;
    return kiln_arena_printf(arena, "%s%c%s", a, between, b);
}

/* `name` from the top: below base_dir unless it starts with a slash. */
static const char *from_top(KilnArena *arena, const KilnDefaultsEntry *entry, const char *name)
{
    const char *path = *name == '/' ? name + 1 : join(arena, entry->base_dir, '/', name);

    return path != NULL ? kiln_own_path(arena, path) : NULL;
}

static const char *folder_of(KilnArena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? kiln_arena_strndup(arena, path, (size_t)(slash - path)) : "";
}

const char *kiln_defaults_entry_group(KilnArena *arena, const KilnDefaultsEntry *entry)
{
    const char *path = from_top(arena, entry, entry->name);

    if (path == NULL || entry->kind == KILN_DEFAULTS_GROUP)
        return path;
    /* A plain name is in the group of the config that lists it. */
    return folder_of(arena, path);
}

const char *kiln_defaults_entry_path(KilnArena *arena, const KilnDefaultsEntry *entry)
{
    const char *path = from_top(arena, entry, entry->name);

    if (path == NULL || entry->kind != KILN_DEFAULTS_GROUP)
        return path;
    return kiln_arena_printf(arena, "%s/%s", path, entry->option != NULL ? entry->option : "");
}

/* The package that the name of the entry implies. */
static const char *relative_package(KilnArena *arena, const KilnDefaultsEntry *entry)
{
    const char *name = *entry->name == '/' ? entry->name + 1 : entry->name;

    name = kiln_own_path(arena, name);
    if (name != NULL && entry->kind != KILN_DEFAULTS_GROUP)
        name = folder_of(arena, name);
    return name != NULL ? dots_for_slashes(arena, name) : NULL;
}

const char *kiln_defaults_entry_package(KilnArena *arena, const KilnDefaultsEntry *entry,
                                        bool use_header)
{
    static const char top[] = "_global_";
    const char *package = entry->package, *found = NULL;

    if (package == NULL && use_header)
        package = entry->header;
    if (package == NULL)
        package = relative_package(arena, entry);
    if (package == NULL)
        return NULL;
    package = join(arena, entry->parent_package, '.', package);
    if (package == NULL)
        return NULL;
    /* The package starts after the last _global_. */
    for (const char *p = package; (p = strstr(p, top)) != NULL; p += sizeof(top) - 1)
        found = p;
    if (found == NULL)
        return kiln_own_path(arena, package);
    found += sizeof(top) - 1;
    return kiln_own_path(arena, *found == '.' ? found + 1 : found);
}

const char *kiln_defaults_entry_key(KilnArena *arena, const KilnDefaultsEntry *entry)
{
    const char *group = kiln_defaults_entry_group(arena, entry);
    const char *usual = group != NULL ? dots_for_slashes(arena, group) : NULL;
    const char *package = kiln_defaults_entry_package(arena, entry, false);

    if (usual == NULL || package == NULL || strcmp(usual, package) == 0)
        return usual != NULL && package != NULL ? group : NULL;
    return kiln_arena_printf(arena, "%s@%s", group, *package != '\0' ? package : "_global_");
}

bool kiln_defaults_entry_attach(KilnArena *arena, KilnDefaultsEntry *entry, const char *base_dir,
                                const char *parent_package, const KilnDefaultsEntry *parent)
{
    static const char word[] = "_group_";
    const char *at = entry->package != NULL ? strstr(entry->package, word) : NULL;
    const char *group;

    entry->base_dir = base_dir;
    entry->parent_package = parent_package;
    entry->parent = parent;
    if (base_dir == NULL || parent_package == NULL || at == NULL)
        return base_dir != NULL && parent_package != NULL;
    /* _group_ in the package is the entry's group. */
    group = kiln_defaults_entry_group(arena, entry);
    group = group != NULL ? dots_for_slashes(arena, group) : NULL;
    if (group == NULL)
        return false;
    entry->package = kiln_arena_printf(arena, "_global_.%.*s%s%s", (int)(at - entry->package),
                                       entry->package, group, at + sizeof(word) - 1);
    return entry->package != NULL;
}

/* ---- Reading ------------------------------------------------------------------ */

typedef struct ListReader {
    KilnArena *arena;
    KilnErrors *errors;
    bool failed; /* memory is out */
} ListReader;

static KilnDefaultsEntry *wrong(ListReader *reader, const KilnOrigin *origin, const char *what)
{
    kiln_errors_report(reader->errors, origin, KILN_E_TYPE, "defaults: %s", what);
    return NULL;
}

/* Splits "name@package"; with `words`, after the words optional and override. */
static bool split_name(ListReader *reader, const char *text, bool words, KilnDefaultsEntry *entry)
{
    const char *at = strchr(text, '@');
    size_t n = at != NULL ? (size_t)(at - text) : strlen(text);

    while (words) {
        size_t word = strcspn(text, " ");

        if (word >= n)
            break;
        if (strncmp(text, "optional ", 9) == 0)
            entry->optional = true;
        else if (strncmp(text, "override ", 9) == 0)
            entry->override = true;
        else
            return false;
        for (word++; text[word] == ' ';)
            word++;
        text += word;
        n -= word;
    }
    entry->name = kiln_arena_strndup(reader->arena, text, n);
    if (at != NULL) {
        n = strcspn(at + 1, ":");
        entry->package = kiln_arena_strndup(reader->arena, at + 1, n);
        if (entry->package != NULL && strcmp(entry->package, "_here_") == 0)
            entry->package = "";
        reader->failed |= entry->package == NULL;
    }
    reader->failed |= entry->name == NULL;
    return true;
}

static KilnDefaultsEntry *new_entry(ListReader *reader, KilnDefaultsEntryKind kind,
                                    KilnOrigin origin)
{
    KilnDefaultsEntry *entry = kiln_arena_alloc(reader->arena, sizeof(*entry));

    reader->failed |= entry == NULL;
    if (entry != NULL) {
        entry->kind = kind;
        entry->origin = entry->option_origin = origin;
    }
    return entry;
}

static bool is_text(const KilnConfigNode *node)
{
    return node->kind == KILN_NODE_SCALAR &&
           (node->scalar == KILN_SCALAR_STR || node->scalar == KILN_SCALAR_INTERPOLATION ||
            node->scalar == KILN_SCALAR_MISSING);
}

static KilnDefaultsEntry *read_config(ListReader *reader, const KilnConfigNode *item)
{
    bool self = strcmp(item->text, "_self_") == 0;
    KilnDefaultsEntry *entry = new_entry(reader, self ? KILN_DEFAULTS_SELF : KILN_DEFAULTS_CONFIG,
                                         item->origin);

    if (entry == NULL)
        return NULL;
    if (strncmp(item->text, "_self_@", 7) == 0)
        return wrong(reader, &item->origin, "_self_ has no package");
    if (*item->text == '\0')
        return wrong(reader, &item->origin, "an entry without a name");
    (void)split_name(reader, item->text, false, entry);
    return entry;
}

static KilnDefaultsEntry *read_options(ListReader *reader, KilnDefaultsEntry *entry,
                                       const KilnConfigNode *list)
{
    KilnOrigin *origins = kiln_arena_alloc(reader->arena, (list->count + 1) * sizeof(*origins));

    entry->options = kiln_arena_alloc(reader->arena, (list->count + 1) * sizeof(char *));
    entry->origins = origins;
    reader->failed |= entry->options == NULL || origins == NULL;
    for (size_t i = 0; !reader->failed && i < list->count; i++) {
        const KilnConfigNode *item = list->entries[i].value;

        if (!is_text(item))
            return wrong(reader, &item->origin,
                         "expected the name of an option; quote it if it is text ('yes', '01')");
        if (item->scalar == KILN_SCALAR_INTERPOLATION)
            return wrong(reader, &item->origin, "a list of options has no interpolations");
        entry->options[i] = item->text;
        origins[i] = item->origin;
    }
    return entry;
}

static KilnDefaultsEntry *read_group(ListReader *reader, const KilnConfigNode *item)
{
    const KilnEntry *pair = &item->entries[0];
    const KilnConfigNode *value = pair->value;
    KilnDefaultsEntry *entry = new_entry(reader, KILN_DEFAULTS_GROUP, pair->key_origin);

    if (entry == NULL)
        return NULL;
    if (!split_name(reader, pair->key, true, entry))
        return wrong(reader, &pair->key_origin,
                     "expected 'group: option', 'optional group: option' or "
                     "'override group: option'");
    if (value->kind == KILN_NODE_LIST)
        return read_options(reader, entry, value);
    entry->option_origin = value->origin;
    if (kiln_node_is_scalar(value, KILN_SCALAR_NULL))
        return entry;
    if (!is_text(value)) {
        kiln_errors_report(reader->errors, &value->origin, KILN_E_TYPE,
                           "defaults: %s: expected the name of an option, a list of them or null, "
                           "got %s; quote it if it is text ('yes', '01')",
                           pair->key, kiln_node_kind_name(value));
        return NULL;
    }
    entry->option = value->text;
    return entry;
}

static KilnDefaultsEntry *read_entry(ListReader *reader, const KilnConfigNode *item)
{
    if (is_text(item))
        return read_config(reader, item);
    if (item->kind == KILN_NODE_MAP && item->count == 1)
        return read_group(reader, item);
    if (item->kind == KILN_NODE_MAP)
        return wrong(reader, &item->origin,
                     item->count == 0 ? "an empty entry; expected 'group: option'"
                                      : "several groups in one entry; give each its own '- '");
    return wrong(reader, &item->origin, "expected '- group: option', '- name' or '- _self_'");
}

KilnDefaultsEntry **kiln_defaults_entries_read(KilnArena *arena, const KilnConfigNode *list,
                                               KilnErrors *errors, size_t *ret_count)
{
    ListReader reader = { .arena = arena, .errors = errors };
    KilnDefaultsEntry **entries = kiln_arena_alloc(arena,
                                                   (list->count + 1) * sizeof(KilnDefaultsEntry *));
    size_t n = 0;

    for (size_t i = 0; entries != NULL && i < list->count; i++) {
        KilnDefaultsEntry *entry = read_entry(&reader, list->entries[i].value);

        if (entry != NULL)
            entries[n++] = entry;
    }
    *ret_count = n;
    return reader.failed ? NULL : entries;
}

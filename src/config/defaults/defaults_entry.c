/* Reads the entries of defaults lists, and derives their paths, packages and keys. */
#include "config/defaults/defaults_entry.h"

#include <string.h>

#include "base/text.h"
#include "config/composed.h"
#include "config/provenance/error_list.h"
#include "config/tree/tree.h"

/* These return NULL for NULL, and when memory is out. */
static const char *dots_for_slashes(KilnArena *arena, const char *text)
{
    char *copy = text != NULL ? kiln_arena_strdup(arena, text) : NULL;

    for (char *p = copy; p != NULL && *p != '\0'; p++)
        if (*p == '/')
            *p = '.';
    return copy;
}

static const char *join(KilnArena *arena, const char *a, char between, const char *b)
{
    if (a == NULL || b == NULL)
        return NULL;
    if (*a == '\0' || *b == '\0')
        return *a == '\0' ? b : a;
    return kiln_arena_printf(arena, "%s%c%s", a, between, b);
}

static const char *folder_of(KilnArena *arena, const char *path)
{
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;

    if (slash != NULL)
        return kiln_arena_strndup(arena, path, (size_t)(slash - path));
    return path != NULL ? "" : NULL;
}

static const char *without_slash(const char *name)
{
    return *name == '/' ? name + 1 : name;
}

/* The package of the entry's content: what is written, in its file or implied by its name. */
static const char *find_package(KilnArena *arena, const KilnDefaultsEntry *entry)
{
    static const char top[] = "_global_";
    const char *package = entry->package != NULL ? entry->package : entry->header, *found = NULL;

    if (package == NULL) {
        package = kiln_own_path(arena, without_slash(entry->name));
        if (entry->kind != KILN_DEFAULTS_GROUP)
            package = folder_of(arena, package);
        package = dots_for_slashes(arena, package);
    }
    if (entry->parent != NULL)
        package = join(arena, entry->parent->into, '.', package);
    /* The package starts after the last _global_. */
    for (const char *p = package; p != NULL && (p = strstr(p, top)) != NULL; p += sizeof(top) - 1)
        found = p;
    if (found == NULL)
        return kiln_own_path(arena, package);
    found += sizeof(top) - 1;
    return kiln_own_path(arena, *found == '.' ? found + 1 : found);
}

bool kiln_defaults_entry_attach(KilnArena *arena, KilnDefaultsEntry *entry,
                                const KilnDefaultsEntry *parent)
{
    static const char word[] = "_group_";
    const char *at = entry->package != NULL ? strstr(entry->package, word) : NULL, *usual;
    /* A plain name is in the group of the config that lists it. */
    const char *base = parent != NULL && *entry->name != '/' ? parent->group : "";

    entry->parent = parent;
    entry->interpolated = parent != NULL && parent->interpolated;
    entry->path = kiln_own_path(arena, join(arena, base, '/', without_slash(entry->name)));
    entry->group = entry->kind == KILN_DEFAULTS_GROUP ? entry->path : folder_of(arena, entry->path);
    usual = dots_for_slashes(arena, entry->group);
    if (at != NULL && usual != NULL) /* _group_ in the package is the entry's group */
        entry->package = kiln_arena_printf(arena, "_global_.%.*s%s%s", (int)(at - entry->package),
                                           entry->package, usual, at + sizeof(word) - 1);
    else if (entry->package != NULL && strcmp(entry->package, "_here_") == 0)
        entry->package = "";
    entry->key = entry->group;
    entry->into = find_package(arena, entry);
    if (!arena->failed && strcmp(usual, entry->into) != 0)
        entry->key = kiln_arena_printf(arena, "%s@%s", entry->group,
                                       *entry->into != '\0' ? entry->into : "_global_");
    return !arena->failed;
}

void kiln_defaults_entry_set_header(KilnArena *arena, KilnDefaultsEntry *entry, const char *package)
{
    if (package == NULL || strcmp(package, "_group_") == 0)
        return;
    entry->header = package;
    /* It counts from the top. */
    if (strncmp(package, "_global_", 8) != 0 || (package[8] != '\0' && package[8] != '.'))
        entry->header = kiln_arena_printf(arena, "_global_.%s", package);
    entry->into = find_package(arena, entry);
}

/* ---- Reading ------------------------------------------------------------------ */

static bool wrong(KilnErrors *errors, const KilnOrigin *origin, const char *what)
{
    kiln_errors_report(errors, origin, KILN_E_TYPE, "defaults: %s", what);
    return false;
}

/* Splits "name@package"; with `words`, after the words optional and override. */
static bool split_name(KilnArena *arena, const char *text, bool words, KilnDefaultsEntry *entry)
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
    entry->name = kiln_arena_strndup(arena, text, n);
    if (at != NULL)
        entry->package = kiln_arena_strndup(arena, at + 1, strcspn(at + 1, ":"));
    return true;
}

static bool is_text(const KilnConfigNode *node)
{
    return node->kind == KILN_NODE_SCALAR &&
           (node->scalar == KILN_SCALAR_STR || node->scalar == KILN_SCALAR_INTERPOLATION ||
            node->scalar == KILN_SCALAR_MISSING);
}

static bool read_config(KilnArena *arena, const KilnConfigNode *item, KilnErrors *errors,
                        KilnDefaultsEntry *entry)
{
    bool self = strcmp(item->text, "_self_") == 0;

    entry->kind = self ? KILN_DEFAULTS_SELF : KILN_DEFAULTS_CONFIG;
    if (strncmp(item->text, "_self_@", 7) == 0)
        return wrong(errors, &item->origin, "_self_ has no package");
    if (*item->text == '\0')
        return wrong(errors, &item->origin, "an entry without a name");
    return split_name(arena, item->text, false, entry);
}

static bool read_options(KilnArena *arena, const KilnConfigNode *list, KilnErrors *errors,
                         KilnDefaultsEntry *entry)
{
    KilnOrigin *origins = kiln_arena_alloc(arena, (list->count + 1) * sizeof(*origins));

    entry->options = kiln_arena_alloc(arena, (list->count + 1) * sizeof(char *));
    entry->origins = origins;
    for (size_t i = 0; !arena->failed && i < list->count; i++) {
        const KilnConfigNode *item = list->entries[i].value;

        if (!is_text(item))
            return wrong(errors, &item->origin,
                         "expected the name of an option; quote it if it is text ('yes', '01')");
        if (item->scalar == KILN_SCALAR_INTERPOLATION)
            return wrong(errors, &item->origin, "a list of options has no interpolations");
        entry->options[i] = item->text;
        origins[i] = item->origin;
    }
    return true;
}

static bool read_group(KilnArena *arena, const KilnEntry *pair, KilnErrors *errors,
                       KilnDefaultsEntry *entry)
{
    const KilnConfigNode *value = pair->value;

    entry->kind = KILN_DEFAULTS_GROUP;
    entry->origin = entry->option_origin = pair->key_origin;
    if (!split_name(arena, pair->key, true, entry))
        return wrong(errors, &pair->key_origin,
                     "expected 'group: option', 'optional group: option' or "
                     "'override group: option'");
    if (value->kind == KILN_NODE_LIST)
        return read_options(arena, value, errors, entry);
    entry->option_origin = value->origin;
    if (kiln_node_is_scalar(value, KILN_SCALAR_NULL))
        return true;
    entry->option = value->text;
    if (!is_text(value))
        kiln_errors_report(errors, &value->origin, KILN_E_TYPE,
                           "defaults: %s: expected the name of an option, a list of them or null, "
                           "got %s; quote it if it is text ('yes', '01')",
                           pair->key, kiln_node_kind_name(value));
    return is_text(value);
}

KilnDefaultsEntry *kiln_defaults_entry_read(KilnArena *arena, const KilnConfigNode *item,
                                            KilnErrors *errors)
{
    KilnDefaultsEntry *entry = kiln_arena_alloc(arena, sizeof(*entry));
    bool fine;

    if (entry == NULL)
        return NULL;
    entry->origin = entry->option_origin = item->origin;
    if (is_text(item))
        fine = read_config(arena, item, errors, entry);
    else if (item->kind == KILN_NODE_MAP && item->count == 1)
        fine = read_group(arena, &item->entries[0], errors, entry);
    else
        fine = wrong(errors, &item->origin,
                     item->kind != KILN_NODE_MAP
                         ? "expected '- group: option', '- name' or '- _self_'"
                     : item->count == 0 ? "an empty entry; expected 'group: option'"
                                        : "several groups in one entry; give each its own '- '");
    return fine ? entry : NULL;
}

/* Expands the entries of defaults lists into a tree.
 *
 * Entries are expanded from the last to the first, because `override` entries
 * stand at the end and change what is listed before them, also in the lists of
 * configs included there. Entries whose option is an interpolation wait until
 * their siblings' options are known. */
#include "config/defaults/expand.h"

#include <string.h>

#include "base/text.h"
#include "config/interpolate/interpolate.h"

/* ---- Choices ------------------------------------------------------------------- */

static void tell_twice(KilnDefaultsExpander *expander, const KilnDefaultsEntry *entry,
                       const KilnSelection *other)
{
    const char *first = entry->option != NULL ? entry->option : "null";
    const char *then = other->option != NULL ? other->option : "null";
    KilnError err = { 0 };

    if (other->added != NULL)
        kiln_error_set(&err, KILN_E_KEY,
                       "group '%s' is chosen already, as '%s'; '%s=%s' changes the choice, "
                       "'+%s=[%s]' adds to it",
                       other->key, first, other->key, then, other->key, then);
    else
        kiln_error_set(&err, KILN_E_KEY,
                       "group '%s' is chosen twice, as '%s' and as '%s'; to change the choice "
                       "write 'override %s: %s'",
                       other->key, first, then, other->key, then);
    kiln_expand_tell(expander, other->added != NULL ? other->added : &entry->option_origin, &err);
}

/* Remember what a group chose, for interpolations, messages and the run folder. */
static void remember(KilnDefaultsExpander *expander, KilnDefaultsEntry *entry, const char *key,
                     const char *option)
{
    KilnDefaultsList *list = expander->list;
    KilnSelection chosen = { .key = key,
                             .option = option,
                             .several = entry->options != NULL,
                             .added = entry->appended ? &entry->option_origin : NULL };

    for (size_t i = 0; i < list->n_selections; i++) {
        KilnSelection *other = &list->selections[i];

        if (strcmp(other->key, key) != 0)
            continue;
        if (other->several || entry->options != NULL) {
            if (other->several)
                *other = chosen;
            return;
        }
        if ((other->option == NULL) == (option == NULL) &&
            (option == NULL || strcmp(other->option, option) == 0))
            return;
        tell_twice(expander, entry, other);
        return;
    }
    if (list->n_selections == list->selections_capacity) {
        size_t capacity = list->selections_capacity * 2 + 16;
        KilnSelection *more = kiln_arena_alloc(expander->arena, capacity * sizeof(*more));

        if (more == NULL) {
            expander->failed = true;
            return;
        }
        if (list->n_selections > 0)
            memcpy(more, list->selections, list->n_selections * sizeof(*more));
        list->selections = more;
        list->selections_capacity = capacity;
    }
    list->selections[list->n_selections++] = chosen;
}

/* Another option from the command line or from an `override` entry. */
static void apply_choice(KilnDefaultsExpander *expander, KilnDefaultsEntry *entry)
{
    const char *key = kiln_defaults_entry_key(expander->arena, entry);
    KilnGroupOverride *choice = key != NULL
                                    ? kiln_group_overrides_find(&expander->choices, key, false)
                                    : NULL;

    expander->failed |= key == NULL;
    if (choice == NULL)
        return;
    entry->option = choice->option;
    entry->options = choice->options;
    entry->origin = choice->origin;
    entry->option_origin = choice->option_origin;
    entry->origins = NULL;
    entry->overridden = true;
    choice->used = true;
}

static bool is_deleted(KilnDefaultsExpander *expander, KilnDefaultsEntry *entry, const char *key)
{
    KilnGroupOverride *choice = kiln_group_overrides_find(&expander->choices, key, true);

    if (choice == NULL || (choice->option != NULL &&
                           (entry->option == NULL || strcmp(choice->option, entry->option) != 0)))
        return false;
    choice->used = true;
    entry->deleted = true;
    entry->origin = choice->origin;
    KilnRemoved removal = { .path = kiln_defaults_entry_package(expander->arena, entry, true),
                            .origin = choice->origin };
    expander->failed |= removal.path == NULL ||
                        kiln_removal_add(expander->config, &removal, NULL) < 0;
    return true;
}

/* ---- One config's list ----------------------------------------------------------- */

static bool is_interpolated(const KilnDefaultsEntry *entry)
{
    return entry->kind == KILN_DEFAULTS_GROUP && entry->options == NULL && entry->option != NULL &&
           strstr(entry->option, "${") != NULL;
}

/* The option of an entry, with choices made so far put in for ${group}. */
static bool resolve_option(KilnDefaultsExpander *expander, KilnDefaultsEntry *entry)
{
    KilnMaker maker = { .arena = expander->arena, .origin = entry->origin };
    KilnConfigNode *map = kiln_node_new(&maker, KILN_NODE_MAP);
    KilnConfigNode *text = kiln_node_string(&maker, entry->option);
    const KilnConfigNode *value = NULL;
    KilnError err = { 0 };
    KilnResolution resolving = { .config = expander->config, .root = map, .err = &err };

    for (size_t i = 0; map != NULL && i < expander->list->n_selections; i++) {
        const KilnSelection *chosen = &expander->list->selections[i];

        if (chosen->option != NULL && !chosen->several &&
            kiln_node_append(expander->arena, map, chosen->key, entry->origin,
                             kiln_node_string(&maker, chosen->option)) == NULL)
            map = NULL;
    }
    if (map == NULL || text == NULL) {
        expander->failed = true;
        return false;
    }
    text->parent = map;
    if (kiln_resolve_node(&resolving, text, &value) >= 0 && value->kind == KILN_NODE_SCALAR &&
        value->scalar != KILN_SCALAR_MISSING) {
        entry->option = value->scalar == KILN_SCALAR_NULL ? NULL : value->text;
        return true;
    }
    if (err.status == KILN_OK)
        kiln_error_set(&err, KILN_E_TYPE, "%s is not the name of an option", entry->option);
    kiln_error_prefix(&err, "defaults: %s: ", entry->name);
    kiln_expand_tell(expander, NULL, &err);
    return false;
}

/* `override` entries come last, for they change what is before them. */
static void collect_overrides(KilnDefaultsExpander *expander, KilnDefaultsEntry **entries, size_t n,
                              const KilnDefaultsEntry *parent)
{
    const KilnDefaultsEntry *last = NULL;
    KilnError err = { 0 };

    for (size_t i = 0; i < n; i++) {
        const KilnDefaultsEntry *entry = entries[i];

        if (entry->kind == KILN_DEFAULTS_SELF)
            continue;
        if (last != NULL && !entry->override && !entry->appended) {
            kiln_error_set(&err, KILN_E_SYNTAX,
                           "defaults: '%s' stands behind 'override %s'; overrides come last in "
                           "the list",
                           entry->name, last->name);
            kiln_expand_tell(expander, &entry->origin, &err);
        }
        if (!entry->override)
            continue;
        last = entry;
        if (parent->interpolated) {
            kiln_error_set(&err, KILN_E_SYNTAX,
                           "defaults: 'override %s' can't stand in a config that is chosen by an "
                           "interpolation: it would come too late",
                           entry->name);
            kiln_expand_tell(expander, &entry->origin, &err);
        } else if (kiln_group_overrides_add(&expander->choices, entry, &err) < 0) {
            kiln_expand_tell(expander, NULL, &err);
        }
    }
}

/* The entries of the config's list, with _self_ where it is implied, and with what
 * the command line appends. */
static KilnDefaultsEntry **entries_of(KilnDefaultsExpander *expander,
                                      const KilnDefaultsEntry *parent, const KilnConfigFile *file,
                                      size_t *ret_count)
{
    size_t n = 0, selves = 0, others = 0;
    size_t n_appended = parent->primary ? expander->choices.n_appended : 0;
    KilnDefaultsEntry **list = NULL, **all;
    KilnError err = { 0 };

    if (file->defaults != NULL)
        list = kiln_defaults_entries_read(expander->arena, file->defaults, expander->errors, &n);
    all = kiln_arena_alloc(expander->arena, (n + n_appended + 2) * sizeof(KilnDefaultsEntry *));
    if (all == NULL || (file->defaults != NULL && list == NULL)) {
        expander->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        all[i] = list[i];
        others += !list[i]->override;
        if (list[i]->kind == KILN_DEFAULTS_SELF && ++selves == 2) {
            kiln_error_set(&err, KILN_E_KEY, "defaults: _self_ is there twice");
            kiln_expand_tell(expander, &list[i]->origin, &err);
        }
    }
    if (selves == 0 && (others > 0 || (n == 0 && n_appended > 0))) {
        all[n] = kiln_arena_alloc(expander->arena, sizeof(KilnDefaultsEntry));
        expander->failed |= all[n] == NULL;
        if (all[n] == NULL)
            return NULL;
        n++;
    }
    if (n_appended > 0)
        memcpy(all + n, expander->choices.appended, n_appended * sizeof(*all));
    *ret_count = n + n_appended;
    return all;
}

static void add_child(KilnDefaultsExpander *expander, KilnDefaultsEntry *parent,
                      KilnDefaultsEntry *child)
{
    size_t n = parent->n_children;

    if ((n & (n - 1)) == 0) { /* full at 0, 1, 2, 4, 8, ... */
        size_t capacity = n > 0 ? 2 * n : 1;
        KilnDefaultsEntry **more = kiln_arena_alloc(expander->arena, capacity * sizeof(*more));

        if (more == NULL) {
            expander->failed = true;
            return;
        }
        if (n > 0)
            memcpy(more, parent->children, n * sizeof(*more));
        parent->children = more;
    }
    parent->children[parent->n_children++] = child;
}

/* A list of options: a config each, the last one first as everything here. */
static void expand_options(KilnDefaultsExpander *expander, KilnDefaultsEntry *parent,
                           KilnDefaultsEntry *entry, int depth)
{
    size_t n = 0;
    KilnText text = { 0 };
    const char *key = kiln_defaults_entry_key(expander->arena, entry), *written;

    while (entry->options[n] != NULL)
        n++;
    for (size_t i = 0; i < n; i++)
        kiln_text_printf(&text, "%s%s", i > 0 ? ", " : "[", entry->options[i]);
    kiln_text_append(&text, n > 0 ? "]" : "[]");
    written = kiln_arena_strdup(expander->arena, text.data != NULL ? text.data : "[]");
    kiln_text_release(&text);
    if (key == NULL || written == NULL)
        expander->failed = true;
    else
        remember(expander, entry, key, written);
    for (size_t i = n; i-- > 0;) {
        KilnDefaultsEntry *child = kiln_arena_alloc(expander->arena, sizeof(*child));

        if (child == NULL) {
            expander->failed = true;
            return;
        }
        child->kind = KILN_DEFAULTS_CONFIG;
        child->name = kiln_arena_printf(expander->arena, "%s/%s", entry->name, entry->options[i]);
        child->package = entry->package;
        child->optional = entry->optional;
        child->origin = entry->origins != NULL ? entry->origins[i] : entry->option_origin;
        child->option_origin = child->origin;
        child->interpolated = parent->interpolated;
        if (child->name == NULL ||
            !kiln_defaults_entry_attach(expander->arena, child, entry->base_dir,
                                        entry->parent_package, parent)) {
            expander->failed = true;
            return;
        }
        add_child(expander, parent, child);
        kiln_expand_entry(expander, child, depth + 1);
    }
}

static void expand_list(KilnDefaultsExpander *expander, KilnDefaultsEntry *parent,
                        KilnDefaultsEntry **entries, size_t n, int depth)
{
    const char *group = kiln_defaults_entry_group(expander->arena, parent);
    const char *package = kiln_defaults_entry_package(expander->arena, parent, true);

    for (size_t i = 0; i < n; i++) {
        entries[i]->interpolated = parent->interpolated;
        if (entries[i]->kind != KILN_DEFAULTS_SELF &&
            !kiln_defaults_entry_attach(expander->arena, entries[i], group, package, parent))
            expander->failed = true;
    }
    if (expander->failed)
        return;
    collect_overrides(expander, entries, n, parent);
    for (size_t i = n; i-- > 0 && !expander->failed;) {
        KilnDefaultsEntry *entry = entries[i];

        if (entry->override)
            continue;
        if (entry->kind == KILN_DEFAULTS_GROUP)
            apply_choice(expander, entry);
        if (entry->options != NULL) {
            expand_options(expander, parent, entry, depth);
            continue;
        }
        add_child(expander, parent, entry);
        if (entry->kind != KILN_DEFAULTS_SELF && !is_interpolated(entry))
            kiln_expand_entry(expander, entry, depth + 1);
    }
    for (size_t i = 0; i < parent->n_children && !expander->failed; i++) {
        KilnDefaultsEntry *entry = parent->children[i];

        if (!is_interpolated(entry))
            continue;
        entry->interpolated = true;
        if (resolve_option(expander, entry))
            kiln_expand_entry(expander, entry, depth + 1);
        else
            kiln_expand_give_up(expander, entry);
    }
}

/* ---- One entry ------------------------------------------------------------------ */

/* A config that includes itself, or lists that never end. */
static bool is_endless(KilnDefaultsExpander *expander, KilnDefaultsEntry *entry, const char *path,
                       int depth)
{
    KilnError err = { 0 };

    for (const KilnDefaultsEntry *above = entry->parent; above != NULL; above = above->parent) {
        const char *other = kiln_defaults_entry_path(expander->arena, above);

        if (other == NULL || strcmp(other, path) != 0)
            continue;
        kiln_error_set(&err, KILN_E_KEY, "defaults: '%s' includes itself", path);
        kiln_expand_tell(expander, &entry->origin, &err);
        return true;
    }
    if (depth <= KILN_DEFAULTS_LEVELS && expander->n_entries <= KILN_DEFAULTS_ENTRIES)
        return false;
    if (expander->n_entries > KILN_DEFAULTS_ENTRIES + 1)
        return true; /* told already */
    kiln_error_set(
        &err, KILN_E_RANGE,
        "defaults: more than %d levels or %d configs in defaults lists; do they list each "
        "other over and over?",
        KILN_DEFAULTS_LEVELS, KILN_DEFAULTS_ENTRIES);
    kiln_expand_tell(expander, &entry->origin, &err);
    return true;
}

static void set_header(KilnDefaultsExpander *expander, KilnDefaultsEntry *entry,
                       const KilnConfigFile *file)
{
    if (file == NULL || file->package == NULL)
        return;
    /* A header's package counts from the top. */
    if (strncmp(file->package, "_global_", 8) == 0 &&
        (file->package[8] == '\0' || file->package[8] == '.'))
        entry->header = file->package;
    else if (strcmp(file->package, "_group_") == 0)
        entry->header = NULL;
    else
        entry->header = kiln_arena_printf(expander->arena, "_global_.%s", file->package);
}

void kiln_expand_entry(KilnDefaultsExpander *expander, KilnDefaultsEntry *entry, int depth)
{
    const char *path = kiln_defaults_entry_path(expander->arena, entry);
    const char *key = NULL;
    KilnDefaultsEntry **entries;
    KilnConfigFile *file = NULL;
    KilnError err = { 0 };
    size_t n = 0;

    expander->n_entries++;
    if (entry->kind == KILN_DEFAULTS_GROUP) {
        key = kiln_defaults_entry_key(expander->arena, entry);
        expander->failed |= key == NULL;
    }
    if (expander->failed || path == NULL) {
        expander->failed = true;
        return;
    }
    if (key != NULL && is_deleted(expander, entry, key)) {
        entry->gone = true;
        return;
    }
    if (key != NULL && entry->option != NULL && strcmp(entry->option, "???") == 0) {
        kiln_expand_choice_missing(expander, entry, key);
        return;
    }
    if (key != NULL)
        remember(expander, entry, key, entry->option);
    if (key != NULL && entry->option == NULL) {
        entry->gone = true;
        return;
    }
    if (is_endless(expander, entry, path, depth)) {
        kiln_expand_give_up(expander, entry);
        return;
    }
    if (kiln_search_file(&expander->config->search, path, &file, &err) < 0)
        kiln_expand_tell(expander, NULL, &err);
    set_header(expander, entry, file);
    if (file == NULL || file->unreadable) {
        if (file == NULL && entry->optional)
            entry->gone = true;
        else if (file == NULL && err.status == KILN_OK)
            kiln_expand_not_found(expander, entry, path);
        else
            kiln_expand_give_up(expander, entry);
        return;
    }
    entries = entries_of(expander, entry, file, &n);
    if (entries != NULL && n > 0)
        expand_list(expander, entry, entries, n, depth);
}

/* Expands the entries of defaults lists into a tree.
 *
 * Entries are expanded from the last to the first, because `override` entries
 * stand at the end and change what is listed before them, also in the lists of
 * configs included there. Entries whose option is an interpolation wait until
 * their siblings' options are known. */
#include "config/defaults/expand.h"

#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "config/interpolate/interpolate.h"
#include "config/provenance/error_list.h"

/* ---- Selections ------------------------------------------------------------------ */

static void report_second_selection(KilnExpander *expander, const KilnDefaultsEntry *entry,
                                    const KilnSelection *other)
{
    const char *first = entry->option != NULL ? entry->option : "null";
    const char *second = other->option != NULL ? other->option : "null";

    if (other->added != NULL)
        kiln_errors_report(expander->errors, other->added, KILN_E_KEY,
                           "group '%s' is selected already, as '%s'; '%s=%s' changes the "
                           "selection, '+%s=[%s]' adds to it",
                           other->key, first, other->key, second, other->key, second);
    else
        kiln_errors_report(expander->errors, &entry->option_origin, KILN_E_KEY,
                           "group '%s' is selected twice, as '%s' and as '%s'; to change the "
                           "selection write 'override %s: %s'",
                           other->key, first, second, other->key, second);
}

static bool same_option(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Record the option of a group, for interpolations, messages and the run folder. */
static void record_selection(KilnExpander *expander, const KilnDefaultsEntry *entry,
                             const char *option)
{
    KilnDefaultsList *list = expander->list;
    KilnSelection selection = { .key = entry->key,
                                .option = option,
                                .several = entry->options != NULL,
                                .added = entry->appended ? &entry->option_origin : NULL };

    for (size_t i = 0; i < list->n_selections; i++) {
        KilnSelection *other = &list->selections[i];

        if (strcmp(other->key, entry->key) != 0)
            continue;
        if (other->several)
            *other = selection;
        else if (!selection.several && !same_option(other->option, option))
            report_second_selection(expander, entry, other);
        return;
    }
    if (KILN_ARENA_RESERVE(expander->arena, list->selections, list->selections_capacity,
                           list->n_selections + 1))
        list->selections[list->n_selections++] = selection;
}

/* Take the option from an argument or an `override` entry. */
static void apply_override(KilnExpander *expander, KilnDefaultsEntry *entry)
{
    KilnGroupOverride *override = kiln_group_overrides_find(expander, entry->key, false);

    if (override == NULL)
        return;
    entry->option = override->entry->option;
    entry->options = override->entry->options;
    entry->origin = override->entry->origin;
    entry->option_origin = override->entry->option_origin;
    entry->origins = NULL;
    entry->overridden = true;
    override->used = true;
}

static bool is_deleted(KilnExpander *expander, KilnDefaultsEntry *entry)
{
    KilnGroupOverride *override = kiln_group_overrides_find(expander, entry->key, true);

    if (override == NULL ||
        (override->entry->option != NULL && !same_option(override->entry->option, entry->option)))
        return false;
    override->used = true;
    entry->deleted = true;
    entry->origin = override->entry->origin;
    KilnRemoved removal = { .path = entry->into, .origin = entry->origin };
    kiln_removal_add(expander->config, &removal);
    return true;
}

/* ---- One config's list ----------------------------------------------------------- */

static bool is_interpolated(const KilnDefaultsEntry *entry)
{
    return entry->kind == KILN_DEFAULTS_GROUP && entry->options == NULL && entry->option != NULL &&
           strstr(entry->option, "${") != NULL;
}

/* Resolve ${group} in the option of an entry, with the selections so far. */
static bool resolve_option(KilnExpander *expander, KilnDefaultsEntry *entry)
{
    KilnMaker maker = { .arena = expander->arena, .origin = entry->origin };
    KilnConfigNode *map = kiln_node_new(&maker, KILN_NODE_MAP);
    KilnConfigNode *text = kiln_node_string(&maker, entry->option);
    const KilnConfigNode *value = NULL;
    KilnError err = { 0 };
    KilnResolution resolving = { .config = expander->config, .root = map, .err = &err };

    for (size_t i = 0; i < expander->list->n_selections; i++) {
        const KilnSelection *selection = &expander->list->selections[i];

        if (selection->option != NULL && !selection->several)
            kiln_node_append(expander->arena, map, selection->key, entry->origin,
                             kiln_node_string(&maker, selection->option));
    }
    if (expander->arena->failed)
        return false;
    text->parent = map;
    if (kiln_resolve_node(&resolving, text, &value) >= 0 && value->kind == KILN_NODE_SCALAR &&
        value->scalar != KILN_SCALAR_MISSING) {
        entry->option = value->scalar == KILN_SCALAR_NULL ? NULL : value->text;
        return true;
    }
    if (err.status == KILN_OK)
        kiln_error_set(&err, KILN_E_TYPE, "%s is not the name of an option", entry->option);
    kiln_error_prefix(&err, "defaults: %s: ", entry->name);
    kiln_errors_add(expander->errors, &err);
    return false;
}

/* Add the list's `override` entries, which must come last and change what is before them. */
static void collect_overrides(KilnExpander *expander, KilnDefaultsEntry **entries, size_t n,
                              const KilnDefaultsEntry *parent)
{
    const KilnDefaultsEntry *last = NULL;

    for (size_t i = 0; i < n; i++) {
        const KilnDefaultsEntry *entry = entries[i];

        if (entry->kind == KILN_DEFAULTS_SELF)
            continue;
        if (last != NULL && !entry->override && !entry->appended)
            kiln_errors_report(expander->errors, &entry->origin, KILN_E_SYNTAX,
                               "defaults: '%s' comes after 'override %s'; move overrides to the "
                               "end of the list",
                               entry->name, last->name);
        if (!entry->override)
            continue;
        last = entry;
        if (parent->interpolated)
            kiln_errors_report(expander->errors, &entry->origin, KILN_E_SYNTAX,
                               "defaults: 'override %s' has no effect in a config that an "
                               "interpolation selects, which is read last",
                               entry->name);
        else
            kiln_group_overrides_add(expander, entry);
    }
}

/* The entries of the parent's list, with _self_ where it is implied, and with those that
 * arguments append. */
static KilnDefaultsEntry **read_entries(KilnExpander *expander, const KilnDefaultsEntry *parent,
                                        size_t *ret_count)
{
    const KilnConfigNode *list = parent->file->defaults;
    size_t n_listed = list != NULL ? list->count : 0;
    size_t n_appended = parent->primary ? expander->n_appended : 0;
    size_t n = 0, n_self = 0, n_others = 0;
    KilnDefaultsEntry **all = kiln_arena_alloc(expander->arena,
                                               (n_listed + n_appended + 1) * sizeof(*all));

    for (size_t i = 0; all != NULL && i < n_listed; i++) {
        KilnDefaultsEntry *entry = kiln_defaults_entry_read(expander->arena, list->entries[i].value,
                                                            expander->errors);

        if (entry == NULL)
            continue;
        all[n++] = entry;
        n_others += !entry->override;
        if (entry->kind == KILN_DEFAULTS_SELF && ++n_self == 2)
            kiln_errors_report(expander->errors, &entry->origin, KILN_E_KEY,
                               "defaults: _self_ is there twice");
    }
    if (all != NULL && n_self == 0 && (n_others > 0 || (n == 0 && n_appended > 0)))
        all[n++] = kiln_arena_alloc(expander->arena, sizeof(**all));
    if (all != NULL && n_appended > 0)
        memcpy(all + n, expander->appended, n_appended * sizeof(*all));
    *ret_count = expander->arena->failed ? 0 : n + n_appended;
    return all;
}

static void add_child(KilnExpander *expander, KilnDefaultsEntry *parent, KilnDefaultsEntry *child)
{
    if (KILN_ARENA_RESERVE(expander->arena, parent->children, parent->children_capacity,
                           parent->n_children + 1))
        parent->children[parent->n_children++] = child;
}

/* "[a, b]" */
static const char *options_text(KilnArena *arena, const char *const *options)
{
    KilnText text = { 0 };

    kiln_text_char(&text, '[');
    for (size_t i = 0; options[i] != NULL; i++)
        kiln_text_printf(&text, "%s%s", i > 0 ? ", " : "", options[i]);
    kiln_text_char(&text, ']');
    return kiln_text_to_arena(&text, arena);
}

/* A list of options: one config each, the last one first like all entries. */
static void expand_options(KilnExpander *expander, KilnDefaultsEntry *parent,
                           const KilnDefaultsEntry *entry, int depth)
{
    size_t n = 0;

    record_selection(expander, entry, options_text(expander->arena, entry->options));
    while (entry->options[n] != NULL)
        n++;
    while (n-- > 0) {
        KilnDefaultsEntry *child = kiln_arena_alloc(expander->arena, sizeof(*child));

        if (child == NULL)
            return;
        child->kind = KILN_DEFAULTS_CONFIG;
        child->name = kiln_arena_printf(expander->arena, "%s/%s", entry->name, entry->options[n]);
        child->package = entry->package;
        child->optional = entry->optional;
        child->origin = entry->origins != NULL ? entry->origins[n] : entry->option_origin;
        child->option_origin = child->origin;
        if (child->name == NULL || !kiln_defaults_entry_attach(expander->arena, child, parent))
            return;
        add_child(expander, parent, child);
        kiln_expand_entry(expander, child, depth + 1);
    }
}

static void expand_list(KilnExpander *expander, KilnDefaultsEntry *parent, int depth)
{
    size_t n = 0;
    KilnDefaultsEntry **entries = read_entries(expander, parent, &n);

    for (size_t i = 0; i < n; i++)
        if (entries[i]->kind != KILN_DEFAULTS_SELF &&
            !kiln_defaults_entry_attach(expander->arena, entries[i], parent))
            return;
    collect_overrides(expander, entries, n, parent);
    for (size_t i = n; i-- > 0 && !expander->arena->failed;) {
        KilnDefaultsEntry *entry = entries[i];

        if (entry->override)
            continue;
        if (entry->kind == KILN_DEFAULTS_GROUP)
            apply_override(expander, entry);
        if (entry->options != NULL) {
            expand_options(expander, parent, entry, depth);
            continue;
        }
        add_child(expander, parent, entry);
        if (entry->kind != KILN_DEFAULTS_SELF && !is_interpolated(entry))
            kiln_expand_entry(expander, entry, depth + 1);
    }
    for (size_t i = 0; i < parent->n_children && !expander->arena->failed; i++) {
        KilnDefaultsEntry *entry = parent->children[i];

        if (!is_interpolated(entry))
            continue;
        entry->interpolated = true;
        if (resolve_option(expander, entry))
            kiln_expand_entry(expander, entry, depth + 1);
        else
            kiln_expand_leave_out(expander, entry);
    }
}

/* ---- One entry ------------------------------------------------------------------ */

/* Does the config include itself, or do lists go on without end? Reports it. */
static bool is_endless(KilnExpander *expander, const KilnDefaultsEntry *entry, int depth)
{
    for (const KilnDefaultsEntry *above = entry->parent; above != NULL; above = above->parent) {
        if (strcmp(above->path, entry->path) != 0)
            continue;
        kiln_errors_report(expander->errors, &entry->origin, KILN_E_KEY,
                           "defaults: '%s' includes itself", entry->path);
        return true;
    }
    if (depth <= KILN_DEFAULTS_LEVELS && expander->n_entries <= KILN_DEFAULTS_ENTRIES)
        return false;
    if (expander->n_entries <= KILN_DEFAULTS_ENTRIES + 1) /* else it is reported already */
        kiln_errors_report(expander->errors, &entry->origin, KILN_E_RANGE,
                           "defaults: more than %d levels or %d configs in defaults lists; do they "
                           "list each other over and over?",
                           KILN_DEFAULTS_LEVELS, KILN_DEFAULTS_ENTRIES);
    return true;
}

/* Read the entry's file; false when the entry is left out. */
static bool read_file(KilnExpander *expander, KilnDefaultsEntry *entry)
{
    KilnError err = { 0 };

    entry->file = kiln_search_file(&expander->config->search, entry->path, &err);
    if (err.status < 0)
        kiln_errors_add(expander->errors, &err);
    if (entry->file != NULL) {
        kiln_defaults_entry_set_header(expander->arena, entry, entry->file->package);
        if (entry->file->unreadable)
            kiln_expand_leave_out(expander, entry);
        return !entry->gone;
    }
    if (entry->optional)
        entry->gone = true;
    else
        kiln_expand_not_found(expander, entry);
    return false;
}

/* Record the entry's option, and set its path. False when it is deleted, null or missing. */
static bool select_option(KilnExpander *expander, KilnDefaultsEntry *entry)
{
    entry->gone = is_deleted(expander, entry);
    if (entry->gone)
        return false;
    if (same_option(entry->option, "???")) {
        kiln_expand_option_missing(expander, entry);
        return false;
    }
    record_selection(expander, entry, entry->option);
    entry->gone = entry->option == NULL;
    if (!entry->gone)
        entry->path = kiln_arena_printf(expander->arena, "%s/%s", entry->group, entry->option);
    return !entry->gone;
}

void kiln_expand_entry(KilnExpander *expander, KilnDefaultsEntry *entry, int depth)
{
    expander->n_entries++;
    if ((entry->kind == KILN_DEFAULTS_GROUP && !select_option(expander, entry)) ||
        expander->arena->failed)
        return;
    if (is_endless(expander, entry, depth))
        kiln_expand_leave_out(expander, entry);
    else if (read_file(expander, entry))
        expand_list(expander, entry, depth);
}

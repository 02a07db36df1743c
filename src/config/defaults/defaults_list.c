/* Makes the list of files that a config is merged from; expand.c reads the defaults lists. */
#include "config/defaults/defaults_list.h"

#include <string.h>

#include "base/array.h"
#include "config/defaults/expand.h"
#include "config/provenance/error_list.h"

/* Add the entry's file; `has_list`: the file has a defaults list, and _self_ stands for it. */
static void add_file(KilnExpander *expander, const KilnDefaultsEntry *entry, bool has_list)
{
    KilnDefaultsList *list = expander->list;
    const char *path = kiln_defaults_entry_path(expander->arena, entry);
    KilnMergeFile item = { .package = kiln_defaults_entry_package(expander->arena, entry, true),
                           .entry = entry,
                           .primary = entry->primary,
                           .self = has_list };

    if (path == NULL || item.package == NULL ||
        kiln_search_file(&expander->config->search, path, &item.file, NULL) < 0 ||
        item.file == NULL ||
        !KILN_ARENA_RESERVE(expander->arena, list->files, list->capacity, list->count + 1)) {
        expander->failed = true;
        return;
    }
    if (entry->kind == KILN_DEFAULTS_GROUP && !has_list)
        item.key = kiln_defaults_entry_key(expander->arena, entry);
    for (size_t i = 0; item.key != NULL && i < list->count; i++)
        if (list->files[i].key != NULL && strcmp(list->files[i].key, item.key) == 0)
            kiln_errors_report(expander->errors, &entry->origin, KILN_E_KEY,
                               "defaults: group '%s' is there twice; to change what is selected "
                               "write `override /%s`",
                               item.key, item.key);
    list->files[list->count++] = item;
}

/* Add the files of a tree of entries in the order in which they are merged. */
static void add_files(KilnExpander *expander, const KilnDefaultsEntry *entry)
{
    if (entry->gone)
        return;
    if (entry->n_children == 0)
        add_file(expander, entry, false);
    for (size_t i = entry->n_children; i-- > 0;) {
        const KilnDefaultsEntry *child = entry->children[i];

        if (child->kind == KILN_DEFAULTS_SELF)
            add_file(expander, entry, true);
        else
            add_files(expander, child);
    }
}

/* Expansion goes from the last entry to the first; readers expect the order of the lists. */
static void reverse_selections(KilnDefaultsList *list)
{
    for (size_t i = 0; i < list->n_selections / 2; i++) {
        KilnSelection *a = &list->selections[i];
        KilnSelection *b = &list->selections[list->n_selections - 1 - i], other = *a;

        *a = *b;
        *b = other;
    }
}

static KilnDefaultsEntry *new_root(KilnArena *arena, const char *name)
{
    KilnDefaultsEntry *root = kiln_arena_alloc(arena, sizeof(*root));

    if (root != NULL)
        *root = (KilnDefaultsEntry) {
            .kind = KILN_DEFAULTS_CONFIG, .name = name, .base_dir = "", .parent_package = ""
        };
    return root;
}

KilnStatus kiln_defaults_expand(KilnConfig *config, KilnErrors *errors)
{
    KilnDefaultsList *ret = config->defaults;
    KilnExpander expander = {
        .config = config, .arena = config->arena, .errors = errors, .list = ret
    };
    KilnDefaultsEntry *primary = new_root(config->arena, config->config_name);
    KilnDefaultsEntry *own = new_root(config->arena, "kiln/config");

    *ret = (KilnDefaultsList) { .roots = { primary, own } };
    if (primary == NULL || own == NULL)
        return KILN_E_NOMEM;
    primary->primary = true;
    if (kiln_group_overrides_read(config, errors, &expander.overrides) < 0)
        return KILN_E_NOMEM;
    kiln_expand_entry(&expander, primary, 0);
    if (!expander.failed)
        kiln_expand_entry(&expander, own, 0);
    reverse_selections(ret);
    if (!expander.failed && ret->n_failed == 0)
        kiln_group_overrides_check_used(config, &expander.overrides, ret, errors);
    if (!expander.failed) {
        add_files(&expander, own);
        add_files(&expander, primary);
    }
    return expander.failed ? KILN_E_NOMEM : KILN_OK;
}

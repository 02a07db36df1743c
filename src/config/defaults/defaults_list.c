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
    bool group = entry->kind == KILN_DEFAULTS_GROUP && !has_list;

    for (size_t i = 0; group && i < list->count; i++) {
        const KilnMergeFile *other = &list->files[i];

        if (other->entry->kind == KILN_DEFAULTS_GROUP && !other->self &&
            strcmp(other->entry->key, entry->key) == 0)
            kiln_errors_report(expander->errors, &entry->origin, KILN_E_KEY,
                               "defaults: group '%s' is there twice; to change what is selected "
                               "write `override /%s`",
                               entry->key, entry->key);
    }
    if (KILN_ARENA_RESERVE(expander->arena, list->files, list->capacity, list->count + 1))
        list->files[list->count++] = (KilnMergeFile) { .entry = entry, .self = has_list };
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

static void expand_root(KilnExpander *expander, const char *name, bool primary)
{
    KilnDefaultsEntry *root = kiln_arena_alloc(expander->arena, sizeof(*root));

    if (root == NULL)
        return;
    *root = (KilnDefaultsEntry) { .kind = KILN_DEFAULTS_CONFIG, .name = name, .primary = primary };
    expander->list->roots[primary ? 0 : 1] = root;
    if (kiln_defaults_entry_attach(expander->arena, root, NULL))
        kiln_expand_entry(expander, root, 0);
}

void kiln_defaults_expand(KilnConfig *config, KilnErrors *errors)
{
    KilnDefaultsList *list = config->defaults;
    KilnExpander expander = {
        .config = config, .arena = config->arena, .errors = errors, .list = list
    };

    kiln_group_overrides_read(&expander);
    expand_root(&expander, config->config_name, true);
    expand_root(&expander, "kiln/config", false);
    if (config->arena->failed)
        return;
    reverse_selections(list);
    if (list->n_failed == 0)
        kiln_group_overrides_check_used(&expander);
    add_files(&expander, list->roots[1]);
    add_files(&expander, list->roots[0]);
}

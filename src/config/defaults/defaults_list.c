/* The list of files that a config is merged from. */
#include "config/defaults/defaults_list.h"

#include <string.h>

#include "config/defaults/expand.h"

static void emit(KilnDefaultsExpander *expander, const KilnDefaultsEntry *entry, bool has_list)
{
    KilnDefaultsList *list = expander->list;
    const char *path = kiln_defaults_entry_path(expander->arena, entry);
    KilnMergeFile result = { .package = kiln_defaults_entry_package(expander->arena, entry, true),
                             .entry = entry,
                             .primary = entry->primary,
                             .self = has_list };
    KilnError err = { 0 };

    if (path == NULL || result.package == NULL ||
        kiln_search_file(&expander->config->search, path, &result.file, &err) < 0 ||
        result.file == NULL) {
        expander->failed = true;
        return;
    }
    if (list->count == list->capacity) {
        size_t capacity = list->capacity * 2 + 32;
        KilnMergeFile *more = kiln_arena_alloc(expander->arena, capacity * sizeof(*more));

        if (more == NULL) {
            expander->failed = true;
            return;
        }
        if (list->count > 0)
            memcpy(more, list->files, list->count * sizeof(*more));
        list->files = more;
        list->capacity = capacity;
    }
    if (entry->kind == KILN_DEFAULTS_GROUP && !has_list)
        result.key = kiln_defaults_entry_key(expander->arena, entry);
    for (size_t i = 0; result.key != NULL && i < list->count; i++) {
        if (list->files[i].key == NULL || strcmp(list->files[i].key, result.key) != 0)
            continue;
        kiln_error_set(&err, KILN_E_KEY,
                       "defaults: group '%s' is there twice; to change what is selected write "
                       "`override /%s`",
                       result.key, result.key);
        kiln_expand_tell(expander, &entry->origin, &err);
    }
    list->files[list->count++] = result;
}

static void walk(KilnDefaultsExpander *expander, const KilnDefaultsEntry *entry)
{
    if (entry->gone)
        return;
    if (entry->n_children == 0) {
        emit(expander, entry, false);
        return;
    }
    for (size_t i = entry->n_children; i-- > 0;) {
        const KilnDefaultsEntry *child = entry->children[i];

        if (child->kind == KILN_DEFAULTS_SELF)
            emit(expander, entry, true);
        else
            walk(expander, child);
    }
}

/* Choices were met from the last to the first; people read them as they are listed. */
static void reverse_chosen(KilnDefaultsList *list)
{
    for (size_t i = 0; i < list->n_selections / 2; i++) {
        KilnSelection other = list->selections[i];

        list->selections[i] = list->selections[list->n_selections - 1 - i];
        list->selections[list->n_selections - 1 - i] = other;
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

KilnStatus kiln_defaults_expand(KilnConfig *config, KilnOverride *overrides, size_t n_overrides,
                                KilnErrors *errors, KilnDefaultsList *ret)
{
    KilnDefaultsExpander expander = {
        .config = config, .arena = config->arena, .errors = errors, .list = ret
    };
    KilnDefaultsEntry *primary = new_root(config->arena, config->config_name);
    KilnDefaultsEntry *own = new_root(config->arena, "kiln/config");

    *ret = (KilnDefaultsList) { .roots = { primary, own } };
    if (primary == NULL || own == NULL)
        return KILN_E_NOMEM;
    primary->primary = true;
    if (kiln_group_overrides_read(config, overrides, n_overrides, errors, &expander.choices) < 0)
        return KILN_E_NOMEM;
    kiln_expand_entry(&expander, primary, 0);
    if (!expander.failed)
        kiln_expand_entry(&expander, own, 0);
    reverse_chosen(ret);
    if (!expander.failed && ret->n_failed == 0)
        kiln_group_overrides_unused(config, &expander.choices, ret, errors);
    if (!expander.failed) {
        walk(&expander, own);
        walk(&expander, primary);
    }
    return expander.failed ? KILN_E_NOMEM : KILN_OK;
}

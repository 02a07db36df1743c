/* The list of files that a config is merged from. */
#include "config/defaults/defaults_list.h"

#include <string.h>

#include "config/defaults/expand.h"

static void emit(KilnExpander *expander, const KilnDefault *entry, bool has_list)
{
    KilnDefaultsList *list = expander->list;
    const char *path = kiln_default_path(expander->arena, entry);
    KilnResult result = { .package = kiln_default_package(expander->arena, entry, true),
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
        KilnResult *more = kiln_arena_alloc(expander->arena, capacity * sizeof(*more));

        if (more == NULL) {
            expander->failed = true;
            return;
        }
        if (list->count > 0)
            memcpy(more, list->results, list->count * sizeof(*more));
        list->results = more;
        list->capacity = capacity;
    }
    if (entry->kind == KILN_DEFAULT_GROUP && !has_list)
        result.key = kiln_default_key(expander->arena, entry);
    for (size_t i = 0; result.key != NULL && i < list->count; i++) {
        if (list->results[i].key == NULL || strcmp(list->results[i].key, result.key) != 0)
            continue;
        kiln_error_set(&err, KILN_E_KEY,
                       "defaults: group '%s' is there twice; to change what is selected write "
                       "`override /%s`",
                       result.key, result.key);
        kiln_expand_tell(expander, &entry->origin, &err);
    }
    list->results[list->count++] = result;
}

static void walk(KilnExpander *expander, const KilnDefault *entry)
{
    if (entry->gone)
        return;
    if (entry->n_children == 0) {
        emit(expander, entry, false);
        return;
    }
    for (size_t i = entry->n_children; i-- > 0;) {
        const KilnDefault *child = entry->children[i];

        if (child->kind == KILN_DEFAULT_SELF)
            emit(expander, entry, true);
        else
            walk(expander, child);
    }
}

/* Choices were met from the last to the first; people read them as they are listed. */
static void reverse_chosen(KilnDefaultsList *list)
{
    for (size_t i = 0; i < list->n_chosen / 2; i++) {
        KilnSelection other = list->chosen[i];

        list->chosen[i] = list->chosen[list->n_chosen - 1 - i];
        list->chosen[list->n_chosen - 1 - i] = other;
    }
}

static KilnDefault *new_root(KilnArena *arena, const char *name)
{
    KilnDefault *root = kiln_arena_alloc(arena, sizeof(*root));

    if (root != NULL)
        *root = (KilnDefault) {
            .kind = KILN_DEFAULT_CONFIG, .name = name, .base_dir = "", .parent_package = ""
        };
    return root;
}

KilnStatus kiln_defaults_expand(KilnConfig *config, KilnOverride *overrides, size_t n_overrides,
                                KilnErrors *errors, KilnDefaultsList *ret)
{
    KilnExpander expander = {
        .config = config, .arena = config->arena, .errors = errors, .list = ret
    };
    KilnDefault *primary = new_root(config->arena, config->config_name);
    KilnDefault *own = new_root(config->arena, "kiln/config");

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
    if (!expander.failed && ret->n_broken == 0)
        kiln_group_overrides_unused(config, &expander.choices, ret, errors);
    if (!expander.failed) {
        walk(&expander, own);
        walk(&expander, primary);
    }
    return expander.failed ? KILN_E_NOMEM : KILN_OK;
}

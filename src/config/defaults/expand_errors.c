/* What can be wrong in defaults lists, in words. */
#include <string.h>

#include "base/text.h"
#include "config/defaults/expand.h"

void kiln_expand_tell(KilnDefaultsExpander *expander, const KilnOrigin *origin, KilnError *err)
{
    expander->failed |= err->status == KILN_E_NOMEM;
    if (origin != NULL)
        kiln_error_at(err, origin);
    kiln_errors_add(expander->errors, err);
}

/* What lies below the entry's package may be missing because of this error. */
void kiln_expand_give_up(KilnDefaultsExpander *expander, KilnDefaultsEntry *entry)
{
    KilnDefaultsList *list = expander->list;
    const char *package = kiln_defaults_entry_package(expander->arena, entry, true);

    entry->gone = true;
    if (list->n_failed == list->failed_capacity) {
        size_t capacity = list->failed_capacity * 2 + 8;
        const char **more = kiln_arena_alloc(expander->arena, capacity * sizeof(*more));

        if (more != NULL && list->n_failed > 0)
            memcpy(more, list->failed, list->n_failed * sizeof(*more));
        if (more == NULL)
            package = NULL;
        list->failed = more;
        list->failed_capacity = capacity;
    }
    if (package == NULL)
        expander->failed = true;
    else
        list->failed[list->n_failed++] = package;
}

static void say_options(KilnDefaultsExpander *expander, const char *group, const char *wrong,
                        KilnText *text)
{
    const char **options = kiln_search_options(&expander->config->search, group, false);
    const char *near;
    size_t n = 0;

    while (options != NULL && options[n] != NULL)
        n++;
    if (n == 0)
        return;
    near = wrong != NULL ? kiln_nearest(wrong, options, n) : NULL;
    if (near != NULL)
        kiln_text_printf(text, "; did you mean '%s'?", near);
    kiln_text_printf(text, "%s options of %s: ", near != NULL ? "" : ";", group);
    for (size_t i = 0; i < n && i < 40; i++)
        kiln_text_printf(text, "%s%s", i > 0 ? ", " : "", options[i]);
    if (n > 40)
        kiln_text_append(text, ", ...");
}

/* The group itself is not there: which one is meant? */
static bool say_groups(KilnDefaultsExpander *expander, const KilnDefaultsEntry *entry,
                       const char *group, KilnText *text)
{
    const KilnSearch *search = &expander->config->search;
    const char *slash = strrchr(group, '/'), *above = "";
    size_t n = 0;

    if (kiln_search_is_group(search, group, false))
        return false;
    if (slash != NULL)
        above = kiln_arena_strndup(expander->arena, group, (size_t)(slash - group));
    const char **groups = above != NULL ? kiln_search_options(search, above, true) : NULL;
    while (groups != NULL && groups[n] != NULL)
        n++;
    const char *near = n > 0 ? kiln_nearest(slash != NULL ? slash + 1 : group, groups, n) : NULL;
    kiln_text_printf(text, "there is no group '%s'", group);
    if (entry->name[0] != '/' && kiln_search_is_group(search, entry->name, false))
        kiln_text_printf(text,
                         "; '%s' is counted from this file's own group: write `/%s`, or "
                         "`override /%s` to change what is selected",
                         entry->name, entry->name, entry->name);
    else if (near != NULL)
        kiln_text_printf(text, "; did you mean '%s%s%s'?", above, *above != '\0' ? "/" : "", near);
    return true;
}

/* `- _slef_`: a config beside the one that lists it, or _self_. */
static void say_configs(KilnDefaultsExpander *expander, const char *wrong, KilnText *text)
{
    static const char *const self[] = { "_self_" };
    const char **options = kiln_search_options(&expander->config->search, "", false);
    const char *near = kiln_nearest(wrong, self, 1);
    size_t n = 0;

    while (options != NULL && options[n] != NULL)
        n++;
    if (near == NULL && n > 0)
        near = kiln_nearest(wrong, options, n);
    if (near != NULL)
        kiln_text_printf(text, "; did you mean '%s'?", near);
}

/* `callbacks=mine`, where `mine` is a callback and no set of them */
static void say_member(const KilnDefaultsExpander *expander, const KilnDefaultsEntry *entry,
                       KilnText *text)
{
    const KilnComposeHooks *hooks = expander->config->search.hooks;

    if (hooks != NULL && hooks->is_member != NULL &&
        hooks->is_member(hooks->ctx, entry->name, entry->option))
        kiln_text_printf(text,
                         "; an option of %s is a file with a set of them: to add %s to the set, "
                         "write +%s.%s=%s",
                         entry->name, entry->option, entry->name, entry->option, entry->option);
}

void kiln_expand_not_found(KilnDefaultsExpander *expander, KilnDefaultsEntry *entry,
                           const char *path)
{
    KilnText text = { 0 };
    KilnError err = { 0 };

    const char *slash = strrchr(path, '/');
    const char *group = slash != NULL
                            ? kiln_arena_strndup(expander->arena, path, (size_t)(slash - path))
                            : "";
    KilnOrigin at = entry->option_origin;

    if (entry->kind != KILN_DEFAULTS_GROUP || entry->primary) {
        kiln_text_printf(&text, "there is no config '%s'", path);
        if (group != NULL && *group == '\0')
            say_configs(expander, path, &text);
        else if (group != NULL)
            say_options(expander, group, slash + 1, &text);
    } else if (group != NULL && *group != '\0' && say_groups(expander, entry, group, &text)) {
        at = entry->origin;
    } else {
        kiln_text_printf(&text, "%s: there is no option '%s'", entry->name, entry->option);
        say_member(expander, entry, &text);
        if (group != NULL && *group != '\0')
            say_options(expander, group, slash + 1, &text);
    }
    kiln_text_printf(&text, " (searched %s)", kiln_search_describe(&expander->config->search));
    kiln_error_set(&err, KILN_E_KEY, "%s", text.data != NULL ? text.data : "out of memory");
    kiln_text_release(&text);
    kiln_expand_tell(expander, entry->origin.source != NULL ? &at : NULL, &err);
    kiln_expand_give_up(expander, entry);
}

void kiln_expand_choice_missing(KilnDefaultsExpander *expander, KilnDefaultsEntry *entry,
                                const char *key)
{
    const char *group = kiln_defaults_entry_group(expander->arena, entry);
    KilnText text = { 0 };
    KilnError err = { 0 };

    if (expander->config->partial) {
        kiln_expand_give_up(expander, entry);
        return;
    }
    kiln_text_printf(&text, "%s: an option must be chosen: %s=OPTION", key, key);
    if (group != NULL)
        say_options(expander, group, NULL, &text);
    kiln_error_set(&err, KILN_E_MISSING, "%s", text.data != NULL ? text.data : "out of memory");
    kiln_text_release(&text);
    kiln_expand_tell(expander, &entry->option_origin, &err);
    kiln_expand_give_up(expander, entry);
}

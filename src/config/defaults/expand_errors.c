/* Messages about entries of defaults lists. */
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "config/defaults/expand.h"
#include "config/provenance/error_list.h"

enum { MOST_NESTED = 256 }; /* options of groups in a group that a message may choose from */

void kiln_expand_leave_out(KilnExpander *expander, KilnDefaultsEntry *entry)
{
    KilnDefaultsList *list = expander->list;

    entry->gone = true;
    if (KILN_ARENA_RESERVE(expander->arena, list->failed, list->failed_capacity,
                           list->n_failed + 1))
        list->failed[list->n_failed++] = entry->into;
}

/* Options of a group, or groups below it; *ret_count of them. */
static const char *const *list_options(const KilnExpander *expander, const char *group, bool groups,
                                       size_t *ret_count)
{
    const char *const *names = kiln_search_options(&expander->config->search, group, groups);

    for (*ret_count = 0; names[*ret_count] != NULL;)
        ++*ret_count;
    return names;
}

/* The options of `group` and of the groups in it, "name" and "inner/name". Out of memory: fewer. */
static const char *const *list_all_options(KilnExpander *expander, const char *group, size_t *ret_n)
{
    size_t n, n_groups, total;
    const char *const *own = list_options(expander, group, false, &n);
    const char *const *groups = list_options(expander, group, true, &n_groups);
    const char **all = kiln_arena_alloc(expander->arena, (n + MOST_NESTED) * sizeof(*all));

    if (all == NULL) {
        *ret_n = n;
        return own;
    }
    for (total = 0; total < n; total++)
        all[total] = own[total];
    for (size_t g = 0; g < n_groups; g++) {
        const char *inner = kiln_arena_printf(expander->arena, "%s/%s", group, groups[g]);
        size_t n_inner = 0;
        const char *const *names = inner != NULL ? list_options(expander, inner, false, &n_inner)
                                                 : NULL;

        for (size_t i = 0; i < n_inner && total < n + MOST_NESTED; i++)
            if ((all[total] = kiln_arena_printf(expander->arena, "%s/%s", groups[g], names[i])) !=
                NULL)
                total++;
    }
    *ret_n = total;
    return all;
}

/* "; did you mean 'a'? options of group: a, b". Whether there is a near one. */
static bool append_options(KilnExpander *expander, const char *group, const char *wrong,
                           KilnText *text)
{
    enum { MOST_SHOWN = 40 };
    size_t n;
    const char *const *options = list_all_options(expander, group, &n);
    const char *near = wrong != NULL && n > 0 ? kiln_nearest(wrong, options, n) : NULL;

    if (n == 0)
        return false;
    if (near != NULL)
        kiln_text_printf(text, "; did you mean '%s'?", near);
    kiln_text_printf(text, "%s options of %s: ", near != NULL ? "" : ";", group);
    for (size_t i = 0; i < n && i < MOST_SHOWN; i++)
        kiln_text_printf(text, "%s%s", i > 0 ? ", " : "", options[i]);
    if (n > MOST_SHOWN)
        kiln_text_append(text, ", ...");
    return near != NULL;
}

/* Whether `group` was made of an entry with a name relative to the group of its file. */
static bool is_relative(const KilnDefaultsEntry *entry, const char *group)
{
    const size_t length = strlen(entry->name);

    return entry->name[0] != '/' && strncmp(group, entry->name, length) != 0;
}

/* "there is no group 'x'; did you mean 'y'?" */
static void append_no_group(KilnExpander *expander, const KilnDefaultsEntry *entry,
                            const char *group, KilnText *text)
{
    const char *slash = strrchr(group, '/'), *above = "", *near = NULL;
    const char *const *groups;
    size_t n;

    if (slash != NULL)
        above = kiln_arena_strndup(expander->arena, group, (size_t)(slash - group));
    if (above == NULL)
        return;
    groups = list_options(expander, above, true, &n);
    if (n > 0)
        near = kiln_nearest(slash != NULL ? slash + 1 : group, groups, n);
    kiln_text_printf(text, "there is no group '%s'", group);
    if (is_relative(entry, group) &&
        kiln_search_is_group(&expander->config->search, entry->name, false))
        kiln_text_printf(text,
                         "; '%s' is relative to this file's own group: write `/%s`, or "
                         "`override /%s` to change what is selected",
                         entry->name, entry->name, entry->name);
    else if (near != NULL)
        kiln_text_printf(text, "; did you mean '%s%s%s'?", above, *above != '\0' ? "/" : "", near);
}

/* `- _slef_` may mean _self_, or a config next to the file. */
static void append_near_config(KilnExpander *expander, const char *wrong, KilnText *text)
{
    static const char *const self[] = { "_self_" };
    size_t n;
    const char *const *options = list_options(expander, "", false, &n);
    const char *near = kiln_nearest(wrong, self, 1);

    if (near == NULL && n > 0)
        near = kiln_nearest(wrong, options, n);
    if (near != NULL)
        kiln_text_printf(text, "; did you mean '%s'?", near);
}

/* `callbacks=mine`, where `mine` is a callback and not a file with a set of callbacks. */
static void append_member(const KilnExpander *expander, const KilnDefaultsEntry *entry,
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

/* A missing option would be merged where the other options of its group are merged. */
static void take_package(KilnExpander *expander, KilnDefaultsEntry *entry)
{
    size_t n = 0;
    const char *const *options = list_all_options(expander, entry->group, &n);
    const KilnConfigFile *file = NULL;

    for (size_t i = 0; i < n && file == NULL; i++) {
        const char *path = kiln_arena_printf(expander->arena, "%s/%s", entry->group, options[i]);
        KilnError ignored = { 0 }; /* nobody selected that option */

        if (path != NULL)
            file = kiln_search_file(&expander->config->search, path, &ignored);
    }
    if (file != NULL)
        kiln_defaults_entry_set_header(expander->arena, entry, file->package);
}

void kiln_expand_not_found(KilnExpander *expander, KilnDefaultsEntry *entry)
{
    const KilnSearch *search = &expander->config->search;
    const char *slash = strrchr(entry->path, '/');
    const char *name = slash != NULL ? slash + 1 : entry->path;
    const char *group = kiln_arena_strndup(expander->arena, entry->path,
                                           slash != NULL ? (size_t)(slash - entry->path) : 0);
    const char *of_plugins = "";
    KilnOrigin at = entry->option_origin;
    KilnText text = { 0 };
    KilnError err = { 0 };

    if (group == NULL)
        return;
    if (entry->kind != KILN_DEFAULTS_GROUP) {
        kiln_text_printf(&text, "there is no config '%s'", entry->path);
        if (*group == '\0')
            append_near_config(expander, entry->path, &text);
        else
            append_options(expander, group, name, &text);
    } else if (*group != '\0' && !kiln_search_is_group(search, group, false)) {
        append_no_group(expander, entry, group, &text);
        at = entry->origin;
    } else {
        kiln_text_printf(&text, "%s: there is no option '%s'", entry->name, entry->option);
        append_member(expander, entry, &text);
        if (*group != '\0' && !append_options(expander, group, name, &text))
            of_plugins = "; --plugin FILE.so adds those of a plugin";
    }
    kiln_text_printf(&text, " (searched %s%s)", kiln_search_describe(search), of_plugins);
    kiln_text_to_error(&text, KILN_E_KEY, &err);
    if (entry->origin.source != NULL)
        kiln_error_at(&err, &at);
    kiln_errors_add(expander->errors, &err);
    if (entry->kind == KILN_DEFAULTS_GROUP)
        take_package(expander, entry);
    kiln_expand_leave_out(expander, entry);
}

void kiln_expand_option_missing(KilnExpander *expander, KilnDefaultsEntry *entry)
{
    KilnText text = { 0 };
    KilnError err = { 0 };

    if (!expander->config->partial) {
        kiln_text_printf(&text, "%s: select an option: %s=OPTION", entry->key, entry->key);
        append_options(expander, entry->group, NULL, &text);
        kiln_text_to_error(&text, KILN_E_MISSING, &err);
        kiln_error_at(&err, &entry->option_origin);
        kiln_errors_add(expander->errors, &err);
    }
    kiln_expand_leave_out(expander, entry);
}

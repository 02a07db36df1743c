/* Overrides of groups, by arguments and by `override` entries. */
#include "config/defaults/group_overrides.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "config/composed.h"
#include "config/defaults/expand.h"
#include "config/provenance/error_list.h"
#include "config/tree/tree.h"

static bool is_name(const KilnConfigNode *node)
{
    return node->kind == KILN_NODE_SCALAR && node->scalar != KILN_SCALAR_NULL &&
           node->scalar != KILN_SCALAR_BOOL && node->scalar != KILN_SCALAR_MISSING;
}

/* Set the option or options that the value names. False: neither. */
static bool take_names(KilnArena *arena, const KilnConfigNode *value, KilnDefaultsEntry *entry)
{
    if (is_name(value)) {
        entry->option = value->text;
        return true;
    }
    if (value->kind != KILN_NODE_LIST)
        return false;
    entry->options = kiln_arena_alloc(arena, (value->count + 1) * sizeof(char *));
    for (size_t i = 0; entry->options != NULL && i < value->count; i++) {
        if (!is_name(value->entries[i].value))
            return false;
        entry->options[i] = value->entries[i].value->text;
    }
    return true;
}

/* Add the override, or replace the one of the same key. */
static void put(KilnExpander *expander, KilnGroupOverride override)
{
    KilnGroupOverride *old = NULL;

    if (override.key != NULL)
        old = kiln_group_overrides_find(expander, override.key, override.deletes);
    if (old != NULL)
        *old = override;
    else if (KILN_ARENA_RESERVE(expander->arena, expander->overrides, expander->overrides_capacity,
                                expander->n_overrides + 1))
        expander->overrides[expander->n_overrides++] = override;
}

/* "model" or "model@other", the key of the group in defaults lists. */
static const char *group_key(KilnArena *arena, const KilnOverride *override)
{
    if (override->package == NULL)
        return override->key;
    return kiln_arena_printf(arena, "%s@%s", override->key,
                             *override->package != '\0' ? override->package : "_global_");
}

static void add_argument(KilnExpander *expander, KilnOverride *argument)
{
    KilnArena *arena = expander->arena;
    bool deletes = argument->kind == KILN_OVERRIDE_DELETE;
    bool adds = argument->kind == KILN_OVERRIDE_ADD;
    KilnDefaultsEntry *entry = kiln_arena_alloc(arena, sizeof(*entry));
    const KilnConfigNode *value = argument->value;
    const char *wrong = NULL;

    if (entry == NULL)
        return;
    entry->kind = KILN_DEFAULTS_GROUP;
    entry->name = argument->key;
    entry->package = argument->package;
    entry->appended = adds;
    entry->origin = kiln_override_key_origin(argument);
    entry->option_origin = value != NULL ? value->origin : entry->origin;
    if (argument->kind == KILN_OVERRIDE_FORCE)
        wrong = "add a group with +, change it without a sign";
    else if (value != NULL && !take_names(arena, value, entry))
        wrong = "expected the name of an option or a list of them; ~group removes a group";
    else if (deletes && entry->options != NULL)
        wrong = "expected ~group or ~group=option";
    if (wrong != NULL)
        kiln_errors_report(expander->errors, &argument->origin, KILN_E_TYPE, "%s: %s",
                           argument->key, wrong);
    else if (adds)
        expander->appended[expander->n_appended++] = entry;
    else
        put(expander, (KilnGroupOverride) { .key = group_key(arena, argument),
                                            .entry = entry,
                                            .argument = argument,
                                            .deletes = deletes });
}

void kiln_group_overrides_read(KilnExpander *expander)
{
    KilnConfig *config = expander->config;

    expander->appended = kiln_arena_alloc(config->arena,
                                          (config->n_overrides + 1) * sizeof(*expander->appended));
    for (size_t i = 0; i < config->n_overrides && !config->arena->failed; i++) {
        KilnOverride *override = &config->overrides[i];

        if (override->sweep != NULL || override->problem != NULL ||
            override->kind > KILN_OVERRIDE_DELETE ||
            (override->value != NULL && override->value->kind == KILN_NODE_MAP))
            continue;
        override->is_group = kiln_search_is_group(&config->search, override->key, false);
        if (override->is_group)
            add_argument(expander, override);
    }
}

void kiln_group_overrides_add(KilnExpander *expander, const KilnDefaultsEntry *entry)
{
    if (kiln_group_overrides_find(expander, entry->key, false) == NULL)
        put(expander, (KilnGroupOverride) { .key = entry->key, .entry = entry });
}

KilnGroupOverride *kiln_group_overrides_find(const KilnExpander *expander, const char *key,
                                             bool deletes)
{
    for (size_t i = 0; i < expander->n_overrides; i++)
        if (expander->overrides[i].deletes == deletes &&
            strcmp(expander->overrides[i].key, key) == 0)
            return &expander->overrides[i];
    return NULL;
}

/* ---- Overrides without a group ------------------------------------------------- */

/* `override /model: mlp` in a file that goes below its own group, for want of a header? */
static bool is_displaced(const KilnDefaultsEntry *entry)
{
    const KilnDefaultsEntry *file = entry->parent;

    return file != NULL && entry->name[0] == '/' && entry->package == NULL &&
           file->into[0] != '\0' && file->header == NULL && file->package == NULL;
}

/* `override model: mlp` in a file of a group below which there is no `model`? */
static bool is_relative(const KilnSearch *search, const KilnDefaultsEntry *entry)
{
    return entry->parent != NULL && entry->name[0] != '/' && entry->parent->group[0] != '\0' &&
           !kiln_search_is_group(search, entry->group, false) &&
           kiln_search_is_group(search, entry->name, false);
}

/* "; did you mean model@other?" for the keys of the same group in other packages. */
static bool append_other_packages(const KilnDefaultsList *list, const char *key, KilnText *text)
{
    size_t n = strcspn(key, "@"), found = 0;

    for (size_t i = 0; i < list->n_selections; i++) {
        const char *other = list->selections[i].key;

        if (strncmp(other, key, n) == 0 && (other[n] == '\0' || other[n] == '@'))
            kiln_text_printf(text, "%s%s", found++ == 0 ? "; did you mean " : " or ", other);
    }
    if (found > 0)
        kiln_text_char(text, '?');
    return found > 0;
}

static void append_groups(const KilnDefaultsList *list, KilnText *text)
{
    size_t found = 0;

    for (size_t i = 0; i < list->n_selections; i++)
        if (strncmp(list->selections[i].key, "kiln/", 5) != 0)
            kiln_text_printf(text, "%s%s", found++ == 0 ? " (it has " : ", ",
                             list->selections[i].key);
    if (found > 0)
        kiln_text_char(text, ')');
}

static void report_unused(const KilnExpander *expander, const KilnGroupOverride *override)
{
    const KilnDefaultsList *list = expander->config->defaults;
    const KilnDefaultsEntry *entry = override->entry;
    bool relative = is_relative(&expander->config->search, entry);
    KilnText text = { 0 };
    KilnError err = { 0 };

    kiln_text_printf(&text, "group '%s' is not in the defaults list", override->key);
    if (!relative && !append_other_packages(list, override->key, &text))
        append_groups(list, &text);
    if (override->argument != NULL && !override->deletes)
        kiln_text_printf(&text, "; to add it write +%s", override->argument->assignment);
    if (relative)
        kiln_text_printf(&text, "; '%s' is relative to this file's own group: write `override /%s`",
                         entry->name, entry->name);
    if (is_displaced(entry))
        kiln_text_printf(&text,
                         "\n  %s has no `# @package _global_`, so its groups are below `%s`; "
                         "begin the file with that line",
                         entry->origin.source, entry->parent->into);
    kiln_text_to_error(&text, KILN_E_KEY, &err);
    kiln_error_at(&err, &entry->origin);
    kiln_errors_add(expander->errors, &err);
}

void kiln_group_overrides_check_used(const KilnExpander *expander)
{
    const KilnConfig *config = expander->config;

    for (size_t i = 0; i < expander->n_overrides; i++) {
        const KilnGroupOverride *override = &expander->overrides[i];
        KilnOverride *argument = override->argument;

        if (override->used)
            continue;
        /* A group that ships with kiln and that this config does not use may be its own key. */
        if (argument != NULL && argument->package == NULL &&
            !kiln_search_is_group(&config->search, argument->key, true))
            argument->is_group = false;
        else if (argument == NULL || !config->partial)
            report_unused(expander, override);
    }
}

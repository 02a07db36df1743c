/* Group choices of the command line and of `override` entries. */
#include "config/defaults/group_overrides.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/composed.h"
#include "config/tree/tree.h"

static KilnStatus wrong(const KilnOverride *override, KilnErrors *errors, const char *what)
{
    KilnError err = { 0 };

    kiln_error_set(&err, KILN_E_TYPE, "%s: %s", override->key, what);
    kiln_error_at(&err, &override->origin);
    return kiln_errors_add(errors, &err);
}

static bool is_name(const KilnConfigNode *node)
{
    return node->kind == KILN_NODE_SCALAR && node->scalar != KILN_SCALAR_NULL &&
           node->scalar != KILN_SCALAR_BOOL && node->scalar != KILN_SCALAR_MISSING;
}

/* The option or options that the override names. False: neither. */
static bool names_of(KilnArena *arena, const KilnConfigNode *value, const char **ret_option,
                     const char ***ret_options)
{
    if (is_name(value)) {
        *ret_option = value->text;
        return true;
    }
    if (value->kind != KILN_NODE_LIST)
        return false;
    *ret_options = kiln_arena_alloc(arena, (value->count + 1) * sizeof(char *));
    for (size_t i = 0; *ret_options != NULL && i < value->count; i++) {
        if (!is_name(value->entries[i].value))
            return false;
        (*ret_options)[i] = value->entries[i].value->text;
    }
    return *ret_options != NULL;
}

static KilnGroupOverride *new_choice(KilnGroupOverrides *choices)
{
    if (choices->count == choices->capacity) {
        size_t capacity = choices->capacity > 0 ? choices->capacity * 2 : 8;
        KilnGroupOverride *list = kiln_arena_alloc(choices->arena, capacity * sizeof(*list));

        if (list == NULL)
            return NULL;
        if (choices->count > 0)
            memcpy(list, choices->list, choices->count * sizeof(*list));
        choices->list = list;
        choices->capacity = capacity;
    }
    return &choices->list[choices->count++];
}

static KilnStatus append(KilnGroupOverrides *choices, const KilnOverride *override,
                         const char *option, const char **options, KilnError *err)
{
    KilnDefaultsEntry *entry = kiln_arena_alloc(choices->arena, sizeof(*entry));

    if (entry == NULL)
        return kiln_error_nomem(err, sizeof(*entry));
    *entry = (KilnDefaultsEntry) { .kind = KILN_DEFAULTS_GROUP,
                                   .name = override->key,
                                   .package = override->package,
                                   .option = option,
                                   .options = options,
                                   .appended = true,
                                   .origin = kiln_override_key_origin(override),
                                   .option_origin = override->value->origin };
    if (entry->package != NULL && strcmp(entry->package, "_here_") == 0)
        entry->package = "";
    choices->appended[choices->n_appended++] = entry;
    return KILN_OK;
}

static KilnOrigin option_origin(const KilnOverride *override)
{
    return override->value != NULL ? override->value->origin : kiln_override_key_origin(override);
}

static KilnStatus add_override(KilnGroupOverrides *choices, KilnOverride *override,
                               KilnErrors *errors)
{
    const char *option = NULL, **options = NULL;
    KilnError err = { 0 };
    KilnGroupOverride *choice, *other;

    if (override->kind == KILN_OVERRIDE_FORCE)
        return wrong(override, errors, "a group is added with one +, or changed without");
    if (override->value != NULL && !names_of(choices->arena, override->value, &option, &options))
        return wrong(override, errors,
                     "expected the name of an option or a list of them; ~group takes a group away");
    if (override->kind == KILN_OVERRIDE_DELETE && options != NULL)
        return wrong(override, errors, "expected ~group or ~group=option");
    if (override->kind == KILN_OVERRIDE_ADD)
        return append(choices, override, option, options, &err) < 0 ? kiln_errors_add(errors, &err)
                                                                    : KILN_OK;
    const char *key = kiln_override_group_key(choices->arena, override);
    bool deletes = override->kind == KILN_OVERRIDE_DELETE;
    other = key != NULL ? kiln_group_overrides_find(choices, key, deletes) : NULL;
    choice = other != NULL ? other : key != NULL ? new_choice(choices) : NULL;
    if (choice == NULL)
        return kiln_errors_add(errors, (kiln_error_nomem(&err, sizeof(*choice)), &err));
    *choice = (KilnGroupOverride) { .key = key,
                                    .option = option,
                                    .options = options,
                                    .origin = kiln_override_key_origin(override),
                                    .option_origin = option_origin(override),
                                    .argument = override,
                                    .deletes = deletes };
    return KILN_OK;
}

KilnStatus kiln_group_overrides_read(KilnConfig *config, KilnOverride *overrides,
                                     size_t n_overrides, KilnErrors *errors,
                                     KilnGroupOverrides *ret)
{
    *ret = (KilnGroupOverrides) { .arena = config->arena, .search = &config->search };
    ret->appended = kiln_arena_alloc(config->arena,
                                     (n_overrides + 1) * sizeof(KilnDefaultsEntry *));
    if (ret->appended == NULL)
        return KILN_E_NOMEM;
    for (size_t i = 0; i < n_overrides; i++) {
        KilnOverride *override = &overrides[i];

        if (override->sweep != NULL || override->problem != NULL ||
            override->kind > KILN_OVERRIDE_DELETE ||
            (override->value != NULL && override->value->kind == KILN_NODE_MAP))
            continue;
        override->is_group = kiln_search_is_group(&config->search, override->key, false);
        if (override->is_group && add_override(ret, override, errors) == KILN_E_NOMEM)
            return KILN_E_NOMEM;
    }
    return KILN_OK;
}

/* `override /model: mlp` in a file that goes below its own group, for want of a header? */
static bool is_displaced(const KilnDefaultsEntry *entry)
{
    const KilnDefaultsEntry *file = entry->parent;

    return entry->name[0] == '/' && entry->package == NULL && entry->parent_package[0] != '\0' &&
           file != NULL && file->header == NULL && file->package == NULL;
}

/* `override model: mlp` in a file of a group below which there is no `model`? */
static bool is_relative(const KilnGroupOverrides *choices, const KilnDefaultsEntry *entry)
{
    const char *group = kiln_defaults_entry_group(choices->arena, entry);

    return entry->name[0] != '/' && entry->base_dir[0] != '\0' && group != NULL &&
           !kiln_search_is_group(choices->search, group, false) &&
           kiln_search_is_group(choices->search, entry->name, false);
}

KilnStatus kiln_group_overrides_add(KilnGroupOverrides *choices, const KilnDefaultsEntry *entry,
                                    KilnError *err)
{
    const char *key = kiln_defaults_entry_key(choices->arena, entry);
    KilnGroupOverride *choice;

    if (key == NULL)
        return kiln_error_nomem(err, 1);
    if (kiln_group_overrides_find(choices, key, false) != NULL)
        return KILN_OK;
    choice = new_choice(choices);
    if (choice == NULL)
        return kiln_error_nomem(err, sizeof(*choice));
    *choice = (KilnGroupOverride) {
        .key = key,
        .option = entry->option,
        .options = entry->options,
        .origin = entry->origin,
        .option_origin = entry->option_origin,
        .below = is_displaced(entry) ? entry->parent_package : NULL,
        .relative = is_relative(choices, entry) ? entry->name : NULL,
    };
    return KILN_OK;
}

KilnGroupOverride *kiln_group_overrides_find(const KilnGroupOverrides *choices, const char *key,
                                             bool deletes)
{
    for (size_t i = 0; i < choices->count; i++)
        if (choices->list[i].deletes == deletes && strcmp(choices->list[i].key, key) == 0)
            return &choices->list[i];
    return NULL;
}

/* The keys under which the group was met, in other packages. */
static void say_others(const KilnDefaultsList *list, const char *key, KilnText *text)
{
    size_t n = strcspn(key, "@"), found = 0;

    for (size_t i = 0; i < list->n_selections; i++) {
        const char *other = list->selections[i].key;

        if (strncmp(other, key, n) == 0 && (other[n] == '\0' || other[n] == '@'))
            kiln_text_printf(text, "%s%s", found++ == 0 ? "; did you mean " : " or ", other);
    }
    if (found > 0)
        kiln_text_char(text, '?');
}

static void say_groups(const KilnDefaultsList *list, KilnText *text)
{
    size_t found = 0;

    for (size_t i = 0; i < list->n_selections; i++)
        if (strncmp(list->selections[i].key, "kiln/", 5) != 0)
            kiln_text_printf(text, "%s%s", found++ == 0 ? " (it has " : ", ",
                             list->selections[i].key);
    if (found > 0)
        kiln_text_char(text, ')');
}

void kiln_group_overrides_unused(KilnConfig *config, const KilnGroupOverrides *choices,
                                 const KilnDefaultsList *list, KilnErrors *errors)
{
    for (size_t i = 0; i < choices->count; i++) {
        const KilnGroupOverride *choice = &choices->list[i];
        KilnText text = { 0 };
        KilnError err = { 0 };

        if (choice->used)
            continue;
        /* A group of ours that this config does not use is no group to it. */
        if (choice->argument != NULL && choice->argument->package == NULL &&
            !kiln_search_is_group(&config->search, choice->argument->key, true)) {
            choice->argument->is_group = false;
            continue;
        }
        if (config->partial && choice->argument != NULL)
            continue;
        kiln_text_printf(&text, "group '%s' is not in the defaults list", choice->key);
        if (choice->relative == NULL)
            say_others(list, choice->key, &text);
        if (choice->relative == NULL && text.data != NULL && strchr(text.data, '?') == NULL)
            say_groups(list, &text);
        if (choice->argument != NULL && !choice->deletes)
            kiln_text_printf(&text, "; to add it write +%s", choice->argument->assignment);
        if (choice->relative != NULL)
            kiln_text_printf(&text,
                             "; '%s' is counted from this file's own group: write "
                             "`override /%s`",
                             choice->relative, choice->relative);
        if (choice->below != NULL)
            kiln_text_printf(&text,
                             "\n  %s has no `# @package _global_`, so its groups are below `%s`; "
                             "begin the file with that line",
                             choice->origin.source, choice->below);
        kiln_error_set(&err, KILN_E_KEY, "%s", text.data != NULL ? text.data : "out of memory");
        kiln_error_at(&err, &choice->origin);
        kiln_errors_add(errors, &err);
        kiln_text_release(&text);
    }
}

/* Overrides of groups, by arguments and by `override` entries. */
#include "config/defaults/group_overrides.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "config/composed.h"
#include "config/provenance/error_list.h"
#include "config/tree/tree.h"

static KilnStatus wrong(const KilnOverride *override, KilnErrors *errors, const char *what)
{
    return kiln_errors_report(errors, &override->origin, KILN_E_TYPE, "%s: %s", override->key,
                              what);
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

static KilnGroupOverride *new_override(KilnGroupOverrides *overrides)
{
    if (!KILN_ARENA_RESERVE(overrides->arena, overrides->list, overrides->capacity,
                            overrides->count + 1))
        return NULL;
    return &overrides->list[overrides->count++];
}

static KilnStatus append(KilnGroupOverrides *overrides, const KilnOverride *override,
                         const char *option, const char **options, KilnError *err)
{
    KilnDefaultsEntry *entry = kiln_arena_alloc(overrides->arena, sizeof(*entry));

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
    overrides->appended[overrides->n_appended++] = entry;
    return KILN_OK;
}

static KilnOrigin option_origin(const KilnOverride *override)
{
    return override->value != NULL ? override->value->origin : kiln_override_key_origin(override);
}

static KilnStatus add_argument(KilnGroupOverrides *overrides, KilnOverride *argument,
                               KilnErrors *errors)
{
    bool deletes = argument->kind == KILN_OVERRIDE_DELETE;
    const char *option = NULL, **options = NULL, *key;
    KilnError err = { 0 };
    KilnGroupOverride *override;

    if (argument->kind == KILN_OVERRIDE_FORCE)
        return wrong(argument, errors, "add a group with +, change it without a sign");
    if (argument->value != NULL && !names_of(overrides->arena, argument->value, &option, &options))
        return wrong(argument, errors,
                     "expected the name of an option or a list of them; ~group removes a group");
    if (deletes && options != NULL)
        return wrong(argument, errors, "expected ~group or ~group=option");
    if (argument->kind == KILN_OVERRIDE_ADD)
        return append(overrides, argument, option, options, &err) < 0
                   ? kiln_errors_add(errors, &err)
                   : KILN_OK;
    key = kiln_override_group_key(overrides->arena, argument);
    override = key != NULL ? kiln_group_overrides_find(overrides, key, deletes) : NULL;
    if (override == NULL && key != NULL)
        override = new_override(overrides);
    if (override == NULL) {
        kiln_error_nomem(&err, sizeof(*override));
        return kiln_errors_add(errors, &err);
    }
    *override = (KilnGroupOverride) { .key = key,
                                      .option = option,
                                      .options = options,
                                      .origin = kiln_override_key_origin(argument),
                                      .option_origin = option_origin(argument),
                                      .argument = argument,
                                      .deletes = deletes };
    return KILN_OK;
}

KilnStatus kiln_group_overrides_read(KilnConfig *config, KilnErrors *errors,
                                     KilnGroupOverrides *ret)
{
    *ret = (KilnGroupOverrides) { .arena = config->arena, .search = &config->search };
    ret->appended = kiln_arena_alloc(config->arena,
                                     (config->n_overrides + 1) * sizeof(KilnDefaultsEntry *));
    if (ret->appended == NULL)
        return KILN_E_NOMEM;
    for (size_t i = 0; i < config->n_overrides; i++) {
        KilnOverride *override = &config->overrides[i];

        if (override->sweep != NULL || override->problem != NULL ||
            override->kind > KILN_OVERRIDE_DELETE ||
            (override->value != NULL && override->value->kind == KILN_NODE_MAP))
            continue;
        override->is_group = kiln_search_is_group(&config->search, override->key, false);
        if (override->is_group && add_argument(ret, override, errors) == KILN_E_NOMEM)
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
static bool is_relative(const KilnGroupOverrides *overrides, const KilnDefaultsEntry *entry)
{
    const char *group = kiln_defaults_entry_group(overrides->arena, entry);

    return entry->name[0] != '/' && entry->base_dir[0] != '\0' && group != NULL &&
           !kiln_search_is_group(overrides->search, group, false) &&
           kiln_search_is_group(overrides->search, entry->name, false);
}

KilnStatus kiln_group_overrides_add(KilnGroupOverrides *overrides, const KilnDefaultsEntry *entry,
                                    KilnError *err)
{
    const char *key = kiln_defaults_entry_key(overrides->arena, entry);
    KilnGroupOverride *override;

    if (key == NULL)
        return kiln_error_nomem(err, 1);
    if (kiln_group_overrides_find(overrides, key, false) != NULL)
        return KILN_OK;
    override = new_override(overrides);
    if (override == NULL)
        return kiln_error_nomem(err, sizeof(*override));
    *override = (KilnGroupOverride) {
        .key = key,
        .option = entry->option,
        .options = entry->options,
        .origin = entry->origin,
        .option_origin = entry->option_origin,
        .below = is_displaced(entry) ? entry->parent_package : NULL,
        .relative = is_relative(overrides, entry) ? entry->name : NULL,
    };
    return KILN_OK;
}

KilnGroupOverride *kiln_group_overrides_find(const KilnGroupOverrides *overrides, const char *key,
                                             bool deletes)
{
    for (size_t i = 0; i < overrides->count; i++)
        if (overrides->list[i].deletes == deletes && strcmp(overrides->list[i].key, key) == 0)
            return &overrides->list[i];
    return NULL;
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

static void report_unused(const KilnGroupOverride *override, const KilnDefaultsList *list,
                          KilnErrors *errors)
{
    KilnText text = { 0 };
    KilnError err = { 0 };

    kiln_text_printf(&text, "group '%s' is not in the defaults list", override->key);
    if (override->relative == NULL && !append_other_packages(list, override->key, &text))
        append_groups(list, &text);
    if (override->argument != NULL && !override->deletes)
        kiln_text_printf(&text, "; to add it write +%s", override->argument->assignment);
    if (override->relative != NULL)
        kiln_text_printf(&text, "; '%s' is relative to this file's own group: write `override /%s`",
                         override->relative, override->relative);
    if (override->below != NULL)
        kiln_text_printf(&text,
                         "\n  %s has no `# @package _global_`, so its groups are below `%s`; "
                         "begin the file with that line",
                         override->origin.source, override->below);
    kiln_text_to_error(&text, KILN_E_KEY, &err);
    kiln_error_at(&err, &override->origin);
    kiln_errors_add(errors, &err);
}

void kiln_group_overrides_check_used(const KilnConfig *config, const KilnGroupOverrides *overrides,
                                     const KilnDefaultsList *list, KilnErrors *errors)
{
    for (size_t i = 0; i < overrides->count; i++) {
        const KilnGroupOverride *override = &overrides->list[i];
        KilnOverride *argument = override->argument;

        if (override->used)
            continue;
        /* A group that ships with kiln and that this config does not use may be its own key. */
        if (argument != NULL && argument->package == NULL &&
            !kiln_search_is_group(&config->search, argument->key, true))
            argument->is_group = false;
        else if (argument == NULL || !config->partial)
            report_unused(override, list, errors);
    }
}

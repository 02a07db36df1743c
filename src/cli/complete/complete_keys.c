/* Completes the names of overrides: groups, and keys of the composed tree. */
#include "cli/complete/complete_keys.h"

#include <string.h>

#include "base/text.h"
#include "config/yaml/output.h"
#include "config/composed.h"
#include "registry/registry.h"

/* ---- Keys ---------------------------------------------------------------------------------- */

/* Whether the grammar of overrides can write the name. */
static bool writable(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-$";

    return name[0] != '\0' && name[strspn(name, letters)] == '\0';
}

/* Whether keys below the node can be named. */
static bool has_keys(const KilnConfigNode *node, KilnKeyUse use)
{
    if (node->kind == KILN_NODE_MAP && use == KILN_KEY_ADD)
        return true;
    for (size_t i = 0; i < node->count; i++)
        if (node->kind == KILN_NODE_MAP ? node->entries[i].key[0] != '_'
                                        : node->entries[i].value->kind == KILN_NODE_MAP)
            return true;
    return false;
}

/* "step size; now 0.05", "resnet" for a mapping that builds one. */
static const char *key_note(KilnCompletionContext *context, const KilnField *field,
                            const KilnConfigNode *node)
{
    const char *value = kiln_complete_value_text(&context->arena, context->config, node);
    const KilnConfigNode *target = kiln_node_get(node, "_target_");

    if (value == NULL && target != NULL)
        value = target->text;
    if (field == NULL || value == NULL)
        return field != NULL ? field->help : value;
    return kiln_arena_printf(&context->arena, "%s; now %s", field->help, value);
}

static void add_key(KilnCompletionContext *context, KilnCandidates *candidates, const char *path,
                    const char *key, const KilnConfigNode *node, KilnKeyUse use)
{
    KilnArena *arena = &context->arena;

    if (!kiln_starts_with(path, candidates->typed)) /* cheap, before a note is made */
        return;
    const KilnField *field = kiln_config_field(context->config, context->registry, key);
    const char *note = key_note(context, field, node);
    bool component = field != NULL && field->type == KILN_TYPE_COMPONENT &&
                     field->shape == KILN_ONE;

    if (use == KILN_KEY_NAME)
        kiln_candidates_add(candidates, false, path, note);
    else if (use == KILN_KEY_SET &&
             (node->kind != KILN_NODE_MAP || node->count == 0 || (component && strchr(key, '.'))))
        kiln_candidates_add(candidates, true, kiln_arena_printf(arena, "%s=", path), note);
    if (has_keys(node, use))
        kiln_candidates_add(candidates, true, kiln_arena_printf(arena, "%s.", path), note);
}

/* The node whose children are completed; references are followed only to read. */
static const KilnConfigNode *parent_at(KilnCompletionContext *context, const char *path,
                                       KilnKeyUse use)
{
    const KilnConfigNode *node = NULL, *resolved = NULL;

    if (*path == '\0')
        return kiln_config_root(context->config);
    if (use != KILN_KEY_NAME)
        return kiln_node_find(kiln_config_root(context->config), path);
    if (kiln_config_find(context->config, path, &node, NULL) < 0 ||
        kiln_config_resolve(context->config, node, &resolved, NULL) < 0)
        return NULL;
    return resolved;
}

void kiln_complete_keys(KilnCompletionContext *context, KilnCandidates *candidates,
                        const char *before, const char *typed, KilnKeyUse use)
{
    KilnArena *arena = &context->arena;
    const char *dot = strrchr(typed, '.'), *last = dot != NULL ? dot + 1 : typed;
    const char *parent = kiln_arena_strndup(arena, typed, dot != NULL ? (size_t)(dot - typed) : 0);

    if (context->config == NULL || parent == NULL ||
        (parent = kiln_own_path(arena, parent)) == NULL)
        return;
    const KilnConfigNode *node = parent_at(context, parent, use);
    for (size_t i = 0; node != NULL && i < node->count; i++) {
        const KilnEntry *entry = &node->entries[i];
        const char *name = entry->key != NULL ? entry->key : kiln_arena_printf(arena, "%zu", i);

        /* _target_ and the like are offered only after an underscore. */
        if (name == NULL || !writable(name) || (name[0] == '_' && last[0] != '_'))
            continue;
        const char *path = kiln_arena_printf(arena, "%s%.*s%s", before, (int)(last - typed), typed,
                                             name);
        const char *key = kiln_arena_printf(arena, "%s%s%s", parent, *parent != '\0' ? "." : "",
                                            name);
        if (path != NULL && key != NULL)
            add_key(context, candidates, path, key, entry->value, use);
    }
}

/* ---- Groups -------------------------------------------------------------------------------- */

/* Add the groups of the defaults list, followed by `end`. */
static void add_selected(KilnCompletionContext *context, KilnCandidates *candidates,
                         const char *before, const char *end)
{
    const KilnSelection *selection;

    for (size_t i = 0; (selection = kiln_config_selection(context->config, i)) != NULL; i++)
        kiln_candidates_add(
            candidates, *end != '\0',
            kiln_arena_printf(&context->arena, "%s%s%s", before, selection->key, end),
            kiln_arena_printf(&context->arena, "group; now %s",
                              selection->option != NULL ? selection->option : "none"));
}

/* Add all groups, by one level. */
static void add_groups(KilnCompletionContext *context, KilnCandidates *candidates,
                       const char *before, const char *typed)
{
    KilnArena *arena = &context->arena;
    const char *slash = strrchr(typed, '/');
    const char *parent = kiln_arena_strndup(arena, typed,
                                            slash != NULL ? (size_t)(slash - typed) : 0);
    const char **groups = parent != NULL ? kiln_completion_context_options(context, parent, true)
                                         : NULL;

    for (; groups != NULL && *groups != NULL; groups++) {
        const char *group = kiln_arena_printf(arena, "%s%s%s", parent, *parent != '\0' ? "/" : "",
                                              *groups);

        if (group == NULL || !kiln_starts_with(group, typed) ||
            (strcmp(group, "kiln") == 0 && *typed == '\0'))
            continue;
        if (kiln_completion_context_options(context, group, false) != NULL)
            kiln_candidates_add(candidates, true, kiln_arena_printf(arena, "%s%s=", before, group),
                                "group");
        if (kiln_completion_context_options(context, group, true) != NULL)
            kiln_candidates_add(candidates, true, kiln_arena_printf(arena, "%s%s/", before, group),
                                "group");
    }
}

/* ---- Overrides ----------------------------------------------------------------------------- */

static void complete_name(KilnCompletionContext *context, KilnCandidates *candidates,
                          const char *sign, const char *typed)
{
    KilnKeyUse use = strcmp(sign, "~") == 0   ? KILN_KEY_NAME
                     : strcmp(sign, "+") == 0 ? KILN_KEY_ADD
                                              : KILN_KEY_SET;

    if (use == KILN_KEY_ADD || context->config == NULL || kiln_starts_with(typed, "kiln/"))
        add_groups(context, candidates, sign, typed);
    else if (strcmp(sign, "++") != 0)
        add_selected(context, candidates, sign, use == KILN_KEY_NAME ? "" : "=");
    kiln_complete_keys(context, candidates, sign, typed, use);
}

void kiln_complete_override(KilnCompletionContext *context, KilnCandidates *candidates)
{
    const char *typed = candidates->typed, *equals = strchr(typed, '=');
    size_t n = typed[0] == '~' ? 1 : strspn(typed, "+");
    const char *sign = kiln_arena_strndup(&context->arena, typed, n < 2 ? n : 2);

    if (sign == NULL || n > 2)
        return;
    if (equals == NULL) {
        complete_name(context, candidates, sign, typed + n);
        return;
    }
    size_t length = (size_t)(equals - typed) - n;
    if (length > 0 && strchr("+-:", typed[n + length - 1]) != NULL)
        length--; /* key+=value, key-=value, key:=value */
    const char *key = kiln_arena_strndup(&context->arena, typed + n, length);
    const char *before = kiln_arena_strndup(&context->arena, typed, (size_t)(equals + 1 - typed));
    if (key != NULL && before != NULL)
        kiln_complete_value(context, candidates, before, key, equals + 1);
}

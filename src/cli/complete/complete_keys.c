/* Completes the names of overrides: groups, their options, and keys of the composed tree. */
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "cli/complete/completion.h"
#include "config/yaml/output.h"
#include "config/composed.h"
#include "registry/registry.h"

/* `typed` up to its last `separator`, which is cut off; NULL when memory is out. */
static const char *take_parent(KilnCompletion *c, char separator)
{
    const char *typed = c->typed, *last = strrchr(typed, separator);

    c->typed = last != NULL ? last + 1 : typed;
    return kiln_arena_strndup(&c->arena, typed, last != NULL ? (size_t)(last - typed) : 0);
}

/* "a/b"; one of them alone when the other is "". */
static const char *join(KilnArena *arena, const char *a, char separator, const char *b)
{
    return *a != '\0' && *b != '\0' ? kiln_arena_printf(arena, "%s%c%s", a, separator, b)
                                    : kiln_arena_strdup(arena, *a != '\0' ? a : b);
}

/* ---- Groups -------------------------------------------------------------------------------- */

/* The first comment of YAML text that is no header. */
static const char *first_comment(KilnArena *arena, const char *text)
{
    while (text[0] == '#') {
        size_t length = strcspn(text, "\n");
        const char *start = text + 1 + strspn(text + 1, "# \t");

        if (start < text + length && !kiln_starts_with(start, "@package") &&
            !kiln_starts_with(start, "yaml-language-server"))
            return kiln_arena_strndup(arena, start, (size_t)(text + length - start));
        text += length;
        text += *text == '\n';
    }
    return NULL;
}

/* The first comment of an option's file, or its component's summary; NULL: none. */
static const char *option_note(KilnCompletion *c, const char *group, const char *option)
{
    static const size_t largest = 1 << 20;
    const char *name = kiln_arena_printf(&c->arena, "%s/%s.yaml", group, option), *note = NULL;
    const char *kind = strcmp(group, "task") == 0 ? "module" : group;
    const char *const *dirs = c->config != NULL ? c->request.config_dirs : NULL;
    const KilnComponent *component = NULL;

    for (; name != NULL && dirs != NULL && *dirs != NULL; dirs++) {
        char *path = kiln_path_join(*dirs, name), *text = NULL;
        size_t size;
        const bool found = path != NULL && kiln_file_read(path, largest, &text, &size, NULL) >= 0;

        if (found)
            note = first_comment(&c->arena, text);
        free(path);
        free(text);
        if (found)
            return note;
    }
    const KilnShippedFile *shipped = name != NULL ? kiln_shipped_find(name) : NULL;
    if (shipped != NULL)
        return first_comment(&c->arena, shipped->text);
    if (c->registry != NULL)
        component = kiln_registry_find(c->registry, kiln_kind_find(kind, strlen(kind)), option);
    return component != NULL ? component->summary : NULL;
}

void kiln_complete_group(KilnCompletion *c, const char *group, bool options, const char *end)
{
    const char *note = end != NULL ? "group" : NULL, *typed = c->typed;
    const char *parent = take_parent(c, '/');

    if (parent == NULL || (parent = join(&c->arena, group, '/', parent)) == NULL)
        return;
    const char *const *found = kiln_completion_options(c, parent, false);
    for (; options && *found != NULL; found++)
        kiln_candidate_add(c, false, option_note(c, parent, *found), "%s", *found);
    for (found = kiln_completion_options(c, parent, true); *found != NULL; found++) {
        const char *path = join(&c->arena, parent, '/', *found);

        if (path == NULL || (strcmp(path, "kiln") == 0 && *c->typed == '\0'))
            continue;
        if (end != NULL)
            kiln_candidate_add(c, *end != '\0', note, "%s%s", *found, end);
        if (options || *kiln_completion_options(c, path, true) != NULL)
            kiln_candidate_add(c, true, note, "%s/", *found);
    }
    c->typed = typed;
}

/* Add the groups of the defaults list, followed by `end`. */
static void add_selected(KilnCompletion *c, const char *end)
{
    const KilnSelection *selection;

    for (size_t i = 0; (selection = kiln_config_selection(c->config, i)) != NULL; i++)
        kiln_candidate_add(
            c, *end != '\0',
            kiln_arena_printf(&c->arena, "group; now %s",
                              selection->option != NULL ? selection->option : "none"),
            "%s%s", selection->key, end);
}

/* ---- Keys ---------------------------------------------------------------------------------- */

/* Whether the grammar of overrides can write the name. */
static bool writable(const char *name)
{
    const char *end = name;

    while (kiln_is_word(*end) || *end == '$')
        end++;
    return end > name && *end == '\0';
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
static const char *key_note(KilnCompletion *c, const KilnField *field, const KilnConfigNode *node)
{
    const char *value = kiln_complete_value_text(c, node);

    if (value == NULL)
        value = kiln_node_text(node, "_target_");
    if (field == NULL || value == NULL)
        return field != NULL ? field->help : value;
    return kiln_arena_printf(&c->arena, "%s; now %s", field->help, value);
}

/* Add the key `name`; `key` is its whole path. */
static void add_key(KilnCompletion *c, const char *name, const char *key,
                    const KilnConfigNode *node, KilnKeyUse use)
{
    const KilnField *field = kiln_config_field(c->config, c->registry, key);
    const char *note = key_note(c, field, node);
    bool component = field != NULL && field->type == KILN_TYPE_COMPONENT &&
                     field->shape == KILN_ONE;

    if (use == KILN_KEY_NAME)
        kiln_candidate_add(c, false, note, "%s", name);
    else if (use == KILN_KEY_SET &&
             (node->kind != KILN_NODE_MAP || node->count == 0 || (component && strchr(key, '.'))))
        kiln_candidate_add(c, true, note, "%s=", name);
    if (has_keys(node, use))
        kiln_candidate_add(c, true, note, "%s.", name);
}

/* The node whose children are completed; references are followed only to read. */
static const KilnConfigNode *parent_at(const KilnConfig *config, const char *path, KilnKeyUse use)
{
    const KilnConfigNode *node = NULL, *resolved = NULL;

    if (*path == '\0')
        return kiln_config_root(config);
    if (use != KILN_KEY_NAME)
        return kiln_node_find(kiln_config_root(config), path);
    if (kiln_config_find(config, path, &node, NULL) < 0 ||
        kiln_config_resolve(config, node, &resolved, NULL) < 0)
        return NULL;
    return resolved;
}

void kiln_complete_keys(KilnCompletion *c, KilnKeyUse use)
{
    const char *parent = take_parent(c, '.');

    if (c->config == NULL || parent == NULL || (parent = kiln_own_path(&c->arena, parent)) == NULL)
        return;
    const KilnConfigNode *node = parent_at(c->config, parent, use);
    for (size_t i = 0; node != NULL && i < node->count; i++) {
        const KilnEntry *entry = &node->entries[i];
        const char *name = entry->key != NULL ? entry->key : kiln_arena_printf(&c->arena, "%zu", i);

        /* _target_ and the like are offered only after an underscore. */
        if (name == NULL || !kiln_starts_with(name, c->typed) || !writable(name) ||
            (name[0] == '_' && c->typed[0] != '_'))
            continue;
        const char *key = join(&c->arena, parent, '.', name);
        if (key != NULL)
            add_key(c, name, key, entry->value, use);
    }
}

/* ---- Overrides ----------------------------------------------------------------------------- */

/* Complete a key or group after `sign` ("", "+", "++", "~"). */
static void complete_name(KilnCompletion *c, const char *sign)
{
    KilnKeyUse use = strcmp(sign, "~") == 0   ? KILN_KEY_NAME
                     : strcmp(sign, "+") == 0 ? KILN_KEY_ADD
                                              : KILN_KEY_SET;

    if (use == KILN_KEY_ADD || c->config == NULL || kiln_starts_with(c->typed, "kiln/"))
        kiln_complete_group(c, "", false, "=");
    else if (strcmp(sign, "++") != 0)
        add_selected(c, use == KILN_KEY_NAME ? "" : "=");
    kiln_complete_keys(c, use);
}

void kiln_complete_override(KilnCompletion *c)
{
    const char *typed = c->typed, *equals = strchr(typed, '=');
    size_t n = typed[0] == '~' ? 1 : strspn(typed, "+");
    const char *sign = kiln_arena_strndup(&c->arena, typed, n < 2 ? n : 2);
    char change = '\0';

    if (sign == NULL || n > 2)
        return;
    c->typed += n;
    if (equals == NULL) {
        complete_name(c, sign);
        return;
    }
    size_t length = (size_t)(equals - c->typed);
    if (length > 0 && strchr("+-:", equals[-1]) != NULL)
        change = c->typed[--length]; /* key+=value, key-=value, key:=value */
    const char *key = kiln_arena_strndup(&c->arena, c->typed, length);
    c->typed = equals + 1;
    if (key != NULL)
        kiln_complete_value(c, key, change == ':' ? '\0' : change);
}

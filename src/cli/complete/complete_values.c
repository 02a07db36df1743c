/* Completes the values of overrides: options of groups, choices, files, the current value. */
#include "cli/complete/complete_keys.h"

#include <string.h>

#include "base/text.h"
#include "config/composed.h"
#include "registry/registry.h"
#include "schema/table.h"

typedef struct Value {
    KilnCompletionContext *context;
    KilnCandidates *candidates;
    const char *before; /* the word up to the last item of the value */
    const char *whole;  /* the word up to the value */
    const char *key;    /* without sign */
    const char *text;   /* the value so far */
    const char *item;   /* its last item */
    bool bracket;       /* within [ or (: something must follow */
    char sign;          /* + and - of key+=item and key-=item; 0: none */
} Value;

/* ---- Texts --------------------------------------------------------------------------------- */

/* Whether the grammar reads the text back without quotes. */
static bool is_plain(const char *text)
{
    return text[0] != '\0' && strpbrk(text, " \t\n,[](){}'\"\\=$") == NULL;
}

static const char *scalar_text(KilnArena *arena, const KilnConfigNode *node)
{
    if (node->scalar == KILN_SCALAR_MISSING || strlen(node->text) > 200)
        return NULL;
    if (node->scalar != KILN_SCALAR_STR || is_plain(node->text))
        return node->text;
    return strpbrk(node->text, "'\\\n") == NULL ? kiln_arena_printf(arena, "'%s'", node->text)
                                                : NULL;
}

const char *kiln_complete_value_text(KilnArena *arena, const KilnConfig *config,
                                     const KilnConfigNode *node)
{
    const KilnConfigNode *resolved = NULL;

    if (kiln_config_resolve(config, node, &resolved, NULL) < 0 || resolved == NULL)
        return NULL;
    if (resolved->kind == KILN_NODE_SCALAR)
        return scalar_text(arena, resolved);
    if (resolved->kind != KILN_NODE_LIST || resolved->count > 16)
        return NULL;
    const char *list = "[";
    for (size_t i = 0; list != NULL && i < resolved->count; i++) {
        const KilnConfigNode *item = resolved->entries[i].value;
        const char *text = item->kind == KILN_NODE_SCALAR ? scalar_text(arena, item) : NULL;

        list = text != NULL ? kiln_arena_printf(arena, "%s%s%s", list, i > 0 ? "," : "", text)
                            : NULL;
    }
    return list != NULL ? kiln_arena_printf(arena, "%s]", list) : NULL;
}

/* ---- Candidates ---------------------------------------------------------------------------- */

/* Whether `name` is one of the items before the last. */
static bool given_before(const Value *value, const char *name)
{
    const char *bracket = strpbrk(value->text, "[("), *p = value->text;

    if (bracket != NULL && bracket < value->item)
        p = bracket + 1;
    while (p < value->item) {
        size_t length = strcspn(p, ",");

        if (p + length >= value->item)
            break;
        if (length == strlen(name) && strncmp(p, name, length) == 0)
            return true;
        p += length + 1;
    }
    return false;
}

static void add_item(const Value *value, const char *name, const char *note)
{
    if (name != NULL && !given_before(value, name))
        kiln_candidates_add(value->candidates, value->bracket,
                            kiln_arena_printf(&value->context->arena, "%s%s", value->before, name),
                            note);
}

/* Add a whole value; it is not offered as an item of a list. */
static void add_whole(const Value *value, const char *text, const char *note)
{
    if (text != NULL)
        kiln_candidates_add(value->candidates, false,
                            kiln_arena_printf(&value->context->arena, "%s%s", value->whole, text),
                            note);
}

static void add_components(const Value *value, KilnKind kind, bool with_kind)
{
    const KilnRegistry *registry = value->context->registry;

    for (size_t i = 0; registry != NULL && i < kiln_registry_count(registry); i++) {
        const KilnComponent *component = kiln_registry_at(registry, i);

        if (kind != KILN_KIND_ANY && component->kind != kind)
            continue;
        add_item(value,
                 with_kind ? kiln_arena_printf(&value->context->arena, "%s/%s",
                                               kiln_kind_name(component->kind), component->name)
                           : component->name,
                 component->summary);
    }
}

/* ---- Groups -------------------------------------------------------------------------------- */

/* Whether the key is a group: one of the defaults list, or with + or without a config any. */
static bool is_group(const Value *value, const char *group)
{
    KilnCompletionContext *context = value->context;
    const KilnSelection *selection;

    for (size_t i = 0;
         context->config != NULL && (selection = kiln_config_selection(context->config, i)) != NULL;
         i++)
        if (strcmp(selection->key, value->key) == 0)
            return true;
    if (value->whole[0] != '+' && context->config != NULL && !kiln_starts_with(group, "kiln/"))
        return false;
    return kiln_completion_context_options(context, group, false) != NULL ||
           kiln_completion_context_options(context, group, true) != NULL;
}

/* Options by one level: resnet, and mnist/ for those in a folder. */
static void complete_option(Value *value, const char *group)
{
    KilnCompletionContext *context = value->context;
    const char *slash = strrchr(value->item, '/');
    const char *folder = kiln_arena_strndup(&context->arena, value->item,
                                            slash != NULL ? (size_t)(slash + 1 - value->item) : 0);

    if (folder == NULL)
        return;
    if (slash != NULL)
        group = kiln_arena_printf(&context->arena, "%s/%.*s", group, (int)(slash - value->item),
                                  value->item);
    if (group == NULL)
        return;
    const char **options = kiln_completion_context_options(context, group, false);
    const char **groups = kiln_completion_context_options(context, group, true);
    for (; options != NULL && *options != NULL; options++)
        add_item(value, kiln_arena_printf(&context->arena, "%s%s", folder, *options),
                 kiln_completion_context_option_note(context, group, *options));
    value->bracket = true; /* a folder is never the end */
    for (; groups != NULL && *groups != NULL; groups++)
        add_item(value, kiln_arena_printf(&context->arena, "%s%s/", folder, *groups), NULL);
}

/* ---- Keys ---------------------------------------------------------------------------------- */

/* Add the current value, to be edited, else the default. */
static void complete_present(const Value *value, const KilnField *field, const KilnConfigNode *node)
{
    KilnArena *arena = &value->context->arena;
    const char *help = field != NULL ? field->help : NULL, *text = NULL;

    if (node != NULL)
        text = kiln_complete_value_text(arena, value->context->config, node);
    if (text != NULL)
        add_whole(value, text, help != NULL ? kiln_arena_printf(arena, "now; %s", help) : "now");
    else if (field != NULL && field->value != NULL && is_plain(field->value))
        add_whole(value, field->value, kiln_arena_printf(arena, "default; %s", help));
}

static void complete_bool(const Value *value, const char *help)
{
    add_item(value, "true", help);
    add_item(value, "false", help);
}

/* _target_: components of the kind that the option takes, or that the current one has. */
static void complete_target(const Value *value, const char *parent, const KilnConfigNode *node)
{
    const KilnField *field = kiln_config_field(value->context->config, value->context->registry,
                                               parent);
    KilnKind kind = KILN_KIND_ANY;

    if (field != NULL && field->type == KILN_TYPE_COMPONENT)
        kind = field->component_kind;
    else if (node != NULL && node->kind == KILN_NODE_SCALAR)
        kind = kiln_kind_find(node->text, strcspn(node->text, "/"));
    add_components(value, kind, true);
}

static void complete_path(const Value *value, const KilnField *field)
{
    bool checkpoint = strcmp(value->key, "ckpt_path") == 0;

    if (checkpoint) {
        add_whole(value, "last", "the newest run's last checkpoint");
        add_whole(value, "best", "the newest run's best checkpoint");
    }
    kiln_candidates_paths(value->candidates, value->before, value->item, checkpoint ? "/" : "");
    if (field->optional)
        add_whole(value, "null", NULL);
}

static void complete_field(const Value *value, const KilnField *field, const KilnConfigNode *node)
{
    if (field->shape != KILN_ONE && !value->bracket && value->sign == '\0') {
        complete_present(value, field, node);
        return;
    }
    switch (field->type) {
    case KILN_TYPE_ENUM:
        for (const KilnChoice *choice = field->choices; choice->name != NULL; choice++)
            add_item(value, choice->name,
                     field->value != NULL && strcmp(field->value, choice->name) == 0 ? "default"
                                                                                     : NULL);
        break;
    case KILN_TYPE_BOOL:
        complete_bool(value, field->help);
        break;
    case KILN_TYPE_COMPONENT:
        add_components(value, field->component_kind, false);
        if (field->optional)
            add_item(value, "null", NULL);
        break;
    case KILN_TYPE_PATH:
        complete_path(value, field);
        break;
    default:
        if (value->sign == '\0')
            complete_present(value, field, node);
    }
}

/* key-=item: items that can be removed. */
static void complete_items(const Value *value, const KilnConfigNode *list)
{
    for (size_t i = 0; list != NULL && list->kind == KILN_NODE_LIST && i < list->count; i++) {
        const KilnConfigNode *item = list->entries[i].value;

        if (item->kind == KILN_NODE_SCALAR)
            add_item(value, scalar_text(&value->context->arena, item), NULL);
    }
}

static void complete_key_value(const Value *value)
{
    KilnCompletionContext *context = value->context;
    const char *key = kiln_own_path(&context->arena, value->key), *dot;

    if (context->config == NULL || key == NULL)
        return;
    const KilnConfigNode *node = kiln_node_find(kiln_config_root(context->config), key);
    const KilnField *field = kiln_config_field(context->config, context->registry, key);
    dot = strrchr(key, '.');
    if (value->sign == '-') {
        complete_items(value, node);
    } else if (dot != NULL && strcmp(dot + 1, KILN_TARGET_KEY) == 0) {
        const char *parent = kiln_arena_strndup(&context->arena, key, (size_t)(dot - key));

        if (parent != NULL)
            complete_target(value, parent, node);
    } else if (field != NULL) {
        complete_field(value, field, node);
    } else if (node != NULL && node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_BOOL) {
        complete_bool(value, NULL);
    } else if (value->sign == '\0') {
        complete_present(value, NULL, node);
    }
}

/* ---- Values -------------------------------------------------------------------------------- */

/* The text after the last comma or opening bracket. */
static const char *last_item(const char *text, bool *ret_bracket)
{
    const char *item = text;

    *ret_bracket = false;
    for (const char *p = text; *p != '\0'; p++) {
        if (strchr(",[(", *p) != NULL)
            item = p + 1;
        if (strchr("[(", *p) != NULL)
            *ret_bracket = true;
        if (strchr("])", *p) != NULL)
            *ret_bracket = false;
    }
    return item;
}

void kiln_complete_value(KilnCompletionContext *context, KilnCandidates *candidates,
                         const char *before, const char *key, const char *text)
{
    Value value = {
        .context = context, .candidates = candidates, .whole = before, .key = key, .text = text
    };
    const char *group = kiln_arena_strndup(&context->arena, key, strcspn(key, "@"));
    size_t length = strlen(before);

    if (length > 2 && strchr("+-", before[length - 2]) != NULL)
        value.sign = before[length - 2];
    value.item = last_item(text, &value.bracket);
    value.before = kiln_arena_printf(&context->arena, "%s%.*s", before, (int)(value.item - text),
                                     text);
    if (group == NULL || value.before == NULL)
        return;
    if (is_group(&value, group))
        complete_option(&value, group);
    else
        complete_key_value(&value);
}

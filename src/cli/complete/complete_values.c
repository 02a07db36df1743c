/* Completes the values of overrides: options of groups, choices, files, the current value. */
#include <string.h>

#include "base/text.h"
#include "cli/complete/completion.h"
#include "config/override/value.h"
#include "config/composed.h"
#include "registry/registry.h"
#include "schema/table.h"

/* ---- The current value --------------------------------------------------------------------- */

const char *kiln_complete_value_text(KilnCompletion *c, const KilnConfigNode *node)
{
    enum { LONGEST = 200 };
    const KilnConfigNode *value = NULL;
    KilnText text = { 0 };

    if (node == NULL || kiln_config_resolve(c->config, node, &value, NULL) < 0 || value == NULL ||
        value->kind == KILN_NODE_MAP || kiln_node_is_scalar(value, KILN_SCALAR_MISSING))
        return NULL;
    if (kiln_node_is_scalar(value, KILN_SCALAR_BOOL))
        return value->text; /* not Python's True */
    kiln_value_written(value, &text);
    const char *written = kiln_text_to_arena(&text, &c->arena);
    return written != NULL && strlen(written) <= LONGEST ? written : NULL;
}

/* Offer the current value, to be edited, else the default: a whole value, and no item of a list. */
static void complete_present(KilnCompletion *c, const KilnField *field, const KilnConfigNode *node)
{
    const char *text = kiln_complete_value_text(c, node), *when = "now";

    if (text == NULL && field != NULL && field->value != NULL &&
        strpbrk(field->value, " \t\n,[](){}'\"\\=$") == NULL) {
        text = field->value;
        when = "default";
    }
    c->typed = c->value;
    c->bracket = false;
    if (text != NULL && *text != '\0')
        kiln_candidate_add(c, false,
                           field != NULL ? kiln_arena_printf(&c->arena, "%s; %s", when, field->help)
                                         : when,
                           "%s", text);
}

/* ---- By the option's type ------------------------------------------------------------------ */

static void add_components(KilnCompletion *c, KilnKind kind, bool with_kind)
{
    for (size_t i = 0; c->registry != NULL && i < kiln_registry_count(c->registry); i++) {
        const KilnComponent *component = kiln_registry_at(c->registry, i);

        if (kind == KILN_KIND_ANY || component->kind == kind)
            kiln_candidate_add(c, false, component->summary, "%s%s%s",
                               with_kind ? kiln_kind_name(component->kind) : "",
                               with_kind ? "/" : "", component->name);
    }
}

static void complete_bool(KilnCompletion *c, const char *help)
{
    kiln_candidate_add(c, false, help, "true");
    kiln_candidate_add(c, false, help, "false");
}

/* Offer what the option's type allows. False: that cannot be listed. */
static bool complete_type(KilnCompletion *c, const char *key, const KilnField *field)
{
    const bool checkpoint = strcmp(key, "ckpt_path") == 0;

    switch (field->type) {
    case KILN_TYPE_ENUM:
        for (const KilnChoice *choice = field->choices; choice->name != NULL; choice++) {
            bool is_default = field->value != NULL && strcmp(field->value, choice->name) == 0;

            kiln_candidate_add(c, false, is_default ? "default" : NULL, "%s", choice->name);
        }
        return true;
    case KILN_TYPE_BOOL:
        complete_bool(c, field->help);
        return true;
    case KILN_TYPE_COMPONENT:
        add_components(c, field->component_kind, false);
        break;
    case KILN_TYPE_PATH:
        if (checkpoint) {
            kiln_candidate_add(c, false, "the newest run's last checkpoint", "last");
            kiln_candidate_add(c, false, "the newest run's best checkpoint", "best");
        }
        kiln_candidates_paths(c, checkpoint ? "/" : "");
        break;
    default:
        return false;
    }
    if (field->optional)
        kiln_candidate_add(c, false, NULL, "null");
    return true;
}

/* _target_: components of the kind that the option `parent` takes, or that the current one has. */
static void complete_target(KilnCompletion *c, const char *parent, const KilnConfigNode *node)
{
    const KilnField *field = kiln_config_field(c->config, c->registry, parent);
    KilnKind kind = KILN_KIND_ANY;

    if (field != NULL && field->type == KILN_TYPE_COMPONENT)
        kind = field->component_kind;
    else if (node != NULL && node->kind == KILN_NODE_SCALAR)
        kind = kiln_kind_find(node->text, strcspn(node->text, "/"));
    add_components(c, kind, true);
}

static void complete_key_value(KilnCompletion *c, const char *key, char sign)
{
    if (c->config == NULL || (key = kiln_own_path(&c->arena, key)) == NULL)
        return;
    const KilnConfigNode *node = kiln_node_find(kiln_config_root(c->config), key);
    const KilnField *field = kiln_config_field(c->config, c->registry, key);
    const bool item = c->bracket || sign != '\0'; /* of a list or mapping */
    if (sign == '-') {
        for (size_t i = 0; node != NULL && node->kind == KILN_NODE_LIST && i < node->count; i++) {
            const char *text = kiln_complete_value_text(c, node->entries[i].value);

            if (text != NULL)
                kiln_candidate_add(c, false, NULL, "%s", text);
        }
    } else if (kiln_ends_with(key, "." KILN_TARGET_KEY)) {
        const char *parent = kiln_arena_strndup(&c->arena, key,
                                                strlen(key) - strlen("." KILN_TARGET_KEY));

        if (parent != NULL)
            complete_target(c, parent, node);
    } else if (field == NULL && kiln_node_is_scalar(node, KILN_SCALAR_BOOL)) {
        complete_bool(c, NULL);
    } else if (field == NULL || (field->shape != KILN_ONE && !item) ||
               !complete_type(c, key, field)) {
        if (sign == '\0')
            complete_present(c, field, node);
    }
}

/* ---- Values -------------------------------------------------------------------------------- */

/* Whether the key is a group: one of the defaults list, or with + or without a config any. */
static bool is_group(KilnCompletion *c, const char *key, const char *group)
{
    const KilnSelection *selection;

    for (size_t i = 0;
         c->config != NULL && (selection = kiln_config_selection(c->config, i)) != NULL; i++)
        if (strcmp(selection->key, key) == 0)
            return true;
    return (c->word[0] == '+' || c->config == NULL || kiln_starts_with(group, "kiln/")) &&
           (*kiln_completion_options(c, group, false) != NULL ||
            *kiln_completion_options(c, group, true) != NULL);
}

void kiln_complete_value(KilnCompletion *c, const char *key, char sign)
{
    const char *group = kiln_arena_strndup(&c->arena, key, strcspn(key, "@"));

    c->value = c->item = c->typed;
    for (const char *p = c->value; *p != '\0'; p++) {
        if (strchr(",[(", *p) != NULL)
            c->item = p + 1;
        if (strchr("[(])", *p) != NULL)
            c->bracket = strchr("[(", *p) != NULL;
    }
    c->typed = c->item;
    if (group != NULL && is_group(c, key, group))
        kiln_complete_group(c, group, true, NULL);
    else if (group != NULL)
        complete_key_value(c, key, sign);
}

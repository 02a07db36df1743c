/* Tells where values come from: --explain. */
#include <string.h>

#include "base/text.h"
#include "config/interpolate.h"
#include "config/mark.h"
#include "config/output.h"
#include "config/state.h"
#include "config/writer.h"

typedef struct Explainer {
    const KilnConfig *config;
    KilnText *text;
} Explainer;

static void say_value(KilnText *text, const KilnConfigNode *node)
{
    if (node->kind == KILN_NODE_SCALAR) {
        kiln_write_scalar(text, node);
    } else {
        size_t n = 0;

        kiln_text_char(text, node->kind == KILN_NODE_MAP ? '{' : '[');
        for (size_t i = 0; i < node->count && n < 4; i++, n++) {
            const KilnEntry *entry = &node->entries[i];

            kiln_text_append(text, n > 0 ? ", " : "");
            if (entry->key != NULL)
                kiln_text_printf(text, "%s: ", entry->key);
            if (entry->value->kind == KILN_NODE_SCALAR)
                kiln_write_scalar(text, entry->value);
            else
                kiln_text_append(text, entry->value->kind == KILN_NODE_MAP ? "{...}" : "[...]");
        }
        kiln_text_append(text, node->count > n ? ", ..." : "");
        kiln_text_char(text, node->kind == KILN_NODE_MAP ? '}' : ']');
    }
}

static void say_origin(KilnText *text, const KilnOrigin *origin)
{
    if (origin->line > 0)
        kiln_text_printf(text, "%s:%d:%d", origin->source, origin->line, origin->column);
    else
        kiln_text_append(text, origin->source != NULL ? origin->source : "nowhere");
}

static void say_indent(KilnText *text, int depth)
{
    for (int i = 0; i < depth; i++)
        kiln_text_append(text, "  ");
}

static bool is_interpolation(const KilnConfigNode *node)
{
    return node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_INTERPOLATION;
}

/* "  0.1  set by argument 2 `lr=0.1`" and what it replaced, newest first; behind an
 * interpolation the history of what it refers to. */
static void say_history(Explainer *explainer, const KilnConfigNode *node, int depth)
{
    bool first = true;

    for (; node != NULL; node = node->replaced, first = false) {
        const KilnConfigNode *target = is_interpolation(node)
                                           ? kiln_interpolation_target(explainer->config, node)
                                           : NULL;

        say_indent(explainer->text, depth);
        kiln_text_append(explainer->text, first ? "set to " : "replaced ");
        say_value(explainer->text, node);
        kiln_text_append(explainer->text, first ? " by " : " from ");
        say_origin(explainer->text, &node->origin);
        if (node->mark != KILN_MARK_NONE)
            kiln_text_printf(explainer->text, " (%s)", kiln_mark_tag(node->mark));
        kiln_text_char(explainer->text, '\n');
        if (target != NULL && depth < KILN_INTERPOLATION_DEPTH) {
            say_indent(explainer->text, depth + 1);
            kiln_text_printf(explainer->text, "%s: ", kiln_node_path(explainer->config, target));
            say_value(explainer->text, target);
            kiln_text_char(explainer->text, '\n');
            say_history(explainer, target, depth + 2);
        }
    }
}

/* How often what stood at `path` was taken away, newest first. */
static void say_removals(Explainer *explainer, const char *path)
{
    const KilnConfig *config = explainer->config;

    for (size_t i = config->n_removed; i-- > 0;) {
        const KilnRemoved *removed = &config->removed[i];

        if (strcmp(removed->path, path) != 0)
            continue;
        say_indent(explainer->text, 1);
        if (removed->why != NULL)
            kiln_text_printf(explainer->text, "dropped: %s at ", removed->why);
        else
            kiln_text_append(explainer->text, "removed by ");
        say_origin(explainer->text, &removed->origin);
        kiln_text_char(explainer->text, '\n');
        say_history(explainer, removed->value, 2);
    }
}

/* Keys at or below `path` that were there, and are not there now. */
static bool explain_removed(Explainer *explainer, const char *path)
{
    const KilnConfig *config = explainer->config;
    size_t n = strlen(path);
    bool found = false;

    for (size_t i = 0; i < config->n_removed; i++) {
        const char *other = config->removed[i].path;
        bool again = false;

        if (strncmp(other, path, n) != 0 || (n > 0 && strchr(".[", other[n]) == NULL) ||
            kiln_node_find(config->root, other) != NULL)
            continue;
        for (size_t j = 0; j < i; j++)
            again |= strcmp(config->removed[j].path, other) == 0;
        if (again)
            continue;
        kiln_text_printf(explainer->text, "%s: not there\n", other);
        say_removals(explainer, other);
        found = true;
    }
    return found;
}

static void explain_value(Explainer *explainer, const KilnConfigNode *node)
{
    const KilnConfigNode *value = NULL;
    KilnError err = { 0 };

    kiln_text_printf(explainer->text, "%s: ", kiln_node_path(explainer->config, node));
    if (kiln_config_resolve(explainer->config, node, &value, &err) >= 0)
        say_value(explainer->text, value);
    else
        kiln_text_printf(explainer->text, "error: %s", err.text);
    kiln_text_char(explainer->text, '\n');
    say_history(explainer, node, 1);
    say_removals(explainer, kiln_node_path(explainer->config, node));
}

/* Every value below a mapping; a list is one value. */
static void explain_node(Explainer *explainer, const KilnConfigNode *node)
{
    if (node->kind != KILN_NODE_MAP || node->count == 0) {
        explain_value(explainer, node);
        return;
    }
    if (node->replaced != NULL) {
        kiln_text_printf(explainer->text, "%s: a mapping\n",
                         kiln_node_path(explainer->config, node));
        say_history(explainer, node, 1);
    }
    for (size_t i = 0; i < node->count; i++)
        if (node->parent != NULL || !kiln_config_hides(explainer->config, node->entries[i].key))
            explain_node(explainer, node->entries[i].value);
}

KilnStatus kiln_config_explain(const KilnConfig *config, const char *key, char **ret,
                               KilnError *err)
{
    KilnText text = { 0 };
    Explainer explainer = { .config = config, .text = &text };
    const KilnConfigNode *node = NULL;
    KilnStatus status = kiln_config_find(config, key, &node, err);
    char *taken;

    if (status >= 0)
        explain_node(&explainer, node);
    if (!explain_removed(&explainer, key != NULL ? key : "") && status < 0)
        return status;
    taken = kiln_text_take(&text);
    if (taken == NULL)
        return kiln_error_nomem(err, 1);
    *ret = taken;
    return KILN_OK;
}

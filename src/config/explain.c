/* Tells where values come from: --explain. */
#include <string.h>

#include "base/text.h"
#include "config/interpolate.h"
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

static void say_origin(KilnText *text, const KilnConfigNode *node)
{
    const KilnOrigin *origin = &node->origin;

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
        say_origin(explainer->text, node);
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

    if (status < 0)
        return status;
    explain_node(&explainer, node);
    taken = kiln_text_take(&text);
    if (taken == NULL)
        return kiln_error_nomem(err, 1);
    *ret = taken;
    return KILN_OK;
}

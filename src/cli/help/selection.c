/* Walks a composed config and prints what it holds. */
#include "cli/help/selection.h"

#include <string.h>

#include "config/provenance/error_origin.h"
#include "config/yaml/output.h"
#include "config/yaml/yaml_writer.h"
#include "registry/registry.h"
#include "registry/signature/model_match.h"
#include "schema/options_help.h"
#include "schema/table.h"

/* ---- Components ---------------------------------------------------------------------- */

typedef struct Walk {
    const KilnConfig *config;
    const KilnRegistry *registry;
    KilnSelectionVisit *visit;
    void *ctx;
} Walk;

static void walk(const Walk *w, const KilnConfigNode *node, bool own)
{
    const KilnComponent *component = NULL;

    if (node->kind == KILN_NODE_MAP && kiln_node_get(node, "_target_") != NULL &&
        kiln_node_component(w->config, w->registry, node, KILN_KIND_ANY, &component, NULL) >= 0)
        w->visit(w->ctx, node, kiln_node_path(w->config, node), component);
    for (size_t i = 0; i < node->count; i++) {
        const KilnEntry *entry = &node->entries[i];
        bool top = node->parent == NULL && entry->key != NULL;

        if (!top || kiln_config_hides(w->config, entry->key) == own)
            walk(w, entry->value, own);
    }
}

void kiln_selection_visit(const KilnConfig *config, const KilnRegistry *registry,
                          KilnSelectionVisit *visit, void *ctx)
{
    Walk w = { .config = config, .registry = registry, .visit = visit, .ctx = ctx };

    walk(&w, kiln_config_root(config), false);
    walk(&w, kiln_config_root(config), true);
}

const KilnSelection *kiln_selection_find(const KilnConfig *config, const char *group, size_t length)
{
    const KilnSelection *selection = NULL;

    for (size_t i = 0; config != NULL && (selection = kiln_config_selection(config, i)) != NULL;
         i++)
        if (strcspn(selection->key, "@") == length && strncmp(selection->key, group, length) == 0)
            break;
    return selection;
}

/* ---- Values -------------------------------------------------------------------------- */

void kiln_selection_value(KilnText *text, const KilnConfig *config, const KilnConfigNode *node)
{
    const KilnConfigNode *value = NULL;
    bool map;

    if (kiln_config_resolve(config, node, &value, NULL) < 0 || value == NULL)
        value = node; /* as it is written */
    if (value->kind == KILN_NODE_SCALAR) {
        kiln_write_scalar(text, value);
        return;
    }
    map = value->kind == KILN_NODE_MAP;
    kiln_text_char(text, map ? '{' : '[');
    for (size_t i = 0; i < value->count; i++) {
        kiln_text_append(text, i > 0 ? ", " : "");
        if (map)
            kiln_text_printf(text, "%s: ", value->entries[i].key);
        kiln_selection_value(text, config, value->entries[i].value);
    }
    kiln_text_char(text, map ? '}' : ']');
}

/* Whether the node has the option's default value, also when a file sets it. */
static bool is_default(const KilnField *field, const KilnConfigNode *node, const char *shown)
{
    if (node->layer == KILN_LAYER_DEFAULT)
        return true;
    return field->value != NULL &&
           (strcmp(field->value, shown) == 0 ||
            (node->kind == KILN_NODE_SCALAR && strcmp(field->value, node->text) == 0));
}

/* A KilnHelpNote. */
static void note_value(void *ctx, const KilnField *field, const char *path, KilnText *ret)
{
    const KilnConfig *config = ctx;
    const KilnConfigNode *node = NULL, *value = NULL;
    KilnText shown = { 0 };
    char where[1024];

    /* A component's options have rows of their own. */
    if (field->type == KILN_TYPE_COMPONENT || field->type == KILN_TYPE_STRUCT ||
        kiln_config_find(config, path, &node, NULL) < 0)
        return;
    if (kiln_config_resolve(config, node, &value, NULL) < 0 || value == NULL)
        value = node;
    kiln_selection_value(&shown, config, node);
    if (shown.failed) {
        ret->failed = true;
    } else if (!is_default(field, node, shown.data)) {
        kiln_node_where(config, node, value, where, sizeof(where));
        kiln_text_printf(ret, "now %s, %s", shown.data, where);
    }
    kiln_text_release(&shown);
}

void kiln_selection_options(KilnPage *page, const KilnField *fields, const char *path,
                            const KilnConfig *config)
{
    KilnText prefix = { 0 };

    kiln_text_printf(&prefix, "%s%s", path, path[0] != '\0' ? "." : "");
    KilnHelpTable table = { .fields = fields,
                            .prefix = prefix.data != NULL ? prefix.data : "",
                            .indent = 2,
                            .note = config != NULL ? note_value : NULL,
                            .ctx = (void *)config };

    if (kiln_table_count(fields) == 0)
        kiln_page_line(page, 2, "no options");
    kiln_help_table(page, &table);
    kiln_text_release(&prefix);
}

void kiln_selection_signature(KilnPage *page, const KilnComponent *component)
{
    KilnText text = { 0 };

    kiln_signature_text(&text, component);
    if (text.length > 0) {
        kiln_text_append(&page->text, "  ");
        kiln_page_words(page, 2, text.data);
        kiln_page_end(page);
    }
    page->text.failed |= text.failed;
    kiln_text_release(&text);
}

/* Writes keys, values and comments as YAML. */
#include "cli/hydra/yaml_lines.h"

#include <string.h>

KilnImportNode *kiln_import_node_add(KilnArena *arena, KilnImportNode *parent, const char *key)
{
    KilnImportNode *node = kiln_arena_alloc(arena, sizeof(*node));

    if (node == NULL || parent == NULL)
        return NULL;
    node->key = key;
    if (parent->last != NULL)
        parent->last->next = node;
    else
        parent->first = node;
    parent->last = node;
    return node;
}

/* Only lines of comments, of something that is gone. */
static bool is_comment(const KilnImportNode *node)
{
    return node->left_out && node->key == NULL && node->text == NULL && node->first == NULL;
}

KilnImportNode *kiln_import_node_put_first(KilnArena *arena, KilnImportNode *parent,
                                           const char *key)
{
    KilnImportNode *node = parent != NULL ? parent->first : NULL;

    if (node != NULL && is_comment(node)) {
        node->key = key;
        node->left_out = false;
        return node;
    }
    node = parent != NULL ? kiln_arena_alloc(arena, sizeof(*node)) : NULL;
    if (node == NULL)
        return NULL;
    node->key = key;
    node->next = parent->first;
    if (node->next != NULL && node->next->before != NULL && node->next->before[0] == '\n') {
        node->before = "\n"; /* the empty line stays above all */
        node->next->before++;
    }
    parent->first = node;
    parent->last = parent->last != NULL ? parent->last : node;
    return node;
}

KilnImportNode *kiln_import_node_get(const KilnImportNode *parent, const char *key)
{
    for (KilnImportNode *node = parent->first; node != NULL; node = node->next)
        if (node->key != NULL && !node->left_out && strcmp(node->key, key) == 0)
            return node;
    return NULL;
}

KilnImportNode *kiln_import_node_make(KilnArena *arena, KilnImportNode *root, const char *path)
{
    KilnImportNode *node = root;

    while (node != NULL && path != NULL && *path != '\0') {
        const size_t n = strcspn(path, ".");
        const char *key = kiln_arena_strndup(arena, path, n);
        KilnImportNode *child = key != NULL ? kiln_import_node_get(node, key) : NULL;

        node = child != NULL ? child : kiln_import_node_add(arena, node, key);
        path += n + (path[n] == '.');
    }
    return node;
}

KilnImportNode *kiln_import_node_take(KilnImportNode *parent, const char *key)
{
    KilnImportNode *previous = NULL, *node = parent->first;

    while (node != NULL && (node->key == NULL || node->left_out || strcmp(node->key, key) != 0)) {
        previous = node;
        node = node->next;
    }
    if (node == NULL)
        return NULL;
    if (previous != NULL)
        previous->next = node->next;
    else
        parent->first = node->next;
    if (parent->last == node)
        parent->last = previous;
    node->next = NULL;
    return node;
}

bool kiln_import_node_lives(const KilnImportNode *node)
{
    if (node->left_out)
        return false;
    if (node->text != NULL)
        return true;
    for (const KilnImportNode *child = node->first; child != NULL; child = child->next)
        if (kiln_import_node_lives(child))
            return true;
    return false;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void put_indent(KilnText *text, int indent)
{
    for (int i = 0; i < indent; i++)
        kiln_text_char(text, ' ');
}

/* Lines of comments at an indentation; empty ones stay empty. */
static void put_lines(KilnText *text, const char *lines, int indent)
{
    while (lines != NULL && *lines != '\0') {
        const size_t n = strcspn(lines, "\n");

        if (n > 0)
            put_indent(text, indent);
        kiln_text_append_n(text, lines, n);
        kiln_text_char(text, '\n');
        lines += n + 1;
    }
}

static void put_node(KilnText *text, const KilnImportNode *node, int indent, bool whole);

/* The node's lines without what is above it, each with a # before it. */
static void put_left_out(KilnText *text, const KilnImportNode *node, int indent)
{
    KilnText lines = { 0 };

    put_node(&lines, node, 0, true);
    for (const char *at = lines.data; at != NULL && *at != '\0';) {
        const size_t n = strcspn(at, "\n");

        put_indent(text, indent);
        kiln_text_printf(text, "# %.*s\n", (int)n, at);
        at += n + 1;
    }
    text->failed = text->failed || lines.failed;
    kiln_text_release(&lines);
}

/* The comments above a node. Empty lines above the first child of a new mapping are above it. */
static const char *above(const KilnImportNode *node)
{
    const KilnImportNode *first = node;

    while (first->key != NULL && first->before == NULL && first->after == NULL &&
           first->text == NULL && first->first != NULL)
        first = first->first;
    return first != node && first->before != NULL && first->before[0] == '\n' ? "\n" : node->before;
}

static void put_children(KilnText *text, const KilnImportNode *node, int indent, bool whole)
{
    for (const KilnImportNode *child = node->first; child != NULL; child = child->next) {
        const char *lines = above(child);

        /* The first one begins the file, or its empty lines are above what it is in. */
        if (child == node->first && lines != NULL && (indent > 0 || text->length == 0))
            lines += strspn(lines, "\n");
        put_lines(text, lines, indent);
        if (is_comment(child))
            continue;
        if (!whole && !kiln_import_node_lives(child))
            put_left_out(text, child, indent);
        else
            put_node(text, child, indent, whole);
    }
}

static void put_end(KilnText *text, const char *comment)
{
    if (comment != NULL)
        kiln_text_printf(text, "  %s", comment);
    kiln_text_char(text, '\n');
}

/* An item that is a mapping begins beside its dash, unless a comment comes first. */
static void put_item(KilnText *text, const KilnImportNode *node, int indent, bool whole)
{
    const KilnImportNode *first = node->first;
    KilnText lines = { 0 };

    if (first == NULL || (!whole && !kiln_import_node_lives(first))) {
        put_indent(text, indent);
        kiln_text_append(text, "-\n");
        put_children(text, node, indent + 2, whole);
        return;
    }
    put_lines(text, first->before, indent);
    put_node(&lines, first, indent + 2, whole);
    put_indent(text, indent);
    kiln_text_printf(text, "- %s", lines.data != NULL ? lines.data + indent + 2 : "\n");
    text->failed = text->failed || lines.failed;
    kiln_text_release(&lines);
    KilnImportNode rest = { .first = first->next };
    put_children(text, &rest, indent + 2, whole);
}

/* `whole`: also what was left out in it, as it was. */
static void put_node(KilnText *text, const KilnImportNode *node, int indent, bool whole)
{
    if (node->key == NULL && node->text == NULL && !node->list) {
        put_item(text, node, indent, whole);
    } else {
        put_indent(text, indent);
        kiln_text_printf(text, "%s%s%s%s", node->key != NULL ? node->key : "-",
                         node->key != NULL ? ":" : "", node->text != NULL ? " " : "",
                         node->text != NULL ? node->text : "");
        put_end(text, node->after);
        put_children(text, node, indent + 2, whole);
    }
    put_lines(text, node->below, indent);
}

void kiln_import_node_write(KilnText *text, const KilnImportNode *node, int indent)
{
    put_children(text, node, indent, false);
}

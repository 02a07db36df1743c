/* The lines of a new config file: keys, values and comments in order. */
#ifndef KILN_CLI_HYDRA_YAML_LINES_H
#define KILN_CLI_HYDRA_YAML_LINES_H

#include "base/arena.h"
#include "base/text.h"

typedef struct KilnImportNode KilnImportNode;

struct KilnImportNode {
    const char *key;    /* as it is written; NULL: an item of a list */
    const char *before; /* lines of comments above it, each with its line end; NULL: none */
    const char *after;  /* a comment on its line */
    const char *below;  /* lines of comments below it */
    const char *text;   /* the value on one line; NULL: the children */
    bool list;          /* the children are items */
    bool
        left_out; /* it becomes a comment; without key, text and children: what is above it stays */
    KilnImportNode *first, *last, *next;
};

/* A new last child; NULL when memory is out. */
KilnImportNode *kiln_import_node_add(KilnArena *arena, KilnImportNode *parent, const char *key);
/* The same as the first child, below comments that are there without a key. */
KilnImportNode *kiln_import_node_put_first(KilnArena *arena, KilnImportNode *parent,
                                           const char *key);
/* The child of that key; NULL: there is none. */
KilnImportNode *kiln_import_node_get(const KilnImportNode *parent, const char *key);
/* The node at a path "a.b", which is made where it is missing; NULL when memory is out. */
KilnImportNode *kiln_import_node_make(KilnArena *arena, KilnImportNode *root, const char *path);
/* Remove the child and return it; NULL: there is none. */
KilnImportNode *kiln_import_node_take(KilnImportNode *parent, const char *key);
/* Whether anything of it is left besides comments. */
bool kiln_import_node_lives(const KilnImportNode *node);
/* Append the lines of its children. A mapping of which only comments are left becomes one, since as
 * null it would replace others. */
void kiln_import_node_write(KilnText *text, const KilnImportNode *node, int indent);

#endif

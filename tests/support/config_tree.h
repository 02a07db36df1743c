/* Composes config trees that tests write as text into a temporary folder. */
#ifndef KILN_TESTS_SUPPORT_CONFIG_TREE_H
#define KILN_TESTS_SUPPORT_CONFIG_TREE_H

#include "config/compose.h"
#include "tests/support/cmocka.h"

typedef struct TreeFile {
    const char *path, *text; /* "model/a.yaml" */
} TreeFile;

typedef struct Tree {
    char dir[64];
} Tree;

void tree_write(const Tree *tree, const char *path, const char *text, size_t size);

/* Files closed by a NULL path. */
Tree tree_make(const TreeFile *files);

void tree_remove(const Tree *tree);

/* Messages, one a line, with the tree's folder written as "T"; owned by the caller. */
char *tree_messages(const Tree *tree, const KilnErrors *errors);

/* Compose `config.yaml` of the tree with up to 8 overrides, closed by NULL (may be
 * NULL). `ret_messages` gets the messages, owned by the caller. */
KilnStatus tree_compose(const Tree *tree, const KilnComposeHooks *hooks,
                        const char *const *overrides, KilnConfig **ret, char **ret_messages);

/* The composed config as resolved YAML, or the messages; owned by the caller. */
char *tree_yaml(const Tree *tree, const char *const *overrides, bool resolve);

#endif

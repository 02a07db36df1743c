/* A tree of config files and arguments from one input, for the targets that compose:
 *
 *     a: 1                     # config.yaml, up to the first line with ===
 *     === g/one                # g/one.yaml
 *     v: ${a}
 *     === args                 # one argument a line
 *     g=one
 */
#ifndef TESTS_FUZZ_TREE_H
#define TESTS_FUZZ_TREE_H

#include "fuzz.h"

enum { FUZZ_MOST_ARGUMENTS = 64 };

typedef struct FuzzTree {
    const char *dir;
    const char *arguments[FUZZ_MOST_ARGUMENTS + 1]; /* NULL-terminated; in the input */
} FuzzTree;

/* Write the files to a folder in memory, which is the process's own and removed at its end.
 * `text` is changed, and borrowed. What was there before is gone. */
void fuzz_tree_write(FuzzTree *tree, char *text);

#endif

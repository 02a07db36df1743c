/* The components of a composed config, for help: where they stand, what their options
 * are worth. */
#ifndef KILN_CLI_HELP_SELECTION_H
#define KILN_CLI_HELP_SELECTION_H

#include "base/page.h"
#include "config/tree/node.h"

/* A component in the tree; `path` is "callbacks.progress_bar". Borrowed for the call. */
typedef void KilnSelectionVisit(void *ctx, const KilnConfigNode *node, const char *path,
                                const KilnComponent *component);

/* Visit every mapping that names a known component, in file order, those below
 * `kiln` last. */
void kiln_selection_visit(const KilnConfig *config, const KilnRegistry *registry,
                          KilnSelectionVisit *visit, void *ctx);
/* A KilnHelpNote with the config as context: "now 0.05, from ..." where the value in
 * force is not the default. */
void kiln_selection_note(void *config, const KilnField *field, const char *path, KilnText *ret);
/* Append a value on one line as people write it: 0.05, [32, 64], {a: 1}. */
void kiln_selection_value(KilnText *text, const KilnConfig *config, const KilnConfigNode *node);

#endif

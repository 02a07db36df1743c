/* Reads a composed config for help: its components and the values of their options. */
#ifndef KILN_CLI_HELP_SELECTION_H
#define KILN_CLI_HELP_SELECTION_H

#include "base/page.h"
#include "config/compose.h"
#include "config/tree/node.h"

/* Called with a component of the tree; `path` is "callbacks.progress_bar", borrowed. */
typedef void KilnSelectionVisit(void *ctx, const KilnConfigNode *node, const char *path,
                                const KilnComponent *component);

/* Visit every mapping that names a known component, in file order; those below `kiln` last. */
void kiln_selection_visit(const KilnConfig *config, const KilnRegistry *registry,
                          KilnSelectionVisit *visit, void *ctx);
/* The selection of the group that the first `length` characters name; NULL: none, or no config. */
const KilnSelection *kiln_selection_find(const KilnConfig *config, const char *group,
                                         size_t length);
/* Append a value on one line as people write it: 0.05, [32, 64], {a: 1}. */
void kiln_selection_value(KilnText *text, const KilnConfig *config, const KilnConfigNode *node);
/* Append what a component takes and gives, of datamodules, tasks and models. */
void kiln_selection_signature(KilnPage *page, const KilnComponent *component);
/* Append a table of options, or "no options". With a config each option is named by its key (`path`
 * is its parent's) and a value that is not the default is noted: "now 0.05, from ...". */
void kiln_selection_options(KilnPage *page, const KilnField *fields, const char *path,
                            const KilnConfig *config);

#endif

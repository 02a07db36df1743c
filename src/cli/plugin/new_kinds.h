/* What `kiln plugin new` writes a component of: the kinds, a datamodule that reads files, and a
 * custom operation in a model. */
#ifndef KILN_CLI_PLUGIN_NEW_KINDS_H
#define KILN_CLI_PLUGIN_NEW_KINDS_H

#include "config/defaults/shipped.h"
#include "kiln/component.h"

/* In `select`, `vary` and `after` % stands for the component's name. */
typedef struct KilnNewKind {
    const char *name; /* "callback" */
    KilnKind kind;    /* of the component */
    const char *page; /* of the manual */
    const char *select;
    const char *vary; /* what a sweep varies */
    /* The rest of a short run: its other arguments, the command that makes its input, and a last
     * command; NULL: none. $out is a folder for them. */
    const char *rest, *before, *after;
} KilnNewKind;

/* The i-th; NULL after the last. */
const KilnNewKind *kiln_new_kind_at(size_t i);
/* The one that `word` names; NULL: none. */
const KilnNewKind *kiln_new_kind_find(const char *word);

/* KIND/component.c and KIND/conf.yaml, from the manual (tools/gen_components.sh). */
extern const KilnShippedFile kiln_component_templates[];
extern const size_t kiln_component_templates_count;

#endif

/* JSON Schema (draft-07) of options tables and components, for editors that check and complete
 * YAML. An interpolation is allowed for every value. Functions return a new reference, owned by the
 * caller, or NULL when memory is out. */
#ifndef KILN_SCHEMA_JSON_SCHEMA_H
#define KILN_SCHEMA_JSON_SCHEMA_H

#include <jansson.h>

#include "kiln/component.h"

/* The components of a schema, and the kinds that it refers to. */
typedef struct KilnJsonSchema {
    const KilnComponent *const *components; /* all that are known */
    size_t count;
    json_t *defaults;               /* of a defaults list; borrowed */
    bool referred[KILN_KIND_COUNT]; /* kinds that need a definition; filled on the way */
} KilnJsonSchema;

/* One option's value, with description and default. */
json_t *kiln_json_value(KilnJsonSchema *schema, const KilnField *field);
/* A mapping with the options of a table. `file`: it is a whole file, which may have a defaults
 * list; `open`: other keys are allowed. */
json_t *kiln_json_table(KilnJsonSchema *schema, const KilnField *fields, bool file, bool open);
/* A mapping that is a component of `kind`: _target_ decides the options. Without _target_, as in a
 * file that changes a few options, the options of all components of the kind are allowed. */
json_t *kiln_json_component(KilnJsonSchema *schema, KilnKind kind, bool file);
/* A mapping from any names to components of `kind`. */
json_t *kiln_json_component_map(KilnJsonSchema *schema, KilnKind kind, bool file);
/* The text of the document: `root` (consumed; NULL: fails) with the definitions that it needs.
 * Owned by the caller (free). */
char *kiln_json_document(KilnJsonSchema *schema, const char *title, json_t *root);

#endif

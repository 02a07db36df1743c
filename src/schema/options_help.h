/* Help pages of options tables, and the same as JSON. */
#ifndef KILN_SCHEMA_OPTIONS_HELP_H
#define KILN_SCHEMA_OPTIONS_HELP_H

#include "base/json.h"
#include "base/page.h"
#include "kiln/component.h"

/* Append a note below an option's row, such as its value in a config, or nothing. `path`: prefix
 * and name. */
typedef void KilnHelpNote(void *ctx, const KilnField *field, const char *path, KilnText *ret);

typedef struct KilnHelpTable {
    const KilnField *fields; /* NULL: no options */
    const char *prefix;      /* of every name: "model." */
    int indent;              /* columns before each line */
    KilnHelpNote *note;      /* NULL: none */
    void *ctx;               /* of note */
} KilnHelpTable;

/* Append a row for each option, in aligned columns: name, type with range or choices, default
 * ("required" without one), help with former names; then the note. Options of a struct follow its
 * row. On a narrow page the help is below. */
void kiln_help_table(KilnPage *page, const KilnHelpTable *table);
/* The same rows as a list of objects: name, type, default (YAML text; null without one), required,
 * help. NULL: memory is out. */
json_t *kiln_help_json(const KilnField *fields);

#endif

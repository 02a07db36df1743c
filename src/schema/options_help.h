/* Options tables as text for people. */
#ifndef KILN_SCHEMA_OPTIONS_HELP_H
#define KILN_SCHEMA_OPTIONS_HELP_H

#include "base/page.h"
#include "kiln/component.h"

/* What is said of an option besides its row: the value in force, say. Appends
 * nothing when there is nothing to say. `path`: prefix and name. */
typedef void KilnHelpNote(void *ctx, const KilnField *field, const char *path, KilnText *ret);

typedef struct KilnHelpTable {
    const KilnField *fields; /* NULL: no options */
    const char *prefix;      /* of every name: "model." */
    int indent;              /* columns before each line */
    KilnHelpNote *note;      /* NULL: none */
    void *ctx;               /* of note */
} KilnHelpTable;

/* One row an option, in aligned columns: name, type with range or choices, default
 * ("required" without one), help with former names and the note. The options of a
 * struct follow it, below their own names. On a narrow page help stands below.
 * Nothing for a table without options. */
void kiln_help_table(KilnPage *page, const KilnHelpTable *table);
/* Append the type: "list of int >= 1", "min|max", "float 0..1", "path or null". */
void kiln_help_type(KilnText *text, const KilnField *field);

#endif

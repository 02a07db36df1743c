/* Options tables as text for people. */
#ifndef KILN_SCHEMA_HELP_H
#define KILN_SCHEMA_HELP_H

#include "base/text.h"
#include "kiln/component.h"

/* One aligned line an option: `prefix` and name, type with range or choices,
 * default ("required" without one), help. Each line starts with `indent`
 * spaces. Nothing for a table without options. */
void kiln_help_table(KilnText *text, const KilnField *fields, const char *prefix, int indent);

#endif

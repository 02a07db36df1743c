/* Options tables as such: finding a row, and whether a table is sound. */
#ifndef KILN_SCHEMA_TABLE_H
#define KILN_SCHEMA_TABLE_H

#include "kiln/component.h"

/* The key that names the component which a node builds. */
#define KILN_TARGET_KEY "_target_"
/* More rows than this in one table are refused, and more in a table with all that
 * are nested in it, and tables nested deeper. */
#define KILN_MAX_FIELDS 64
#define KILN_MAX_ROWS 256
#define KILN_MAX_TABLES 6

/* Rows of a table, former names among them; NULL is the empty table. */
size_t kiln_table_count(const KilnField *fields);
/* The option of that name, not a former one; NULL when there is none. */
const KilnField *kiln_table_find(const KilnField *fields, const char *name);
/* The row of a former name; NULL when there is none. */
const KilnField *kiln_table_renamed(const KilnField *fields, const char *name);
/* The option whose name is nearest to `name`; NULL when none is near. */
const char *kiln_table_nearest(const KilnField *fields, const char *name);
/* What one item of a list or mapping must be: the row of one value. */
KilnField kiln_field_item(const KilnField *field);
/* Names are unique snake_case, help is there, members lie within `opts_size`,
 * bounds and choices make sense, the last of the `n` rows is KILN_FIELD_END, defaults parse and are
 * in range, former names lead to options; nested tables too. KILN_E_PLUGIN; the message starts with
 * the option's name ("option window.length: "). */
KILN_NODISCARD KilnStatus kiln_table_check(const KilnField *fields, size_t n, size_t opts_size,
                                           KilnError *err);
bool kiln_is_snake_case(const char *name);

#endif

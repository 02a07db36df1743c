/* Options tables as such: finding a row, and whether a table is sound. */
#ifndef KILN_SCHEMA_TABLE_H
#define KILN_SCHEMA_TABLE_H

#include "kiln/component.h"

/* The key that names the component which a node builds. */
#define KILN_TARGET_KEY "_target_"
/* More rows than this in one table are refused. */
#define KILN_MAX_FIELDS 64

/* Rows of a table; NULL is the empty table. */
size_t kiln_table_count(const KilnField *fields);
/* NULL when there is none of that name. */
const KilnField *kiln_table_find(const KilnField *fields, const char *name);
/* Names are unique snake_case, help is there, members lie within `opts_size`,
 * bounds and choices make sense, defaults parse and are in range.
 * KILN_E_PLUGIN; the message starts with the option's name. */
KILN_NODISCARD KilnStatus kiln_table_check(const KilnField *fields, size_t opts_size,
                                           KilnError *err);
bool kiln_is_snake_case(const char *name);

#endif

/* Options tables: finding a row, facts about types, and the self-check of a table. */
#ifndef KILN_SCHEMA_TABLE_H
#define KILN_SCHEMA_TABLE_H

#include "kiln/component.h"

/* The key that names the component which a node builds. */
#define KILN_TARGET_KEY "_target_"
/* Limits of a table: rows, rows with those of nested tables, and depth of nesting. */
#define KILN_MAX_FIELDS 64
#define KILN_MAX_ROWS 256
#define KILN_MAX_TABLES 6

/* What messages and help say of a type, and how it is stored. */
typedef struct KilnTypeInfo {
    const char *name; /* "int" */
    const char *one;  /* "an integer", in messages; NULL: it depends on the option */
    const char *many; /* "integers" */
    size_t size;      /* of one value; 0: any */
    bool bounded;     /* min and max apply */
} KilnTypeInfo;
/* An empty entry for what is no type. */
const KilnTypeInfo *kiln_type_info(KilnType type);

/* A way to write a quantity. */
typedef struct KilnQuantityForm {
    unsigned allowed; /* KILN_ALLOW_... */
    const char *name, *one;
} KilnQuantityForm;
enum { KILN_QUANTITY_FORMS = 4 };
extern const KilnQuantityForm kiln_quantity_forms[KILN_QUANTITY_FORMS];

/* Rows of a table, former names among them; NULL is the empty table. */
size_t kiln_table_count(const KilnField *fields);
/* The option of that name, not a former one; NULL when there is none. */
const KilnField *kiln_table_find(const KilnField *fields, const char *name);
/* The row of a former name; NULL when there is none. */
const KilnField *kiln_table_renamed(const KilnField *fields, const char *name);
/* The option whose name is nearest to `name`; NULL when none is near. */
const char *kiln_table_nearest(const KilnField *fields, const char *name);
/* The row of one item of a list or mapping. */
KilnField kiln_field_item(const KilnField *field);
/* Check that names are unique snake_case, help is there, members are within `opts_size`, bounds and
 * choices make sense, the last of the `n` rows is KILN_FIELD_END, defaults parse and are in range,
 * and former names lead to options; in nested tables too. KILN_E_PLUGIN; the message starts with
 * the option's name ("option window.length: "). */
KILN_NODISCARD KilnStatus kiln_table_check(const KilnField *fields, size_t n, size_t opts_size,
                                           KilnError *err);
bool kiln_is_snake_case(const char *name);

#endif

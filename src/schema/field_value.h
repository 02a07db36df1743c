/* A scalar of the tree as the value of an option: only here a node's text becomes a bool, an
 * integer, a number or a choice. */
#ifndef KILN_SCHEMA_FIELD_VALUE_H
#define KILN_SCHEMA_FIELD_VALUE_H

#include "base/text.h"
#include "config/tree/node.h"

/* All zero for null, where that is allowed. */
typedef struct KilnValue {
    bool boolean;     /* BOOL */
    int64_t integer;  /* I64, ENUM, SIZE; QUANTITY: KilnQuantityUnit; IMAGE_SIZE: both sides */
    double number;    /* F64, DURATION, QUANTITY */
    const char *text; /* STR, PATH: as written, borrowed from the node */
} KilnValue;

/* Read a resolved node as a value of `field` (for an item: kiln_field_item), which no node is for a
 * list or mapping. The message ("expected
 * a number, got "fast"") names neither key nor origin. */
KILN_NODISCARD KilnStatus kiln_value_read(const KilnField *field, const KilnConfigNode *node,
                                          KilnValue *ret, KilnError *err);
/* Describe a node for "got ...": "fast" in quotes, 7, null, a mapping. */
void kiln_value_got(const KilnConfigNode *node, char *buf, size_t size);
#define KILN_GOT_TEXT 128
#define KILN_BOUND_TEXT 40
/* A bound as people write it: 1000000000, 0.5. Returns buf. */
const char *kiln_value_bound(double bound, char buf[KILN_BOUND_TEXT]);
/* "a model", "an optimizer"; "a component" for KILN_KIND_COUNT. */
const char *kiln_value_kind(KilnKind kind);

#endif

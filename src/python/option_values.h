/* Options of a component as JSON. */
#ifndef KILN_PYTHON_OPTION_VALUES_H
#define KILN_PYTHON_OPTION_VALUES_H

#include <jansson.h>

#include "kiln/field.h"

/* The values of the first `n` rows in an options struct: numbers, texts, choices by name, lists and
 * mappings of them; no structs and components. NULL: memory is out. */
json_t *kiln_option_values(const KilnField *fields, size_t n, const void *opts);

#endif

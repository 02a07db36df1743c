/* Building JSON in which nothing is missing without a word. */
#ifndef KILN_BASE_JSON_H
#define KILN_BASE_JSON_H

#include <jansson.h>

#include "kiln/base.h"

/* Append `value`, which is consumed. When there is none (memory was out when it was made), or no
 * memory for it, the whole list is freed and becomes NULL, and stays so. */
void kiln_json_add(json_t **list, json_t *value);
/* The same for a member of an object. */
void kiln_json_put(json_t **object, const char *key, json_t *value);
/* A text that need not be UTF-8, as names of files: what JSON can't hold is a question mark. */
json_t *kiln_json_text(const char *text);
/* What a file holds, owned by the caller; KILN_E_FORMAT where that is no JSON. */
KILN_NODISCARD KilnStatus kiln_json_read(const char *path, json_t **ret, KilnError *err);
/* The text of `json`, with jansson's flags; owned by the caller. NULL: there is none, or no memory.
 * (json_dumps leaves out keys that it has no memory for.) */
char *kiln_json_dump(const json_t *json, size_t flags);

#endif

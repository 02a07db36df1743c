/* Builds JSON; a failed allocation is never silently left out. */
#ifndef KILN_BASE_JSON_H
#define KILN_BASE_JSON_H

#include <jansson.h>

#include "kiln/base.h"

/* Append `value`, which is consumed. If it is NULL (memory ran out when it was made), or memory
 * runs out, the whole list is freed and stays NULL. */
void kiln_json_add(json_t **list, json_t *value);
/* The same for a member of an object. */
void kiln_json_put(json_t **object, const char *key, json_t *value);
/* A text that may not be UTF-8, such as a file's name: invalid bytes become question marks. */
json_t *kiln_json_text(const char *text);
/* The JSON of a file, owned by the caller; KILN_E_FORMAT if it is not JSON. */
KILN_NODISCARD KilnStatus kiln_json_read(const char *path, json_t **ret, KilnError *err);
/* The text of `json`, with jansson's flags; owned by the caller. NULL: `json` is NULL, or memory
 * ran out (json_dumps would leave out keys then). */
char *kiln_json_dump(const json_t *json, size_t flags);

#endif

/* Origins as text: how a place is written in messages, explanations and the run
 * folder, and how it is read from there. */
#ifndef KILN_CONFIG_PROVENANCE_ORIGIN_H
#define KILN_CONFIG_PROVENANCE_ORIGIN_H

#include "base/text.h"

/* "conf/x.yaml:3:5", the source alone where there is no line, "nowhere" without one. */
void kiln_origin_write(KilnText *text, const KilnOrigin *origin);
/* Length of "PLACE:" where a message begins with it; 0: it begins otherwise. */
size_t kiln_origin_prefix(const char *message, const KilnOrigin *origin);
/* The source of an argument, "argument 2 `lr=0.1`": its text, up to (not including)
 * the last backquote; NULL for any other source, or NULL. *ret_number (may be NULL)
 * is 2. */
const char *kiln_origin_argument(const char *source, size_t *ret_number);

#endif

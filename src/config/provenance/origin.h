/* Origins as text, in messages, explanations and the run folder: written and read. */
#ifndef KILN_CONFIG_PROVENANCE_ORIGIN_H
#define KILN_CONFIG_PROVENANCE_ORIGIN_H

#include "base/text.h"

/* How the source of a value begins that was inferred from data: "inferred from people.csv". */
#define KILN_ORIGIN_INFERRED "inferred from "

/* "conf/x.yaml:3:5", the source alone where there is no line, "nowhere" without one. */
void kiln_origin_write(KilnText *text, const KilnOrigin *origin);
/* Do both name the same position in a known source? */
bool kiln_origin_equal(const KilnOrigin *a, const KilnOrigin *b);
/* The length of "ORIGIN:" at the start of a message; 0 when it does not start so. */
size_t kiln_origin_prefix(const char *message, const KilnOrigin *origin);
/* For the source of an argument, "argument 2 `lr=0.1`": its text, up to (not including) the last
 * backquote; else NULL. *ret_number (may be NULL) is 2. */
const char *kiln_origin_argument(const char *source, size_t *ret_number);

#endif

/* The source line of a message, with a caret under its origin. */
#ifndef KILN_CONFIG_PROVENANCE_SOURCE_SNIPPET_H
#define KILN_CONFIG_PROVENANCE_SOURCE_SNIPPET_H

#include "base/text.h"

/* Append a line of text, cut to `width` columns around the byte `start`, and below it, after
 * `gutter`, a caret under that byte and ~ up to the byte `end`. */
void kiln_snippet_draw(KilnText *text, const char *gutter, const char *line, size_t size,
                       size_t start, size_t end, int width, bool colour);
/* Append
 *
 *        3 | lr: fast
 *          |     ^~~~
 *
 * for an origin in a file, which is read again, in a shipped file, or in an argument with a known
 * column; nothing when the line is not available. Lines longer than `width` columns are cut around
 * the caret; `colour`: a green caret. */
void kiln_source_snippet_write(KilnText *text, const KilnOrigin *origin, int width, bool colour);

#endif

/* The line that a message is about, with a caret below the place. */
#ifndef KILN_CONFIG_PROVENANCE_SOURCE_SNIPPET_H
#define KILN_CONFIG_PROVENANCE_SOURCE_SNIPPET_H

#include "base/text.h"

/* Append
 *
 *        3 | lr: fast
 *          |     ^~~~
 *
 * for a place in a file, which is read again, in a file inside the program, or in an
 * argument whose column is known. Nothing when the line can't be had. Lines longer
 * than `width` columns are cut around the caret; `colour`: a green caret. */
void kiln_source_snippet_write(KilnText *text, const KilnOrigin *origin, int width, bool colour);

#endif

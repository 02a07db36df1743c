/* Comments in a YAML text that name the origins of its values. */
#ifndef KILN_CONFIG_PROVENANCE_ORIGIN_COMMENTS_H
#define KILN_CONFIG_PROVENANCE_ORIGIN_COMMENTS_H

#include "base/text.h"
#include "config/tree/node.h"

/* At the end of a line, append the origin of `written`, whose resolved value is `value`. */
void kiln_origin_comment_add(KilnText *text, const KilnConfig *config,
                             const KilnConfigNode *written, const KilnConfigNode *value);
/* Make these origins comments, aligned as far as possible; all lines end in a newline. */
void kiln_origin_comments_align(KilnText *text);

#endif

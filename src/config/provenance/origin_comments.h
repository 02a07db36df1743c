/* Comments in a YAML text that name the origins of its values. */
#ifndef KILN_CONFIG_PROVENANCE_ORIGIN_COMMENTS_H
#define KILN_CONFIG_PROVENANCE_ORIGIN_COMMENTS_H

#include "base/text.h"
#include "config/tree/node.h"

/* Ready for use when zeroed; everything in it lives in the config's arena. */
typedef struct KilnOriginComments {
    struct KilnOriginComment *list;
    size_t count, capacity;
    bool failed; /* memory ran out */
} KilnOriginComments;

/* Add the origin of `written`, whose resolved value is `value`, for the line that ends at `offset`
 * in the text. Offsets grow from call to call. */
void kiln_origin_comments_add(KilnOriginComments *comments, const KilnConfig *config,
                              const KilnConfigNode *written, const KilnConfigNode *value,
                              size_t offset);
/* Append `text` with the comments, aligned as far as possible. */
void kiln_origin_comments_write(const KilnOriginComments *comments, const KilnText *text,
                                KilnText *ret);

#endif

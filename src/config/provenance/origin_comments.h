/* Comments that say where the values in a YAML text came from. */
#ifndef KILN_CONFIG_PROVENANCE_ORIGIN_COMMENTS_H
#define KILN_CONFIG_PROVENANCE_ORIGIN_COMMENTS_H

#include "base/text.h"
#include "config/tree/node.h"

/* Zeroed ones are ready. */
typedef struct KilnOriginComments {
    struct KilnOriginComment *list;
    size_t count, capacity;
    bool failed; /* memory ran out */
} KilnOriginComments;

/* At `offset` in the text the line ends that holds the value of `written`, which is
 * `value` when it is resolved. Offsets grow from call to call. */
void kiln_origin_comments_add(KilnOriginComments *comments, const KilnConfig *config,
                              const KilnConfigNode *written, const KilnConfigNode *value,
                              size_t offset);
/* Append `text` with the comments, which stand in one column as far as they can. */
void kiln_origin_comments_write(const KilnOriginComments *comments, const KilnText *text,
                                KilnText *ret);
void kiln_origin_comments_release(KilnOriginComments *comments);

#endif

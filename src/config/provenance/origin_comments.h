/* Comments that say where the values in a YAML text came from. */
#ifndef KILN_CONFIG_PROVENANCE_ORIGIN_COMMENTS_H
#define KILN_CONFIG_PROVENANCE_ORIGIN_COMMENTS_H

#include "base/text.h"
#include "config/tree/node.h"

/* Zeroed ones are ready. */
typedef struct KilnRemarks {
    struct KilnRemark *list;
    size_t count, capacity;
    bool failed; /* memory ran out */
} KilnRemarks;

/* At `offset` in the text the line ends that holds the value of `written`, which is
 * `value` when it is resolved. Offsets grow from call to call. */
void kiln_remarks_add(KilnRemarks *remarks, const KilnConfig *config, const KilnConfigNode *written,
                      const KilnConfigNode *value, size_t offset);
/* Append `text` with the comments, which stand in one column as far as they can. */
void kiln_remarks_write(const KilnRemarks *remarks, const KilnText *text, KilnText *ret);
void kiln_remarks_release(KilnRemarks *remarks);

#endif

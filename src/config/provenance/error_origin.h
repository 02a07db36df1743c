/* Messages that name where a value came from. */
#ifndef KILN_CONFIG_PROVENANCE_ERROR_ORIGIN_H
#define KILN_CONFIG_PROVENANCE_ERROR_ORIGIN_H

#include "config/tree/node.h"

/* "from conf/x.yaml:3:5", "from argument 2 `lr=fast`, through ${lr} in conf/opt.yaml:3:5": the
 * origin of `node` (as written), whose resolved value is `value`. */
void kiln_node_where(const KilnConfig *config, const KilnConfigNode *node,
                     const KilnConfigNode *value, char *buf, size_t size);
/* Complete a message about `node` (as written; NULL: about nothing with an origin), whose resolved
 * value is `value` (NULL: none): set err->origin to the origin of the value, and append
 * "through ${lr} in conf/x.yaml:3:5". For a default, which nobody wrote, use the nearest parent
 * that somebody did write. Returns err->status. */
KilnStatus kiln_error_about(const KilnConfig *config, const KilnConfigNode *node,
                            const KilnConfigNode *value, KilnError *err);
/* Prefix a message with "ORIGIN: PATH: ", unless it begins with its origin (err->origin) already.
 * Returns err->status. */
KilnStatus kiln_error_placed(KilnError *err, const char *path);

#endif

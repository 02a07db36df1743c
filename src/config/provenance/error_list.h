/* Collections of errors (kiln_errors_new and so on are in kiln/embed/config.h): adding and sorting.
 */
#ifndef KILN_CONFIG_PROVENANCE_ERROR_LIST_H
#define KILN_CONFIG_PROVENANCE_ERROR_LIST_H

#include "kiln/embed/config.h"

/* Add a message, with a copy of its origin; nothing when there is the same already. `errors` may be
 * NULL. Returns err->status. */
KilnStatus kiln_errors_add(KilnErrors *errors, const KilnError *err);
/* Add a message about `origin` (NULL: none), which goes in front. Returns `status`. */
KilnStatus kiln_errors_report(KilnErrors *errors, const KilnOrigin *origin, KilnStatus status,
                              const char *format, ...) KILN_PRINTF(4, 5);
/* Add a warning: it makes nothing fail. */
void kiln_errors_warn(KilnErrors *errors, const KilnError *err);
/* Add all of `from`, which may be NULL. */
void kiln_errors_append(KilnErrors *errors, const KilnErrors *from);
/* Add what resolving values warned of since the last call (oc.deprecated). */
void kiln_config_warnings(const KilnConfig *config, KilnErrors *errors);
/* How many of the messages are errors, not warnings. */
size_t kiln_errors_failures(const KilnErrors *errors);
/* Sort the messages by origin, stable. Files come in the order in which `config` read them, which
 * is remembered; NULL: in the remembered order. */
void kiln_errors_sort(KilnErrors *errors, const KilnConfig *config);

#endif

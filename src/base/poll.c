/* How long work asks its host whether to go on. */
#include "kiln/base.h"

bool kiln_poll(const KilnPoll *poll, const char *what, int64_t done, int64_t total)
{
    return poll != NULL && poll->poll(poll->ctx, what, done, total);
}

KilnStatus kiln_poll_check(const KilnPoll *poll, const char *what, int64_t done, int64_t total,
                           KilnError *err)
{
    if (!kiln_poll(poll, what, done, total))
        return KILN_OK;
    return kiln_error_set(err, KILN_E_INTERRUPTED, "interrupted while %s", what);
}

/* The SHA-256 sum of a file. */
#ifndef KILN_BASE_SYSTEM_SHA256_H
#define KILN_BASE_SYSTEM_SHA256_H

#include "kiln/base.h"

enum { KILN_SHA256_TEXT = 65 };

/* The sum of the bytes from the position of `fd` to its end, in lower case. `poll` may be NULL; it
 * shows `what`. KILN_E_IO: a read fails; without the path. */
KILN_NODISCARD KilnStatus kiln_fd_sha256(int fd, const KilnPoll *poll, const char *what,
                                         char ret[KILN_SHA256_TEXT], KilnError *err);

#endif

/* What this user has allowed: code to load, and paths to write to. Stored in the user's state
 * folder
 * ($XDG_STATE_HOME/kiln/allowed, else ~/.local/state/kiln/allowed), never in a run folder, since
 * whoever makes a run folder controls its content. */
#ifndef KILN_BASE_SYSTEM_TRUST_H
#define KILN_BASE_SYSTEM_TRUST_H

#include "kiln/base.h"

enum { KILN_TRUST_PARTS = 4 };

/* Something that can be allowed, identified by its parts; unused parts are NULL. */
typedef struct KilnTrust {
    const char *parts[KILN_TRUST_PARTS]; /* "plugin", "/home/me/x.so", its checksum, its owner */
} KilnTrust;

/* Store that it is allowed. If that fails, the user must allow it again. */
void kiln_trust_allow(const KilnTrust *trust);
/* Whether exactly this was allowed. */
bool kiln_trust_allowed(const KilnTrust *trust);

#endif

/* What this user has allowed once: code to load, and places to write to. It is remembered in the
 * user's own state folder ($XDG_STATE_HOME/kiln/allowed, else ~/.local/state/kiln/allowed), never
 * where the thing itself comes from: whoever makes a run folder writes all that is in it. */
#ifndef KILN_BASE_SYSTEM_TRUST_H
#define KILN_BASE_SYSTEM_TRUST_H

#include "kiln/base.h"

enum { KILN_TRUST_PARTS = 4 };

/* A thing that can be allowed: what it is, and all that it consists of; unused parts are NULL. */
typedef struct KilnTrust {
    const char *parts[KILN_TRUST_PARTS]; /* "plugin", "/home/me/x.so", its checksum, its owner */
} KilnTrust;

/* Remember that it is allowed. Where that fails, the user is asked again. */
void kiln_trust_allow(const KilnTrust *trust);
/* Was exactly this allowed? */
bool kiln_trust_allowed(const KilnTrust *trust);

#endif

/* Whether a plugin that a run folder names may be loaded without the user's asking for it. */
#ifndef KILN_REGISTRY_PLUGIN_TRUST_H
#define KILN_REGISTRY_PLUGIN_TRUST_H

#include "kiln/base.h"

/* Remember that this user loads this file as it is now: its place, its bytes and its owner. */
void kiln_plugin_allow(const char *path);
/* KILN_OK when this user has loaded the very file before; nothing of it is run. KILN_E_PLUGIN says
 * why it may not be loaded ("it is not a file that ..."). */
KILN_NODISCARD KilnStatus kiln_plugin_allowed(const char *path, KilnError *err);

#endif

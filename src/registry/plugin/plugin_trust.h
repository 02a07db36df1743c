/* Plugins that may be loaded because a run folder names them: those that this user loaded before.
 */
#ifndef KILN_REGISTRY_PLUGIN_PLUGIN_TRUST_H
#define KILN_REGISTRY_PLUGIN_PLUGIN_TRUST_H

#include "kiln/base.h"

/* Remember that this user loads this file as it is now: its path, bytes and owner. */
void kiln_plugin_allow(const char *path);
/* KILN_OK when this user has loaded the same file before; nothing of it is run. KILN_E_PLUGIN says
 * why it may not be loaded. */
KILN_NODISCARD KilnStatus kiln_plugin_allowed(const char *path, KilnError *err);

#endif

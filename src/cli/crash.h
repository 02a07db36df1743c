/* Reports crashes of the program. */
#ifndef KILN_CLI_CRASH_H
#define KILN_CLI_CRASH_H

#include "kiln/embed/registry.h"

/* From now on report a crash on standard error, after `command`: the signal and the component's
 * function that it came from. The process then ends by the signal as usual. Likewise an exit() in a
 * component's function, after which the exit status is 1. To be called once. */
void kiln_crash_report(const char *command);
/* The registry, for the plugins that components come from; it outlives all their calls. */
void kiln_crash_registry(const KilnRegistry *registry);

#endif

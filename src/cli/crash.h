/* What is said when the program crashes. */
#ifndef KILN_CLI_CRASH_H
#define KILN_CLI_CRASH_H

#include "kiln/component.h"

/* From now on a crash is reported on standard error: the signal, and the component's function that
 * it came in. The process then ends by the signal, as it would without. `command` stands in front.
 */
void kiln_crash_report(const char *command);
/* The registry that says which components come from plugins; it outlives all calls of them. */
void kiln_crash_registry(const KilnRegistry *registry);

#endif

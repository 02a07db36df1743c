/* Which Python runs the classes that a config names, and which of them may run. */
#ifndef KILN_CLI_FIND_PYTHON_H
#define KILN_CLI_FIND_PYTHON_H

#include "cli/args.h"
#include "kiln/embed/registry.h"

/* Let the registry find classes of Python: with `kiln.python`, else $KILN_PYTHON, else python3, and
 * in the current folder, unless it is that of a run. KILN_E_PLUGIN: a config that is not the user's
 * own sets kiln.python. */
KILN_NODISCARD KilnStatus kiln_command_python(const KilnArgs *args, KilnRegistry *registry,
                                              KilnError *err);

#endif

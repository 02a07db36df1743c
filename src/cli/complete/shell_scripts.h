/* The completion scripts of the shells, inside the program. */
#ifndef KILN_CLI_COMPLETE_SHELL_SCRIPTS_H
#define KILN_CLI_COMPLETE_SHELL_SCRIPTS_H

#include "config/defaults/shipped.h"

/* From tools/completion, closed by a NULL path; made by tools/gen_files.sh. */
extern const KilnShippedFile kiln_shell_scripts[];

#endif

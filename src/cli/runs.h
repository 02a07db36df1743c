/* Past runs that the command line names. */
#ifndef KILN_CLI_RUNS_H
#define KILN_CLI_RUNS_H

#include "kiln/base.h"

/* The run folder that `word` means: itself, the one that a checkpoint in it belongs to, or
 * `last`, the newest below outputs/. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_run_find(const char *word, char **ret, KilnError *err);

#endif

/* How commands name a past run: RUN is a run folder, a checkpoint in it, or `last` or `best` for
 * the newest run. */
#ifndef KILN_CLI_FIND_RUN_H
#define KILN_CLI_FIND_RUN_H

#include "cli/args.h"

/* Where train makes its runs, as far as the words say. */
const char *kiln_runs_folder(const KilnArgs *args);
/* The run folder that RUN means: itself, the one that the checkpoint is in, that of the newest run
 * in or below `runs`. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_run_find(const char *word, const char *runs, char **ret,
                                        KilnError *err);

#endif

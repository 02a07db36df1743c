/* Finds past runs. Commands name one by RUN: a run folder, a checkpoint in it, or `last` or `best`
 * for the newest run. */
#ifndef KILN_CLI_FIND_RUN_H
#define KILN_CLI_FIND_RUN_H

#include <jansson.h>

#include "cli/args.h"

/* The folder in which train makes its runs, as the words set it. */
const char *kiln_runs_folder(const KilnArgs *args);
/* The run folder that RUN names; `last` is searched in and below `runs`. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_run_find(const char *word, const char *runs, char **ret,
                                        KilnError *err);

/* Called with a checkpoint folder and its state.json (NULL: it cannot be read), both borrowed. */
typedef void KilnCheckpointVisit(void *ctx, const char *path, const json_t *state);
/* Visit the checkpoints of a run, in byte order; links such as `last` are left out. */
void kiln_run_checkpoints(const char *run, KilnCheckpointVisit *visit, void *ctx);

#endif

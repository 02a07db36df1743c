/* What a run folder may ask of the user who opens it: whoever made it wrote all that is in it. */
#ifndef KILN_CLI_FOREIGN_H
#define KILN_CLI_FOREIGN_H

#include "cli/args.h"
#include "kiln/config.h"

/* Take the plugins that `from` ("the run /x/y") names as those of `args`, which has none of its
 * own. KILN_E_PLUGIN: one that the user has not loaded before, and no --trust. */
KILN_NODISCARD KilnStatus kiln_foreign_plugins(KilnArgs *args, const char *from,
                                               const char *const *plugins, KilnError *err);
/* The same of the run in folder `run`, whose journal names them. */
KILN_NODISCARD KilnStatus kiln_foreign_run_plugins(KilnArgs *args, const char *run, KilnError *err);
/* The folder `run`, of a run or a sweep, is about to be written to: KILN_E_IO when something in it
 * is a link that leads out of it, and no --trust. */
KILN_NODISCARD KilnStatus kiln_foreign_links(const KilnArgs *args, const char *run, KilnError *err);
/* A config that was read from the folder `run`: KILN_E_RANGE when it names places to write to out
 * of the folder that are not this user's own run's, and no --trust. Added to `errors`. */
KILN_NODISCARD KilnStatus kiln_foreign_outputs(const KilnArgs *args, KilnConfig *config,
                                               const KilnRegistry *registry, const char *run,
                                               KilnErrors *errors);

#endif

/* What a run folder may ask of the user who opens it: whoever made it wrote all that is in it. */
#ifndef KILN_CLI_FOREIGN_H
#define KILN_CLI_FOREIGN_H

#include "cli/args.h"

/* Take the plugins that `from` ("the run /x/y") names as those of `args`, which has none of its
 * own. KILN_E_PLUGIN: one that the user has not loaded before, and no --trust. */
KILN_NODISCARD KilnStatus kiln_foreign_plugins(KilnArgs *args, const char *from,
                                               const char *const *plugins, KilnError *err);
/* The same of the run in folder `run`, whose journal names them. */
KILN_NODISCARD KilnStatus kiln_foreign_run_plugins(KilnArgs *args, const char *run, KilnError *err);

#endif

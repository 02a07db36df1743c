/* Limits for run folders from elsewhere, whose makers wrote all that is in them: which plugins are
 * loaded, and where outputs go. --trust lifts them. */
#ifndef KILN_CLI_UNTRUSTED_H
#define KILN_CLI_UNTRUSTED_H

#include "cli/args.h"
#include "kiln/embed/config.h"

/* Load the plugins that the folder `dir` of a `what` ("run", "sweep") names, too, unless the line
 * has
 * --plugin. One of the user's own takes the place of one with the same file name. KILN_E_PLUGIN:
 * one that the user has not loaded before. */
KILN_NODISCARD KilnStatus kiln_untrusted_plugins(KilnArgs *args, const char *what, const char *dir,
                                                 const char *const *plugins, KilnError *err);
/* The same for the plugins in the journal of the run folder `run`. With both, classes of Python
 * that the folder's config names are described only if the user has run them before
 * (cli/find_python.h). */
KILN_NODISCARD KilnStatus kiln_untrusted_run_plugins(KilnArgs *args, const char *run,
                                                     KilnError *err);
/* Check a run or sweep folder before it is written to. KILN_E_IO: it holds a link that leads out of
 * it. */
KILN_NODISCARD KilnStatus kiln_untrusted_links(const KilnArgs *args, const char *run,
                                               KilnError *err);
/* Check the outputs of a config that was read from the folder `run`. KILN_E_RANGE, added to
 * `errors`: one is outside of the folder and not in the user's own runs. */
KILN_NODISCARD KilnStatus kiln_untrusted_outputs(const KilnArgs *args, KilnConfig *config,
                                                 const KilnRegistry *registry, const char *run,
                                                 KilnErrors *errors);

#endif

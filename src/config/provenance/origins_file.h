/* origins.yaml in a run folder: where each value of the run came from. It maps a key to a list of
 * changes, newest first: {value, from}; {removed, from}; {more, from}, the items that were appended
 * to the list of the next change. A list counts as one value. */
#ifndef KILN_CONFIG_PROVENANCE_ORIGINS_FILE_H
#define KILN_CONFIG_PROVENANCE_ORIGINS_FILE_H

#include "config/provenance/value_history.h"

/* The histories of a config as text of origins.yaml. For a resumed run, `before` is the file that
 * it left and that is continued; else NULL. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_config_origins_yaml(const KilnConfig *config, const char *before,
                                                   char **ret, KilnError *err);
/* Is the file at `path` complete and readable? */
KILN_NODISCARD KilnStatus kiln_config_origins_check(const char *path, KilnError *err);
/* The histories of a resumed run, whose config has only the values that the run recorded: those of
 * its origins.yaml at `path`, preceded by what this command line changed and
 * what was inferred from the data. */
KILN_NODISCARD KilnStatus kiln_histories_resume(const KilnConfig *config, const char *path,
                                                KilnValueHistories *ret, KilnError *err);
/* Explain a key of a past run from the files in its folder `dir`. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_run_explain(const char *dir, const char *key, char **ret,
                                           KilnError *err);

#endif

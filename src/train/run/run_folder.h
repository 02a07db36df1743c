/* The run folder: created, claimed by this process, and filled with the run's config. */
#ifndef KILN_TRAIN_RUN_RUN_FOLDER_H
#define KILN_TRAIN_RUN_RUN_FOLDER_H

#include "train/trainer.h"

/* The folder in which runs are searched: kiln.run.dir before its first ${...}, up to the last
 * slash; else trainer.default_root_dir. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_run_folder_parent(const KilnConfig *config, char **ret,
                                                 KilnError *err);
/* Whether kiln.run.dir has ${now} in it: each run has a folder of its own. */
KILN_NODISCARD KilnStatus kiln_run_folder_is_dated(const KilnConfig *config, bool *ret,
                                                   KilnError *err);
/* Whether `checkpoint` (absolute, NULL: none) is in the run folder `dir`. */
bool kiln_run_folder_holds(const char *dir, const char *checkpoint);
/* Create the run folder, or continue in an existing one: that of a resumed run, or the one that
 * holds `checkpoint` (absolute path, NULL: none) if kiln.run.dir names it. Sets trainer->run_dir,
 * opens the journal and writes the config to disk. Refuses a folder that is not empty, except for
 * the remains of a run that was killed before it began. A name with ${now} gets a number when it is
 * taken. */
KILN_NODISCARD KilnStatus kiln_run_folder_make(KilnTrainer *trainer, const char *checkpoint,
                                               KilnError *err);

#endif

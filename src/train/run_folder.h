/* The run folder: made, filled with what was asked for, closed with a summary. */
#ifndef KILN_TRAIN_RUN_FOLDER_H
#define KILN_TRAIN_RUN_FOLDER_H

#include "train/trainer.h"

/* Where runs are looked for: the part of kiln.run.dir before the first ${...},
 * up to its last slash; "outputs" when there is none. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_run_folder_parent(const KilnConfig *config, char **ret,
                                                 KilnError *err);
/* True when `checkpoint` (absolute, NULL: none) lies in the run folder `dir`. */
bool kiln_run_folder_holds(const char *dir, const char *checkpoint);
/* Make the run folder and set trainer->run_dir, or go on in the one that
 * `checkpoint` (absolute path, NULL: none) lies in when kiln.run.dir names it.
 * (so does one that the run is resumed in). A folder that holds anything else is refused; one that
 * is named after the time gets a number behind it. */
KILN_NODISCARD KilnStatus kiln_run_folder_make(KilnTrainer *trainer, const char *checkpoint,
                                               KilnError *err);

/* ---- summary.c ------------------------------------------------------------------------ */

/* Write summary.json; `status` as in KilnRunResult or "failed", `reason` why it
 * ended ("" when there is nothing to say). */
KILN_NODISCARD KilnStatus kiln_summary_write(const KilnTrainer *trainer, const char *status,
                                             const char *reason, KilnError *err);
/* Print the closing table. */
void kiln_summary_print(KilnTrainer *trainer);

#endif

/* The run folder: made, filled with what was asked for, closed with a summary. */
#ifndef KILN_TRAIN_RUN_RUN_FOLDER_H
#define KILN_TRAIN_RUN_RUN_FOLDER_H

#include "base/text.h"
#include "train/trainer.h"

/* Where runs are looked for: the part of kiln.run.dir before the first ${...}, up to its last
 * slash; trainer.default_root_dir when there is none. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_run_folder_parent(const KilnConfig *config, char **ret,
                                                 KilnError *err);
/* True when `checkpoint` (absolute, NULL: none) lies in the run folder `dir`. */
bool kiln_run_folder_holds(const char *dir, const char *checkpoint);
/* Make the run folder and set trainer->run_dir, or go on in the one that
 * `checkpoint` (absolute path, NULL: none) lies in when kiln.run.dir names it (so does one that the
 * run is resumed in). The run's journal is open then, and its config on disk. A folder that holds
 * anything but what a run left that was ended before it began is refused; one that is named after
 * the time gets a number behind it. */
KILN_NODISCARD KilnStatus kiln_run_folder_make(KilnTrainer *trainer, const char *checkpoint,
                                               KilnError *err);

/* ---- run_messages.c ------------------------------------------------------------------------- */

/* Print what was chosen, and what differs from the defaults, with where that was said; on a
 * verbose screen also what the config files that come with the program set. */
void kiln_report_config(KilnTrainer *trainer);
/* `path` as seen from here, when it lies below; else as it is. */
const char *kiln_path_near(const char *path);
/* The checkpoint that checkpoints/<link> points to on disk, whatever was asked for and failed;
 * false when there is none. */
bool kiln_run_link(const KilnTrainer *trainer, const char *link, char *ret, size_t size);
/* Append the command that resumes this run, tests a checkpoint of it, or predicts with it: the
 * samples of test, or of the next split that has some. */
void kiln_run_resume_command(const KilnTrainer *trainer, KilnText *text);
void kiln_run_eval_command(const KilnTrainer *trainer, const char *checkpoint, KilnText *text);
void kiln_run_predict_command(const KilnTrainer *trainer, const char *checkpoint, KilnText *text);

/* ---- summary.c ------------------------------------------------------------------------ */

/* Write summary.json; `status` as in KilnRunResult or "failed", `reason` why it
 * ended ("" when there is nothing to say). */
KILN_NODISCARD KilnStatus kiln_summary_write(const KilnTrainer *trainer, const char *status,
                                             const char *reason, KilnError *err);
/* Print the closing table; `status` as above. */
void kiln_summary_print(KilnTrainer *trainer, const char *status);

#endif

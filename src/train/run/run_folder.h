/* The run folder: created, claimed by this process, and filled with the run's config. */
#ifndef KILN_TRAIN_RUN_RUN_FOLDER_H
#define KILN_TRAIN_RUN_RUN_FOLDER_H

#include "base/text.h"
#include "train/trainer.h"

/* The folder in which runs are searched: kiln.run.dir before its first ${...}, up to the last
 * slash; else trainer.default_root_dir. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_run_folder_parent(const KilnConfig *config, char **ret,
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

/* Messages about a run: its config, its paths, and the commands that continue it. */
#ifndef KILN_TRAIN_REPORT_RUN_MESSAGES_H
#define KILN_TRAIN_REPORT_RUN_MESSAGES_H

#include "base/text.h"
#include "kiln/trainer.h"

/* Print the selected options of groups, and the values that differ from the defaults with where
 * they were set; a verbose screen includes those of config files that come with the program. */
void kiln_report_config(KilnTrainer *trainer);
/* `path` relative to the working directory when it is below it; else as it is. */
const char *kiln_path_near(const char *path);
/* The target of checkpoints/<link> on disk, regardless of pending requests; false when there is no
 * such link. */
bool kiln_run_link(const KilnTrainer *trainer, const char *link, char *ret, size_t size);
/* Append the command that resumes this run, evaluates a checkpoint of it, predicts with it (the
 * samples of test, or of the next split that has some), or generates text with it. */
void kiln_run_resume_command(const KilnTrainer *trainer, KilnText *text);
void kiln_run_eval_command(const KilnTrainer *trainer, const char *checkpoint, KilnText *text);
void kiln_run_predict_command(const KilnTrainer *trainer, const char *checkpoint, KilnText *text);
void kiln_run_generate_command(const KilnTrainer *trainer, const char *checkpoint, KilnText *text);

#endif

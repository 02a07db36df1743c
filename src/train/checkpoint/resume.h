/* What a run goes on from. */
#ifndef KILN_TRAIN_CHECKPOINT_RESUME_H
#define KILN_TRAIN_CHECKPOINT_RESUME_H

#include "train/checkpoint/checkpoint.h"

/* Find and open the checkpoint that a run with this config and env goes on from; path NULL: it
 * starts anew. */
KILN_NODISCARD KilnStatus kiln_resume_open(const KilnConfig *config, const KilnRunEnv *env,
                                           KilnCheckpoint *ret, KilnError *err);
/* The threads that it ran with, for a run that leaves their number open; 0: unknown. */
int kiln_resume_threads(const KilnCheckpoint *checkpoint);
/* Load it into the assembled run, and say what differs. */
KILN_NODISCARD KilnStatus kiln_resume_load(const KilnCheckpoint *checkpoint, KilnTrainer *trainer,
                                           KilnError *err);
/* When it lies in the run's own folder it is the newest that this run has. */
void kiln_resume_settle(const KilnCheckpoint *checkpoint, KilnTrainer *trainer);
/* Take ckpt_path out of a config in YAML, in place: a run that was resumed is the same run. */
void kiln_resume_forget(char *yaml);

#endif

/* Resuming: finds the checkpoint that a run continues from and loads it. */
#ifndef KILN_TRAIN_CHECKPOINT_RESUME_H
#define KILN_TRAIN_CHECKPOINT_RESUME_H

#include "train/checkpoint/checkpoint.h"

/* Find and open the checkpoint that a run with this config and env resumes from, the same on all
 * ranks; ret->path NULL: the run is new. */
KILN_NODISCARD KilnStatus kiln_resume_open(const KilnConfig *config, const KilnRunEnv *env,
                                           KilnRanks *ranks, KilnCheckpoint *ret, KilnError *err);
/* The number of threads that the checkpoint was trained with; 0: unknown. */
int kiln_resume_threads(const KilnCheckpoint *checkpoint);
/* Load it into the assembled run; warns of differences that change results. */
KILN_NODISCARD KilnStatus kiln_resume_load(const KilnCheckpoint *checkpoint, KilnTrainer *trainer,
                                           KilnError *err);
/* A checkpoint in the run's own folder is this run's newest: record that. */
void kiln_resume_note_newest(const KilnCheckpoint *checkpoint, KilnTrainer *trainer);
/* Set ckpt_path to null in a config in YAML, in place: a resumed run has the config of the run it
 * continues. */
void kiln_resume_drop_path(char *yaml);

#endif

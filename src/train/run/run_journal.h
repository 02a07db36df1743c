/* RUN/.kiln/journal.jsonl: what happened to a run, one line for each fact: it was started or
 * resumed (with which overrides, from what), an epoch was over, a checkpoint was saved, it
 * ended and why. Nothing in it is needed to resume but where the run itself came from. */
#ifndef KILN_TRAIN_RUN_RUN_JOURNAL_H
#define KILN_TRAIN_RUN_RUN_JOURNAL_H

#include <jansson.h>

#include "train/trainer.h"

#define KILN_RUN_JOURNAL ".kiln/journal.jsonl"

/* Open it in the run folder, which nobody else may be running. */
KILN_NODISCARD KilnStatus kiln_run_journal_open(KilnTrainer *trainer, KilnError *err);
/* Write that the run begins; its config is on disk. */
KILN_NODISCARD KilnStatus kiln_run_journal_begin(KilnTrainer *trainer, KilnError *err);
/* An epoch is over; a checkpoint was asked for. A journal that can't be written any more is told
 * of once, and no reason to stop. It is brought to disk with the checkpoints. */
void kiln_run_journal_epoch(KilnTrainer *trainer);
void kiln_run_journal_saved(KilnTrainer *trainer, const char *name);
/* The run ends; nothing when it was not opened. */
void kiln_run_journal_end(KilnTrainer *trainer, const char *status, const char *reason);
/* The checkpoint that the run in the folder `run` was started from; NULL: none. Owned by the
 * caller. */
KILN_NODISCARD KilnStatus kiln_run_journal_origin(const char *run, char **ret, KilnError *err);

#endif

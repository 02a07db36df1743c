/* RUN/.kiln/journal.jsonl: the events of a run, one per line: started or resumed (with its
 * overrides and from where), end of an epoch, checkpoint saved, ended and why. A resume only needs
 * the checkpoint that the run itself was started from. */
#ifndef KILN_TRAIN_RUN_RUN_JOURNAL_H
#define KILN_TRAIN_RUN_RUN_JOURNAL_H

#include <jansson.h>

#include "train/trainer.h"

#define KILN_RUN_JOURNAL ".kiln/journal.jsonl"

/* Open it in the run folder; an error when another process runs there. */
KILN_NODISCARD KilnStatus kiln_run_journal_open(KilnTrainer *trainer, KilnError *err);
/* Write that the run starts or resumes; its config is on disk. Reports plugins that have changed
 * since the session before. */
KILN_NODISCARD KilnStatus kiln_run_journal_begin(KilnTrainer *trainer, KilnError *err);
/* Write that an epoch has ended, or that a checkpoint is being saved. A journal that can no longer
 * be written is reported once; the run continues. Checkpoints flush it to disk. */
void kiln_run_journal_epoch(KilnTrainer *trainer);
void kiln_run_journal_saved(KilnTrainer *trainer, const char *name);
/* Write that the run has ended, and close the journal; nothing when it is not open. */
void kiln_run_journal_end(KilnTrainer *trainer, const char *status, const char *reason);
/* What the run in folder `run` recorded of the plugins of its last session
 * (registry/plugin/plugin_record.h). Owned by the caller; NULL: nothing. */
json_t *kiln_run_journal_plugins(const char *run);
/* The checkpoint that the run in folder `run` was started from; NULL: none. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_run_journal_origin(const char *run, char **ret, KilnError *err);

#endif

/* The files of components in a checkpoint. */
#ifndef KILN_TRAIN_CHECKPOINT_SAVE_HOOKS_H
#define KILN_TRAIN_CHECKPOINT_SAVE_HOOKS_H

#include "train/checkpoint/snapshot.h"

/* Call save_preprocessing of the datamodule, and on_save_checkpoint hooks, which write their files
 * directly into the unfinished folder of the run. */
KILN_NODISCARD KilnStatus kiln_save_hooks_call(KilnTrainer *trainer, const KilnSnapshot *snapshot,
                                               KilnError *err);

#endif

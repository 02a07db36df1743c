/* Makes a datamodule ready: what it needs on disk, and its set-up; or takes one that is ready. */
#ifndef KILN_TRAIN_LOADER_PREPARE_DATA_H
#define KILN_TRAIN_LOADER_PREPARE_DATA_H

#include "kiln/loading.h"
#include "kiln/trainer.h"

/* Take the datamodule of the process that forked this one, if it has set it up for others. */
void kiln_data_take(KilnTrainer *trainer, const KilnDataSpec *remembered);
/* Download the datamodule's sources if its options say so, let it prepare and set it up. Other
 * processes may then take it. */
KILN_NODISCARD KilnStatus kiln_data_set_up(KilnTrainer *trainer, const KilnDataContext *context,
                                           KilnError *err);

#endif

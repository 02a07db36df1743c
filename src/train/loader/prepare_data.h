/* What a datamodule needs on disk, before it is set up. */
#ifndef KILN_TRAIN_LOADER_PREPARE_DATA_H
#define KILN_TRAIN_LOADER_PREPARE_DATA_H

#include "kiln/loading.h"
#include "kiln/trainer.h"

/* Download the sources that are missing, if the datamodule's options say so, and let it prepare.
 * Rank 0 does both, and the other ranks wait for it. */
KILN_NODISCARD KilnStatus kiln_prepare_data(KilnTrainer *trainer, const KilnDataContext *context,
                                            KilnError *err);
/* Where setup failed and a source is missing, add how to download it. Keeps and returns the
 * status. */
KilnStatus kiln_missing_source(const KilnLoading *loading, KilnStatus status, KilnError *err);

#endif

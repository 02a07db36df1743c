/* Options that the datamodule inferred from the data: for the run's config, and for the user. */
#ifndef KILN_TRAIN_LOADER_INFERRED_OPTIONS_H
#define KILN_TRAIN_LOADER_INFERRED_OPTIONS_H

#include "train/trainer.h"

/* Put them into the config of a trainer whose data are set up, with the origin "inferred from
 * FILE", and into trainer->config_yaml. Sets trainer->inferred if there are any. */
KILN_NODISCARD KilnStatus kiln_inferred_options_keep(KilnTrainer *trainer, KilnError *err);
/* Append them as YAML, to be pasted into a config; nothing if there are none. */
KILN_NODISCARD KilnStatus kiln_inferred_options_write(const KilnTrainer *trainer, KilnText *text,
                                                      KilnError *err);

#endif

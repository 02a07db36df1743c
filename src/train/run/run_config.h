/* The YAML files in RUN/.kiln: what the run was asked for, and its config. Each is whole and on
 * disk before it has its name, config.yaml last: a run that has it can be resumed. */
#ifndef KILN_TRAIN_RUN_RUN_CONFIG_H
#define KILN_TRAIN_RUN_RUN_CONFIG_H

#include "train/trainer.h"

/* Write them into the run folder. A resumed run keeps what it was started with. */
KILN_NODISCARD KilnStatus kiln_run_config_write(const KilnTrainer *trainer, KilnError *err);
/* Whether .kiln/`name` is one of these files, finished or not. */
bool kiln_run_config_names(const char *name);
/* Set trainer->origins. A file that is damaged is reported, and the run goes on without it. */
KILN_NODISCARD KilnStatus kiln_run_origins_look(KilnTrainer *trainer, KilnError *err);

#endif

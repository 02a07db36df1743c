/* The YAML files in RUN/.kiln: the run's overrides, origins and config. Each gets its name when it
 * is complete and on disk, config.yaml last: a run that has config.yaml can be resumed. */
#ifndef KILN_TRAIN_RUN_RUN_CONFIG_H
#define KILN_TRAIN_RUN_RUN_CONFIG_H

#include "train/trainer.h"

/* The name, without its ending, of the config that a resume reads: the user's, not resolved. */
#define KILN_JOB_CONFIG "job"

/* Write them into the run folder. A resumed run keeps the overrides that it was started with. */
KILN_NODISCARD KilnStatus kiln_run_config_write(const KilnTrainer *trainer, KilnError *err);
/* Whether .kiln/`name` is one of these files, finished or not. */
bool kiln_run_config_names(const char *name);
/* Set trainer->origins if the run folder has the file. A damaged file is reported; the run
 * continues without it. */
KILN_NODISCARD KilnStatus kiln_run_origins_find(KilnTrainer *trainer, KilnError *err);

#endif

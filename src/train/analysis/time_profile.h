/* The time profile of a run: time by layer and operation, hook and phase. */
#ifndef KILN_TRAIN_ANALYSIS_TIME_PROFILE_H
#define KILN_TRAIN_ANALYSIS_TIME_PROFILE_H

#include "kiln/trainer.h"

/* With trainer.profiler: print how the run spent its time, and write profile.csv to the run
 * folder. */
KILN_NODISCARD KilnStatus kiln_profile_close(KilnTrainer *trainer, KilnError *err);

#endif

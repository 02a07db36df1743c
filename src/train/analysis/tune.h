/* Runs callbacks that tune the config before the run is built (learning rate, batch size). What
 * they may do is in kiln/tune.h. */
#ifndef KILN_TRAIN_ANALYSIS_TUNE_H
#define KILN_TRAIN_ANALYSIS_TUNE_H

#include <jansson.h>

#include "kiln/tune.h"
#include "train/trainer.h"

typedef struct KilnTuneRequest {
    int world;        /* ranks of the run; with several, callbacks that tune are refused */
    const char *only; /* config path of one callback; NULL: all that tune */
    const char *dir;  /* folder for pictures; NULL: callbacks write them to the run folder later */
    const json_t *saved; /* callbacks' states by path, of the checkpoint that the run resumes from;
                          * NULL: none */
} KilnTuneRequest;

/* Let the config's callbacks that tune change it. *ret is for kiln_trainer_take_tuned:
 * {"states": {PATH: ...}, "lines": [...], "options": {PATH: {"key": ..., "value": ...}}}; owned by
 * the caller. */
KILN_NODISCARD KilnStatus kiln_tune_run(KilnConfig *config, const KilnRunEnv *env,
                                        const KilnTuneRequest *request, json_t **ret,
                                        KilnError *err);
/* After setup: load the states into the callbacks of the run's trainer, and copy the printed lines
 * to its log. */
KILN_NODISCARD KilnStatus kiln_trainer_take_tuned(KilnTrainer *trainer, const json_t *tuned,
                                                  KilnError *err);

#endif

/* Callbacks that tune a run before it is built. */
#ifndef KILN_TRAIN_ANALYSIS_TUNE_H
#define KILN_TRAIN_ANALYSIS_TUNE_H

#include <jansson.h>

#include "kiln/tune.h"
#include "train/trainer.h"

typedef struct KilnTuneAsk {
    const char *only;    /* path of the callback that is asked; NULL: all that tune */
    const char *dir;     /* where it may write pictures at once; NULL: in the run's folder, later */
    const json_t *saved; /* states of callbacks by path, of a checkpoint that the run goes on
                          * from; NULL: none */
} KilnTuneAsk;

/* Let the callbacks of the config that tune change it. *ret is for kiln_trainer_take_tuned,
 * {"states": {PATH: ...}, "lines": [...], "options": {PATH: {"key": ..., "value": ...}}}; owned by
 * the caller. */
KILN_NODISCARD KilnStatus kiln_tune_run(KilnConfig *config, const KilnRunEnv *env,
                                        const KilnTuneAsk *ask, json_t **ret, KilnError *err);
/* Hand the states to the callbacks of the run's own trainer, behind setup, and what was printed
 * to its log. */
KILN_NODISCARD KilnStatus kiln_trainer_take_tuned(KilnTrainer *trainer, const json_t *tuned,
                                                  KilnError *err);

#endif

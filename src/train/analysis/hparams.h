/* What of a config differs from its components' defaults: a run's hyperparameters. */
#ifndef KILN_TRAIN_ANALYSIS_HPARAMS_H
#define KILN_TRAIN_ANALYSIS_HPARAMS_H

#include "base/arena.h"
#include "kiln/config.h"
#include "kiln/logger.h"

/* In the order of the tree; in `arena`. What says where and how the run is done (callbacks,
 * loggers, ckpt_path, kiln.*) is left out, and so is what refers to other keys. `origins`: where
 * the run's own config, which has values alone, came from (origins.yaml); NULL: from this config.
 */
KILN_NODISCARD KilnStatus kiln_hparams_collect(const KilnConfig *config, const char *origins,
                                               KilnArena *arena, const KilnHparam **ret,
                                               size_t *ret_n, KilnError *err);

/* A value that someone set to something else than the default. */
typedef struct KilnDifference {
    const char *key, *value;
    const char *from; /* "argument 2", "conf/x.yaml:3:5" */
    bool shipped;     /* by a config file that comes with the program */
} KilnDifference;

/* Likewise, with callbacks and loggers. */
KILN_NODISCARD KilnStatus kiln_differences_collect(const KilnConfig *config, const char *origins,
                                                   KilnArena *arena, const KilnDifference **ret,
                                                   size_t *ret_n, KilnError *err);

#endif

/* The hyperparameters of a run: the values of its config that differ from components' defaults. */
#ifndef KILN_TRAIN_ANALYSIS_HPARAMS_H
#define KILN_TRAIN_ANALYSIS_HPARAMS_H

#include "base/arena.h"
#include "kiln/embed/config.h"
#include "kiln/logger.h"

/* In the order of the tree; in `arena`. Without what only says how and where to run (callbacks,
 * loggers, ckpt_path, kiln.*) and without references to other keys and what was inferred from the
 * data. `origins`: the origins.yaml of a resumed run, whose own config has values only; NULL: the
 * config knows its origins. */
KILN_NODISCARD KilnStatus kiln_hparams_collect(const KilnConfig *config, const char *origins,
                                               KilnArena *arena, const KilnHparam **ret,
                                               size_t *ret_n, KilnError *err);

/* A value that was set to something else than its default. */
typedef struct KilnDifference {
    const char *key, *value;
    const char *from; /* "argument 2", "conf/x.yaml:3:5" */
    bool shipped;     /* set by a config file that comes with the program */
} KilnDifference;

/* The same with callbacks and loggers, as differences for people. */
KILN_NODISCARD KilnStatus kiln_differences_collect(const KilnConfig *config, const char *origins,
                                                   KilnArena *arena, const KilnDifference **ret,
                                                   size_t *ret_n, KilnError *err);

#endif

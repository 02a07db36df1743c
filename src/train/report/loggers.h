/* The loggers of a run: opens, feeds, flushes and closes them, and saves their positions in
 * checkpoints. */
#ifndef KILN_TRAIN_REPORT_LOGGERS_H
#define KILN_TRAIN_REPORT_LOGGERS_H

#include <jansson.h>

#include "base/arena.h"
#include "kiln/trainer.h"

typedef struct KilnLoggers {
    KilnInstance **list;
    size_t n;
    KilnArena arena; /* owns what `runs` point to */
    KilnLogRun *runs;
    KilnState *states;
    bool opened, closed;
    bool removal_reported; /* the user knows that a logger's file was removed */
} KilnLoggers;

/* KILN_E_RANGE when two of them would write the same file. */
KILN_NODISCARD KilnStatus kiln_loggers_check(const KilnLoggers *loggers, KilnError *err);
/* Open all in the run folder; `saved` is their kiln_loggers_state in the checkpoint that the run
 * resumes from, NULL: none. */
KILN_NODISCARD KilnStatus kiln_loggers_open(KilnTrainer *trainer, const json_t *saved,
                                            KilnError *err);
/* Send the values of this step, or epoch values, that were not sent yet. */
KILN_NODISCARD KilnStatus kiln_loggers_send(KilnTrainer *trainer, bool epoch_values,
                                            KilnError *err);
/* Discard step values that were not sent, before another loop begins. */
void kiln_loggers_discard_steps(KilnTrainer *trainer);
KILN_NODISCARD KilnStatus kiln_loggers_flush(KilnTrainer *trainer, KilnError *err);
/* The loggers' state (positions in their files) by config path; sets *failed when memory runs
 * out. */
json_t *kiln_loggers_state(const KilnTrainer *trainer, bool *failed);
/* Close all with the run's status; nothing when they are not open. */
KILN_NODISCARD KilnStatus kiln_loggers_close(KilnTrainer *trainer, const char *status,
                                             KilnError *err);
void kiln_loggers_release(KilnLoggers *loggers);

#endif

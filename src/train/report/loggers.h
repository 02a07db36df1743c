/* The loggers of a run: what they are told, and what a checkpoint keeps of them. */
#ifndef KILN_TRAIN_REPORT_LOGGERS_H
#define KILN_TRAIN_REPORT_LOGGERS_H

#include <jansson.h>

#include "base/arena.h"
#include "kiln/trainer.h"

typedef struct KilnLoggers {
    KilnInstance **list;
    size_t n;
    KilnArena arena; /* of what `run` of each points to */
    KilnLogRun *runs;
    KilnState *states;
    bool opened, closed;
    bool gone; /* it was reported that a file of theirs is */
} KilnLoggers;

/* KILN_E_RANGE when two of them would write the same file. */
KILN_NODISCARD KilnStatus kiln_loggers_check(const KilnLoggers *loggers, KilnError *err);
/* Open them all in the run folder; `saved` is what kiln_loggers_state gave for the checkpoint
 * that the run goes on from, NULL: none. */
KILN_NODISCARD KilnStatus kiln_loggers_open(KilnTrainer *trainer, const json_t *saved,
                                            KilnError *err);
/* Send the values of this step, or of epochs, that were not sent yet. */
KILN_NODISCARD KilnStatus kiln_loggers_send(KilnTrainer *trainer, bool epoch_values,
                                            KilnError *err);
/* Forget values of steps that were not sent: those of another loop begin. */
void kiln_loggers_drop_steps(KilnTrainer *trainer);
KILN_NODISCARD KilnStatus kiln_loggers_flush(KilnTrainer *trainer, KilnError *err);
/* Their positions by config path; *failed is set when memory is out. */
json_t *kiln_loggers_state(const KilnTrainer *trainer, bool *failed);
/* Tell them how the run ended; nothing when they were not opened or are closed. */
KILN_NODISCARD KilnStatus kiln_loggers_close(KilnTrainer *trainer, const char *status,
                                             KilnError *err);
void kiln_loggers_release(KilnLoggers *loggers);

#endif

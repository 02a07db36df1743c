/* When the training loop steps its optimizer, validates, logs and ends, by Lightning's rules. Pure
 * functions of the options and the position of training. */
#ifndef KILN_TRAIN_LOOP_LOOP_SCHEDULE_H
#define KILN_TRAIN_LOOP_LOOP_SCHEDULE_H

#include "kiln/trainer.h"
#include "train/run/run_options.h"
#include "train/loop/position.h"

typedef struct KilnLoopSchedule {
    int64_t batches;    /* of an epoch */
    int64_t world;      /* ranks, which train so many batches at a time */
    int64_t accumulate; /* batches of an optimizer step on each rank; the last of an epoch may have
                         * fewer */
    const KilnAccumulation *changes; /* of `accumulate`, by rising epochs; borrowed */
    size_t n_changes;
    int64_t max_epochs, max_steps; /* -1: no end */
    int64_t min_epochs, min_steps; /* a request to stop waits for both */
    bool validates;
    int64_t val_batches;  /* validate after so many batches, */
    bool val_over_epochs; /* counted since the start, not within the epoch */
    int64_t val_epochs;   /* in every n-th epoch only */
    double val_seconds;   /* so long after the last one, instead of after batches; 0: no */
    int64_t log_steps;
    double max_seconds; /* INFINITY: no end */
} KilnLoopSchedule;

/* The schedule of epochs of `batches`, with validations of `val_batches`, on `world` ranks.
 * KILN_E_RANGE when the options do not fit them. */
KILN_NODISCARD KilnStatus kiln_loop_schedule_make(const KilnTrainerOptions *options,
                                                  int64_t batches, int64_t val_batches, int world,
                                                  KilnLoopSchedule *ret, KilnError *err);

/* The number of `total` batches that option `name` leaves. Refuses a share below one batch, and
 * names the smallest that is not. */
KILN_NODISCARD KilnStatus kiln_loop_limit_batches(const char *name, KilnQuantity limit,
                                                  int64_t total, int64_t *ret, KilnError *err);

/* The end of the round that batch number `batch` (from 0) of an epoch is in: of one rank, the next
 * batch. Rounds begin at multiples of the world's size. */
int64_t kiln_loop_round_end(const KilnLoopSchedule *schedule, int64_t batch);
/* Whether the round that begins with batch number `batch` of an epoch is the last of its group. */
bool kiln_loop_is_step(const KilnLoopSchedule *schedule, const KilnPosition *at, int64_t batch);
/* Batches of an optimizer step in that epoch, of all ranks. */
int64_t kiln_loop_accumulate(const KilnLoopSchedule *schedule, int64_t epoch);
/* Optimizer steps of an epoch. */
int64_t kiln_loop_epoch_steps(const KilnLoopSchedule *schedule, int64_t epoch);
/* Optimizer steps and epochs of the whole run; -1: no end. */
int64_t kiln_loop_total_steps(const KilnLoopSchedule *schedule);
int64_t kiln_loop_total_epochs(const KilnLoopSchedule *schedule);
/* The position of training as components see it. */
KilnProgress kiln_loop_progress(const KilnLoopSchedule *schedule, const KilnPosition *at);
/* Validations per epoch, averaged over epochs; 0 when they follow the clock. */
double kiln_loop_validations(const KilnLoopSchedule *schedule);
/* Whether validation, if there is any, runs once in every epoch, after its last batch. */
bool kiln_loop_validates_epochs(const KilnLoopSchedule *schedule);
/* Whether the loggers get a row of the step that was just made. */
bool kiln_loop_should_log(const KilnLoopSchedule *schedule, const KilnPosition *at);
/* Whether validation is due before the next batch, `seconds` after the last one. It is due, too,
 * when training ends within an epoch or on request. False when it ran here already. */
bool kiln_loop_should_validate(const KilnLoopSchedule *schedule, const KilnPosition *at,
                               double seconds);
/* Whether no further batch is trained: enough steps are done, or a request to stop is due. */
bool kiln_loop_should_stop(const KilnLoopSchedule *schedule, const KilnPosition *at);
/* Whether no batch is left to train; the end of the epoch may still be. */
bool kiln_loop_is_done(const KilnLoopSchedule *schedule, const KilnPosition *at);
/* Whether no further epoch begins. */
bool kiln_loop_is_last_epoch(const KilnLoopSchedule *schedule, const KilnPosition *at);

#endif

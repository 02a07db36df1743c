/* The training loop in numbers: when it is an optimizer step's, a validation's, a row's or its
 * own end's turn. Pure functions of the options and of where training is; Lightning's rules. */
#ifndef KILN_TRAIN_LOOP_LOOP_SCHEDULE_H
#define KILN_TRAIN_LOOP_LOOP_SCHEDULE_H

#include "kiln/trainer.h"
#include "train/run/run_options.h"
#include "train/loop/position.h"

typedef struct KilnLoopSchedule {
    int64_t batches;    /* of an epoch */
    int64_t accumulate; /* batches of an optimizer step; the last of an epoch may have fewer */
    const KilnAccumulation *changes; /* of that number, by rising epochs; borrowed */
    size_t n_changes;
    int64_t max_epochs, max_steps; /* -1: no end */
    int64_t min_epochs, min_steps; /* training ends by request only behind both */
    bool validates;
    int64_t val_batches;  /* validate after so many batches ... */
    bool val_over_epochs; /* ... since the start, not within the epoch */
    int64_t val_epochs;   /* in every n-th epoch alone */
    double val_seconds;   /* after so long since the last one, not after batches; 0: no */
    int64_t log_steps;
    double max_seconds; /* INFINITY: no end */
} KilnLoopSchedule;

/* For epochs of `batches`, and validation of `val_batches`. Refuses (KILN_E_RANGE) what does
 * not fit them. */
KILN_NODISCARD KilnStatus kiln_loop_schedule_make(const KilnTrainerOptions *options,
                                                  int64_t batches, int64_t val_batches,
                                                  KilnLoopSchedule *ret, KilnError *err);

/* The share of `total` batches that option `name` leaves; refuses a share that is none of them,
 * saying which would be one. */
KILN_NODISCARD KilnStatus kiln_loop_limit_batches(const char *name, KilnQuantity limit,
                                                  int64_t total, int64_t *ret, KilnError *err);

/* Whether batch number `batch` (from 0) of an epoch is its group's last. */
bool kiln_loop_is_step(const KilnLoopSchedule *schedule, const KilnPosition *at, int64_t batch);
/* Batches of an optimizer step in that epoch. */
int64_t kiln_loop_accumulate(const KilnLoopSchedule *schedule, int64_t epoch);
/* Optimizer steps of an epoch. */
int64_t kiln_loop_epoch_steps(const KilnLoopSchedule *schedule, int64_t epoch);
/* Optimizer steps and epochs of the whole run; -1: no end. */
int64_t kiln_loop_total_steps(const KilnLoopSchedule *schedule);
int64_t kiln_loop_total_epochs(const KilnLoopSchedule *schedule);
/* Validations of an epoch, over many epochs; of those after a time none are known of. */
double kiln_loop_validations(const KilnLoopSchedule *schedule);
/* Validation, if there is any, is held once in every epoch, behind its last batch. */
bool kiln_loop_validates_epochs(const KilnLoopSchedule *schedule);
/* The step values of a step just made are a row for the loggers. */
bool kiln_loop_should_log(const KilnLoopSchedule *schedule, const KilnPosition *at);
/* Validation has its turn before the next batch; `seconds` since the last one. Also when training
 * ends within an epoch, or as somebody asked. False when it was held here already. */
bool kiln_loop_should_validate(const KilnLoopSchedule *schedule, const KilnPosition *at,
                               double seconds);
/* No further batch is trained: enough steps, or a request to stop that counts by now. */
bool kiln_loop_should_stop(const KilnLoopSchedule *schedule, const KilnPosition *at);
/* No batch is left to train; the end of the epoch may be. */
bool kiln_loop_is_done(const KilnLoopSchedule *schedule, const KilnPosition *at);
/* No further epoch is begun. */
bool kiln_loop_is_last_epoch(const KilnLoopSchedule *schedule, const KilnPosition *at);

#endif

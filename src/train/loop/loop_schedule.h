/* The training loop in numbers: when it is an optimizer step's, a validation's, a row's or its
 * own end's turn. Pure functions of the options and of where training is; Lightning's rules. */
#ifndef KILN_TRAIN_LOOP_LOOP_SCHEDULE_H
#define KILN_TRAIN_LOOP_LOOP_SCHEDULE_H

#include "kiln/trainer.h"
#include "train/run/run_options.h"
#include "train/loop/position.h"

typedef struct KilnPace {
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
} KilnPace;

/* For epochs of `batches`, and validation of `val_batches`. Refuses (KILN_E_RANGE) what does
 * not fit them. */
KILN_NODISCARD KilnStatus kiln_pace_make(const KilnTrainerOptions *options, int64_t batches,
                                         int64_t val_batches, KilnPace *ret, KilnError *err);

/* The share of `total` batches that option `name` leaves; refuses a share that is none of them,
 * saying which would be one. */
KILN_NODISCARD KilnStatus kiln_pace_limit(const char *name, KilnAmount limit, int64_t total,
                                          int64_t *ret, KilnError *err);

/* Whether batch number `batch` (from 0) of an epoch is its group's last. */
bool kiln_pace_steps(const KilnPace *pace, const KilnPosition *at, int64_t batch);
/* Batches of an optimizer step in that epoch. */
int64_t kiln_pace_accumulate(const KilnPace *pace, int64_t epoch);
/* Optimizer steps of an epoch. */
int64_t kiln_pace_epoch_steps(const KilnPace *pace, int64_t epoch);
/* Optimizer steps and epochs of the whole run; -1: no end. */
int64_t kiln_pace_total_steps(const KilnPace *pace);
int64_t kiln_pace_total_epochs(const KilnPace *pace);
/* Validations of an epoch, over many epochs; of those after a time none are known of. */
double kiln_pace_validations(const KilnPace *pace);
/* Validation, if there is any, is held once in every epoch, behind its last batch. */
bool kiln_pace_validates_epochs(const KilnPace *pace);
/* The step values of a step just made are a row for the loggers. */
bool kiln_pace_logs(const KilnPace *pace, const KilnPosition *at);
/* Validation has its turn before the next batch; `seconds` since the last one. Also when training
 * ends within an epoch, or as somebody asked. False when it was held here already. */
bool kiln_pace_validates(const KilnPace *pace, const KilnPosition *at, double seconds);
/* No further batch is trained: enough steps, or a request to stop that counts by now. */
bool kiln_pace_stops(const KilnPace *pace, const KilnPosition *at);
/* No batch is left to train; the end of the epoch may be. */
bool kiln_pace_is_done(const KilnPace *pace, const KilnPosition *at);
/* No further epoch is begun. */
bool kiln_pace_ends(const KilnPace *pace, const KilnPosition *at);

#endif

/* Decides by arithmetic; the loops that follow it are in train/loop/fit.c. */
#include "train/loop/loop_schedule.h"

#include <math.h>

/* ---- From options -------------------------------------------------------------------- */

KilnStatus kiln_loop_limit_batches(const char *name, KilnQuantity limit, int64_t total,
                                   int64_t *ret, KilnError *err)
{
    *ret = kiln_quantity_of(limit, total);
    if (*ret == 0 && total > 0 && limit.value > 0.0)
        return kiln_error_set(
            err, KILN_E_RANGE,
            "trainer.%s=%g of %lld batches is less than one: write at least %.4g, "
            "or a count such as 1",
            name, limit.value, (long long)total, ceil(1e4 / (double)total) / 1e4);
    return KILN_OK;
}

static KilnStatus read_interval(const KilnTrainerOptions *options, KilnLoopSchedule *schedule,
                                KilnError *err)
{
    const KilnQuantity interval = options->val_check_interval;
    const int64_t *every = options->check_val_every_n_epoch;
    const bool over_epochs = every == NULL && options->fast_dev_run.value <= 0.0;

    schedule->val_over_epochs = over_epochs;
    schedule->val_epochs = every != NULL ? *every : 1;
    if (!(interval.value > 0.0))
        return kiln_error_set(err, KILN_E_RANGE,
                              "trainer.val_check_interval=0: must be positive; "
                              "trainer.limit_val_batches=0 turns validation off");
    if (interval.of == KILN_QUANTITY_DURATION) {
        schedule->val_seconds = interval.value;
        return KILN_OK;
    }
    if (interval.of == KILN_QUANTITY_FRACTION && over_epochs)
        return kiln_error_set(err, KILN_E_RANGE,
                              "trainer.val_check_interval=%g is a fraction of an epoch, but "
                              "trainer.check_val_every_n_epoch=null counts batches over epochs: "
                              "write a number of batches",
                              interval.value);
    if (interval.of == KILN_QUANTITY_FRACTION)
        schedule->val_batches = (int64_t)((double)schedule->batches * interval.value);
    else
        schedule->val_batches = (int64_t)interval.value;
    if (interval.of == KILN_QUANTITY_FRACTION && schedule->val_batches < 1)
        schedule->val_batches = 1;
    if (schedule->validates && !over_epochs && schedule->val_batches > schedule->batches &&
        schedule->batches > 0)
        return kiln_error_set(
            err, KILN_E_RANGE,
            "trainer.val_check_interval=%lld is more than the %lld batches of an "
            "epoch: validation would never run; with "
            "trainer.check_val_every_n_epoch=null batches are counted over epochs",
            (long long)schedule->val_batches, (long long)schedule->batches);
    return KILN_OK;
}

KilnStatus kiln_loop_schedule_make(const KilnTrainerOptions *options, int64_t batches,
                                   int64_t val_batches, int world, KilnLoopSchedule *ret,
                                   KilnError *err)
{
    KilnLoopSchedule schedule = {
        .batches = batches,
        .world = world,
        .accumulate = options->accumulate_grad_batches,
        .max_epochs = options->max_epochs,
        .max_steps = options->max_steps,
        .min_steps = options->min_steps != NULL ? *options->min_steps : 0,
        .validates = val_batches > 0,
        .log_steps = options->log_every_n_steps,
        .max_seconds = options->max_time != NULL ? *options->max_time : (double)INFINITY,
    };

    /* min_steps alone implies one whole epoch. */
    schedule.min_epochs = options->min_epochs != NULL ? *options->min_epochs
                                                      : (options->min_steps != NULL ? 1 : 0);
    KilnStatus status = read_interval(options, &schedule, err);
    if (status >= 0)
        *ret = schedule;
    return status;
}

/* ---- What is due ----------------------------------------------------------------------------- */

int64_t kiln_loop_round_end(const KilnLoopSchedule *schedule, int64_t batch)
{
    const int64_t end = (batch / schedule->world + 1) * schedule->world;

    return schedule->world > 1 && end > schedule->batches ? schedule->batches : end;
}

int64_t kiln_loop_accumulate(const KilnLoopSchedule *schedule, int64_t epoch)
{
    int64_t batches = schedule->accumulate;

    for (size_t i = 0; i < schedule->n_changes && schedule->changes[i].epoch <= epoch; i++)
        batches = schedule->changes[i].batches;
    return batches * schedule->world;
}

bool kiln_loop_is_step(const KilnLoopSchedule *schedule, const KilnPosition *at, int64_t batch)
{
    const int64_t end = kiln_loop_round_end(schedule, batch);

    return at->in_group + (end - batch) >= kiln_loop_accumulate(schedule, at->epoch) ||
           end >= schedule->batches;
}

int64_t kiln_loop_epoch_steps(const KilnLoopSchedule *schedule, int64_t epoch)
{
    const int64_t accumulate = kiln_loop_accumulate(schedule, epoch);

    return (schedule->batches + accumulate - 1) / accumulate;
}

/* Count epochs and their steps from 0 until a limit is reached (-1: none), one stretch of equal
 * epochs after the other. */
static void count_until(const KilnLoopSchedule *schedule, int64_t epochs, int64_t steps,
                        int64_t *ret_epochs, int64_t *ret_steps)
{
    int64_t epoch = 0, step = 0;

    for (size_t i = 0; i <= schedule->n_changes; i++) {
        const bool last = i == schedule->n_changes;
        const int64_t each = kiln_loop_epoch_steps(schedule, epoch);
        int64_t n = last ? INT64_MAX : schedule->changes[i].epoch - epoch;

        if (epochs >= 0 && epochs - epoch < n)
            n = epochs - epoch;
        if (steps >= 0 && each > 0 && (steps - step + each - 1) / each < n)
            n = (steps - step + each - 1) / each;
        if (n <= 0)
            continue;
        epoch += n;
        step += n * each;
    }
    *ret_epochs = epoch;
    *ret_steps = steps >= 0 && step > steps ? steps : step;
}

int64_t kiln_loop_total_steps(const KilnLoopSchedule *schedule)
{
    int64_t epochs, steps;

    if (schedule->max_epochs < 0)
        return schedule->max_steps;
    count_until(schedule, schedule->max_epochs, schedule->max_steps, &epochs, &steps);
    return steps;
}

int64_t kiln_loop_total_epochs(const KilnLoopSchedule *schedule)
{
    int64_t epochs, steps;

    if (schedule->max_epochs >= 0 || schedule->max_steps < 0 || schedule->batches == 0)
        return schedule->max_epochs;
    count_until(schedule, -1, schedule->max_steps, &epochs, &steps);
    return epochs;
}

KilnProgress kiln_loop_progress(const KilnLoopSchedule *schedule, const KilnPosition *at)
{
    return (KilnProgress) {
        .step = at->step,
        .epoch = at->epoch,
        .steps_per_epoch = kiln_loop_epoch_steps(schedule, 0),
        .total_steps = kiln_loop_total_steps(schedule),
        .total_epochs = kiln_loop_total_epochs(schedule),
    };
}

double kiln_loop_validations(const KilnLoopSchedule *schedule)
{
    if (!schedule->validates || schedule->val_seconds > 0.0)
        return 0.0;
    if (schedule->val_over_epochs)
        return (double)schedule->batches / (double)schedule->val_batches;
    return (double)(schedule->batches / schedule->val_batches) / (double)schedule->val_epochs;
}

bool kiln_loop_validates_epochs(const KilnLoopSchedule *schedule)
{
    return !schedule->val_over_epochs && schedule->val_seconds <= 0.0 &&
           schedule->val_epochs == 1 && schedule->val_batches == schedule->batches;
}

bool kiln_loop_should_log(const KilnLoopSchedule *schedule, const KilnPosition *at)
{
    return schedule->log_steps > 0 && at->in_group == 0 && at->step % schedule->log_steps == 0;
}

/* Epochs that are over. */
static int64_t epochs_done(const KilnPosition *at)
{
    return at->epoch + (at->epoch_done ? 1 : 0);
}

static bool steps_are_done(const KilnLoopSchedule *schedule, const KilnPosition *at)
{
    return schedule->max_steps >= 0 && at->step >= schedule->max_steps;
}

/* Whether a request to stop is due: min_epochs and min_steps are done. */
static bool stop_is_due(const KilnLoopSchedule *schedule, const KilnPosition *at)
{
    return at->should_stop && epochs_done(at) >= schedule->min_epochs &&
           at->step >= schedule->min_steps;
}

bool kiln_loop_should_stop(const KilnLoopSchedule *schedule, const KilnPosition *at)
{
    return steps_are_done(schedule, at) || stop_is_due(schedule, at);
}

bool kiln_loop_is_last_epoch(const KilnLoopSchedule *schedule, const KilnPosition *at)
{
    /* A run that was killed where it stopped still has to end its epoch. */
    const bool ended = at->batches == 0 || at->last_end_batch == at->batches;

    return schedule->batches == 0 || (ended && kiln_loop_should_stop(schedule, at)) ||
           (schedule->max_epochs >= 0 && epochs_done(at) >= schedule->max_epochs);
}

bool kiln_loop_is_done(const KilnLoopSchedule *schedule, const KilnPosition *at)
{
    const bool at_end = !at->epoch_done && at->batch >= schedule->batches;

    return kiln_loop_should_stop(schedule, at) ||
           (schedule->max_epochs >= 0 &&
            epochs_done(at) + (at_end ? 1 : 0) >= schedule->max_epochs);
}

bool kiln_loop_should_validate(const KilnLoopSchedule *schedule, const KilnPosition *at,
                               double seconds)
{
    const int64_t done = schedule->val_over_epochs ? at->batches : at->batch;

    if (!schedule->validates || at->batches == 0 || at->last_val_batch == at->batches)
        return false;
    if (stop_is_due(schedule, at) ||
        (at->batch < schedule->batches && steps_are_done(schedule, at)))
        return true;
    if ((at->epoch + 1) % schedule->val_epochs != 0)
        return false;
    if (schedule->val_seconds > 0.0)
        return at->batch > 0 && seconds >= schedule->val_seconds;
    /* Whether the last round, of so many batches, has reached or passed the count. */
    const int64_t round = (at->batch - 1) % schedule->world + 1;
    return done > 0 && done % schedule->val_batches < round;
}

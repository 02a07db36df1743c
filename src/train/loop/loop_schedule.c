#include "train/loop/loop_schedule.h"

#include <math.h>

/* ---- From options -------------------------------------------------------------------- */

KilnStatus kiln_pace_limit(const char *name, KilnAmount limit, int64_t total, int64_t *ret,
                           KilnError *err)
{
    *ret = kiln_amount_of(limit, total);
    if (*ret == 0 && total > 0 && limit.value > 0.0)
        return kiln_error_set(
            err, KILN_E_RANGE,
            "trainer.%s=%g of %lld batches is less than one: write at least %.4g, "
            "or a count such as 1",
            name, limit.value, (long long)total, ceil(1e4 / (double)total) / 1e4);
    return KILN_OK;
}

static KilnStatus read_interval(const KilnTrainerOptions *options, KilnPace *pace, KilnError *err)
{
    const KilnAmount interval = options->val_check_interval;
    const int64_t *every = options->check_val_every_n_epoch;
    const bool over_epochs = every == NULL && options->fast_dev_run.value <= 0.0;

    pace->val_over_epochs = over_epochs;
    pace->val_epochs = every != NULL ? *every : 1;
    if (!(interval.value > 0.0))
        return kiln_error_set(err, KILN_E_RANGE,
                              "trainer.val_check_interval=0: more than nothing has to lie between "
                              "two validations; trainer.limit_val_batches=0 is none");
    if (interval.of == KILN_AMOUNT_TIME) {
        pace->val_seconds = interval.value;
        return KILN_OK;
    }
    if (interval.of == KILN_AMOUNT_SHARE && over_epochs)
        return kiln_error_set(err, KILN_E_RANGE,
                              "trainer.val_check_interval=%g is a share of an epoch, but "
                              "trainer.check_val_every_n_epoch=null counts batches over epochs: "
                              "write a number of batches",
                              interval.value);
    if (interval.of == KILN_AMOUNT_SHARE)
        pace->val_batches = (int64_t)((double)pace->batches * interval.value);
    else
        pace->val_batches = (int64_t)interval.value;
    if (interval.of == KILN_AMOUNT_SHARE && pace->val_batches < 1)
        pace->val_batches = 1;
    if (pace->validates && !over_epochs && pace->val_batches > pace->batches && pace->batches > 0)
        return kiln_error_set(
            err, KILN_E_RANGE,
            "trainer.val_check_interval=%lld is more than the %lld batches of an "
            "epoch: there would be no validation; with "
            "trainer.check_val_every_n_epoch=null batches are counted over epochs",
            (long long)pace->val_batches, (long long)pace->batches);
    return KILN_OK;
}

KilnStatus kiln_pace_make(const KilnTrainerOptions *options, int64_t batches, int64_t val_batches,
                          KilnPace *ret, KilnError *err)
{
    KilnPace pace = {
        .batches = batches,
        .accumulate = options->accumulate_grad_batches,
        .max_epochs = options->max_epochs,
        .max_steps = options->max_steps,
        .min_steps = options->min_steps != NULL ? *options->min_steps : 0,
        .validates = val_batches > 0,
        .log_steps = options->log_every_n_steps,
        .max_seconds = options->max_time != NULL ? *options->max_time : (double)INFINITY,
    };

    /* Steps alone ask for one whole epoch, too. */
    pace.min_epochs = options->min_epochs != NULL ? *options->min_epochs
                                                  : (options->min_steps != NULL ? 1 : 0);
    KilnStatus status = read_interval(options, &pace, err);
    if (status >= 0)
        *ret = pace;
    return status;
}

/* ---- Turns ----------------------------------------------------------------------------- */

int64_t kiln_pace_accumulate(const KilnPace *pace, int64_t epoch)
{
    int64_t batches = pace->accumulate;

    for (size_t i = 0; i < pace->n_changes && pace->changes[i].epoch <= epoch; i++)
        batches = pace->changes[i].batches;
    return batches;
}

bool kiln_pace_steps(const KilnPace *pace, const KilnPosition *at, int64_t batch)
{
    return at->in_group + 1 >= kiln_pace_accumulate(pace, at->epoch) || batch + 1 >= pace->batches;
}

int64_t kiln_pace_epoch_steps(const KilnPace *pace, int64_t epoch)
{
    const int64_t accumulate = kiln_pace_accumulate(pace, epoch);

    return (pace->batches + accumulate - 1) / accumulate;
}

/* Go over the epochs from 0 until there are `epochs` of them or the steps are `steps`, one stretch
 * of equal epochs after the other; -1: no such limit. */
static void count_up(const KilnPace *pace, int64_t epochs, int64_t steps, int64_t *ret_epochs,
                     int64_t *ret_steps)
{
    int64_t epoch = 0, step = 0;

    for (size_t i = 0; i <= pace->n_changes; i++) {
        const bool last = i == pace->n_changes;
        const int64_t each = kiln_pace_epoch_steps(pace, epoch);
        int64_t n = last ? INT64_MAX : pace->changes[i].epoch - epoch;

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

int64_t kiln_pace_total_steps(const KilnPace *pace)
{
    int64_t epochs, steps;

    if (pace->max_epochs < 0)
        return pace->max_steps;
    count_up(pace, pace->max_epochs, pace->max_steps, &epochs, &steps);
    return steps;
}

int64_t kiln_pace_total_epochs(const KilnPace *pace)
{
    int64_t epochs, steps;

    if (pace->max_epochs >= 0 || pace->max_steps < 0 || pace->batches == 0)
        return pace->max_epochs;
    count_up(pace, -1, pace->max_steps, &epochs, &steps);
    return epochs;
}

double kiln_pace_validations(const KilnPace *pace)
{
    if (!pace->validates || pace->val_seconds > 0.0)
        return 0.0;
    if (pace->val_over_epochs)
        return (double)pace->batches / (double)pace->val_batches;
    return (double)(pace->batches / pace->val_batches) / (double)pace->val_epochs;
}

bool kiln_pace_validates_epochs(const KilnPace *pace)
{
    return !pace->val_over_epochs && pace->val_seconds <= 0.0 && pace->val_epochs == 1 &&
           pace->val_batches == pace->batches;
}

bool kiln_pace_logs(const KilnPace *pace, const KilnPosition *at)
{
    return pace->log_steps > 0 && at->in_group == 0 && at->step % pace->log_steps == 0;
}

/* Epochs that are over. */
static int64_t epochs_of(const KilnPosition *at)
{
    return at->epoch + (at->epoch_done ? 1 : 0);
}

static bool steps_are_done(const KilnPace *pace, const KilnPosition *at)
{
    return pace->max_steps >= 0 && at->step >= pace->max_steps;
}

/* Somebody asked for the end of training, and it counts by now. */
static bool stops_as_asked(const KilnPace *pace, const KilnPosition *at)
{
    return at->should_stop && epochs_of(at) >= pace->min_epochs && at->step >= pace->min_steps;
}

bool kiln_pace_stops(const KilnPace *pace, const KilnPosition *at)
{
    return steps_are_done(pace, at) || stops_as_asked(pace, at);
}

bool kiln_pace_ends(const KilnPace *pace, const KilnPosition *at)
{
    /* A run that was killed where it stopped has the end of its epoch before it. */
    const bool ended = at->batches == 0 || at->last_end_batch == at->batches;

    return pace->batches == 0 || (ended && kiln_pace_stops(pace, at)) ||
           (pace->max_epochs >= 0 && epochs_of(at) >= pace->max_epochs);
}

bool kiln_pace_is_done(const KilnPace *pace, const KilnPosition *at)
{
    const bool at_end = !at->epoch_done && at->batch >= pace->batches;

    return kiln_pace_stops(pace, at) ||
           (pace->max_epochs >= 0 && epochs_of(at) + (at_end ? 1 : 0) >= pace->max_epochs);
}

bool kiln_pace_validates(const KilnPace *pace, const KilnPosition *at, double seconds)
{
    const int64_t done = pace->val_over_epochs ? at->batches : at->batch;

    if (!pace->validates || at->batches == 0 || at->last_val_batch == at->batches)
        return false;
    if (stops_as_asked(pace, at) || (at->batch < pace->batches && steps_are_done(pace, at)))
        return true;
    if ((at->epoch + 1) % pace->val_epochs != 0)
        return false;
    if (pace->val_seconds > 0.0)
        return at->batch > 0 && seconds >= pace->val_seconds;
    return done > 0 && done % pace->val_batches == 0;
}

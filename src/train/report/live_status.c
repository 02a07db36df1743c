/* Publishes a run on its live page: the position batch by batch, rates a few times a second. */
#include "train/report/live_status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/system/file.h"
#include "base/system/process_registry.h"
#include "kiln/tools/clock.h"
#include "train/report/run_messages.h"
#include "train/trainer.h"

static const double rates_interval_s = 0.2; /* between two publications of rates */

static double wall_clock(void)
{
    struct timespec at = { 0 };

    clock_gettime(CLOCK_REALTIME, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* The overrides, as far as they fit. */
static void write_label(const KilnTrainer *trainer, char *label, size_t size)
{
    const char *const *words = trainer->env->overrides;
    size_t used = 0;

    label[0] = '\0';
    for (size_t i = 0; words != NULL && words[i] != NULL && used < size; i++) {
        int more = snprintf(label + used, size - used, "%s%s", i > 0 ? " " : "", words[i]);

        used += more > 0 ? (size_t)more : 0;
    }
}

void kiln_live_status_begin(KilnTrainer *trainer)
{
    KilnLiveRun run = {
        .started = wall_clock(),
        .max_epochs = kiln_loop_total_epochs(&trainer->schedule),
        .max_steps = kiln_loop_total_steps(&trainer->schedule),
    };
    KilnError err = { 0 };

    write_label(trainer, run.label, sizeof(run.label));
    if (kiln_live_page_open(trainer->run_dir, &run, &trainer->live.page, &err) < 0)
        kiln_output_print(&trainer->output, "warning: %s: other programs can't watch this run",
                          err.text);
    (void)kiln_process_registry_add(trainer->run_dir);
    trainer->live.first_batch = trainer->at.batches;
    trainer->live.last_phase = KILN_LIVE_STARTING;
    trainer->live.rates_written = 0.0;
    trainer->live.loss = (double)NAN;
    kiln_live_status_update(trainer, kiln_clock());
}

/* ---- Rates ---------------------------------------------------------------------------- */

/* Training batches until the end; negative: no end is set. */
static double batches_left(const KilnTrainer *trainer)
{
    const KilnLoopSchedule *schedule = &trainer->schedule;
    double left = -1.0;

    if (trainer->phase == KILN_PHASE_TEST)
        return left;
    if (schedule->max_epochs >= 0)
        left = (double)schedule->batches * (double)(schedule->max_epochs - trainer->at.epoch) -
               (double)trainer->at.batch;
    if (schedule->max_steps >= 0) {
        double by_steps = (double)(schedule->max_steps - trainer->at.step) *
                          (double)kiln_loop_accumulate(schedule, trainer->at.epoch);

        if (left < 0.0 || by_steps < left)
            left = by_steps;
    }
    return left;
}

/* Seconds until the run ends, extrapolated from this session with its validations; negative:
 * unknown. */
static double seconds_left(const KilnTrainer *trainer, double now)
{
    const int64_t done = trainer->at.batches - trainer->live.first_batch;
    const double left = batches_left(trainer), spent = now - trainer->timing.train_start;
    double until = done > 0 && left >= 0.0 ? left * spent / (double)done : -1.0;

    if (isfinite(trainer->schedule.max_seconds) && trainer->timing.train_start > 0.0) {
        double by_time = trainer->schedule.max_seconds - spent;

        if (until < 0.0 || by_time < until)
            until = by_time > 0.0 ? by_time : 0.0;
    }
    return until;
}

/* Warn once when the page was truncated. */
static void warn_of_truncation(KilnTrainer *trainer)
{
    if (trainer->live.page_lost_reported || !kiln_live_page_lost(trainer->live.page))
        return;
    trainer->live.page_lost_reported = true;
    kiln_output_print(&trainer->output,
                      "warning: %s/.kiln/live was truncated by another program: kiln top can't "
                      "show this run any more; training continues",
                      kiln_path_near(trainer->run_dir));
}

static void write_rates(KilnTrainer *trainer, double now)
{
    KilnLiveRates rates = {
        .samples_per_s = trainer->live.samples_per_s,
        .left_s = seconds_left(trainer, now),
        .loss = trainer->live.loss,
        .samples = trainer->at.samples,
        .written = wall_clock(),
    };
    const KilnMetric *metrics;
    size_t n = kiln_metrics_list(trainer->metrics, &metrics);

    for (size_t i = 0; i < n && rates.n_metrics < KILN_LIVE_METRICS; i++)
        if ((metrics[i].flags & KILN_LOG_PROG_BAR) != 0) {
            snprintf(rates.metrics[rates.n_metrics].name, KILN_LIVE_NAME, "%s", metrics[i].name);
            rates.metrics[rates.n_metrics++].value = metrics[i].value;
        }
    kiln_live_page_write_rates(trainer->live.page, &rates);
}

double kiln_trainer_seconds_left(const KilnTrainer *trainer)
{
    return seconds_left(trainer, kiln_clock());
}

/* ---- Publishing ------------------------------------------------------------------------- */

static int32_t live_phase(const KilnTrainer *trainer)
{
    static const int32_t phases[] = {
        [KILN_PHASE_FIT] = KILN_LIVE_FIT,         [KILN_PHASE_VALIDATE] = KILN_LIVE_VALIDATE,
        [KILN_PHASE_TEST] = KILN_LIVE_TEST,       [KILN_PHASE_SANITY] = KILN_LIVE_SANITY,
        [KILN_PHASE_PREDICT] = KILN_LIVE_PREDICT,
    };

    return trainer->live.last_phase != KILN_LIVE_FIT ? trainer->live.last_phase
                                                     : phases[trainer->phase];
}

void kiln_live_status_update(KilnTrainer *trainer, double now)
{
    const bool evaluates = trainer->phase != KILN_PHASE_FIT;
    const KilnLivePosition at = {
        .phase = live_phase(trainer),
        .in_group = (int32_t)trainer->at.in_group,
        .accumulate = (int32_t)kiln_loop_accumulate(&trainer->schedule, trainer->at.epoch),
        .stopping = trainer->state.interrupted ? 1 : 0,
        .epoch = trainer->at.epoch,
        .step = trainer->at.step,
        .batch = trainer->at.batch,
        .batches = trainer->schedule.batches,
        .eval_batch = evaluates ? trainer->eval.batch : 0,
        .evals = evaluates ? trainer->eval.batches : 0,
    };

    if (trainer->live.page == NULL)
        return;
    kiln_live_page_write_position(trainer->live.page, &at);
    warn_of_truncation(trainer);
    /* At the beginning of an epoch the rate of the previous one stays. */
    if (!evaluates && trainer->timing.phase_samples > 0)
        trainer->live.samples_per_s = kiln_trainer_samples_per_s(trainer);
    if (now - trainer->live.rates_written < rates_interval_s)
        return;
    trainer->live.rates_written = now;
    write_rates(trainer, now);
}

void kiln_live_status_phase(KilnTrainer *trainer, KilnLivePhase phase)
{
    trainer->live.last_phase = (int32_t)phase;
    trainer->live.rates_written = 0.0;
    kiln_live_status_update(trainer, kiln_clock());
}

void kiln_live_status_end(KilnTrainer *trainer)
{
    if (trainer->live.page == NULL)
        return;
    kiln_process_registry_remove();
    kiln_live_page_close(trainer->live.page);
    trainer->live.page = NULL;
}

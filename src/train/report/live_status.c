/* What a run tells its live page: where it is, batch by batch, and some times a second how fast. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/system/file.h"
#include "base/system/process_registry.h"
#include "train/run/run_folder.h"
#include "train/trainer.h"

static const double rates_s = 0.2; /* between two looks at the rates */

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

void kiln_telling_begin(KilnTrainer *trainer)
{
    KilnLiveRun run = {
        .started = wall_clock(),
        .max_epochs = kiln_pace_total_epochs(&trainer->pace),
        .max_steps = kiln_pace_total_steps(&trainer->pace),
    };
    KilnError err = { 0 };

    write_label(trainer, run.label, sizeof(run.label));
    if (kiln_live_open(trainer->run_dir, &run, &trainer->telling.page, &err) < 0)
        kiln_output_print(&trainer->output, "warning: %s: other programs can't watch this run",
                          err.text);
    (void)kiln_presence_enter(trainer->run_dir);
    trainer->telling.first_batch = trainer->at.batches;
    trainer->telling.last_phase = KILN_LIVE_STARTS;
    trainer->telling.told = 0.0;
    trainer->telling.loss = (double)NAN;
    kiln_telling_tell(trainer, kiln_clock());
}

/* ---- Rates ---------------------------------------------------------------------------- */

/* Batches of training until the end; negative: there is no end in sight. */
static double batches_left(const KilnTrainer *trainer)
{
    const KilnPace *pace = &trainer->pace;
    double left = -1.0;

    if (trainer->phase == KILN_PHASE_TEST)
        return left;
    if (pace->max_epochs >= 0)
        left = (double)pace->batches * (double)(pace->max_epochs - trainer->at.epoch) -
               (double)trainer->at.batch;
    if (pace->max_steps >= 0) {
        double by_steps = (double)(pace->max_steps - trainer->at.step) *
                          (double)kiln_pace_accumulate(pace, trainer->at.epoch);

        if (left < 0.0 || by_steps < left)
            left = by_steps;
    }
    return left;
}

/* Until the run ends, validations and all as they were so far in this session. */
static double seconds_left(const KilnTrainer *trainer, double now)
{
    const int64_t done = trainer->at.batches - trainer->telling.first_batch;
    const double left = batches_left(trainer), spent = now - trainer->timing.trained;
    double until = done > 0 && left >= 0.0 ? left * spent / (double)done : -1.0;

    if (isfinite(trainer->pace.max_seconds) && trainer->timing.trained > 0.0) {
        double by_time = trainer->pace.max_seconds - spent;

        if (until < 0.0 || by_time < until)
            until = by_time > 0.0 ? by_time : 0.0;
    }
    return until;
}

/* Say once that nobody can watch the run any more. */
static void warn_of_loss(KilnTrainer *trainer)
{
    if (trainer->telling.lost || !kiln_live_lost(trainer->telling.page))
        return;
    trainer->telling.lost = true;
    kiln_output_print(&trainer->output,
                      "warning: %s/.kiln/live was cut short by another program: kiln top can't "
                      "show this run any more; training goes on",
                      kiln_path_near(trainer->run_dir));
}

static void tell_rates(KilnTrainer *trainer, double now)
{
    KilnLiveRates rates = {
        .samples_per_s = trainer->telling.samples_per_s,
        .left_s = seconds_left(trainer, now),
        .loss = trainer->telling.loss,
        .samples = trainer->at.samples,
        .told = wall_clock(),
    };
    const KilnMetric *metrics;
    size_t n = kiln_metrics_list(trainer->metrics, &metrics);

    for (size_t i = 0; i < n && rates.n_metrics < KILN_LIVE_METRICS; i++)
        if ((metrics[i].flags & KILN_LOG_PROG_BAR) != 0) {
            snprintf(rates.metrics[rates.n_metrics].name, KILN_LIVE_NAME, "%s", metrics[i].name);
            rates.metrics[rates.n_metrics++].value = metrics[i].value;
        }
    kiln_live_tell_rates(trainer->telling.page, &rates);
}

double kiln_trainer_seconds_left(const KilnTrainer *trainer)
{
    return seconds_left(trainer, kiln_clock());
}

/* ---- Telling ---------------------------------------------------------------------------- */

static int32_t live_phase(const KilnTrainer *trainer)
{
    static const int32_t phases[] = {
        [KILN_PHASE_FIT] = KILN_LIVE_FIT,         [KILN_PHASE_VALIDATE] = KILN_LIVE_VALIDATE,
        [KILN_PHASE_TEST] = KILN_LIVE_TEST,       [KILN_PHASE_SANITY] = KILN_LIVE_SANITY,
        [KILN_PHASE_PREDICT] = KILN_LIVE_PREDICT,
    };

    return trainer->telling.last_phase != KILN_LIVE_FIT ? trainer->telling.last_phase
                                                        : phases[trainer->phase];
}

void kiln_telling_tell(KilnTrainer *trainer, double now)
{
    const bool evaluates = trainer->phase != KILN_PHASE_FIT;
    const KilnLiveAt at = {
        .phase = live_phase(trainer),
        .in_group = (int32_t)trainer->at.in_group,
        .accumulate = (int32_t)kiln_pace_accumulate(&trainer->pace, trainer->at.epoch),
        .stopping = trainer->interrupted ? 1 : 0,
        .epoch = trainer->at.epoch,
        .step = trainer->at.step,
        .batch = trainer->at.batch,
        .batches = trainer->pace.batches,
        .eval_batch = evaluates ? trainer->eval_batch : 0,
        .evals = evaluates ? trainer->eval_batches : 0,
    };

    if (trainer->telling.page == NULL)
        return;
    kiln_live_tell(trainer->telling.page, &at);
    warn_of_loss(trainer);
    /* An epoch that begins has none yet: that of the one before is told meanwhile. */
    if (!evaluates && trainer->timing.phase_samples > 0)
        trainer->telling.samples_per_s = kiln_trainer_samples_per_s(trainer);
    if (now - trainer->telling.told < rates_s)
        return;
    trainer->telling.told = now;
    tell_rates(trainer, now);
}

void kiln_telling_phase(KilnTrainer *trainer, KilnLivePhase phase)
{
    trainer->telling.last_phase = (int32_t)phase;
    trainer->telling.told = 0.0;
    kiln_telling_tell(trainer, kiln_clock());
}

void kiln_telling_end(KilnTrainer *trainer)
{
    if (trainer->telling.page == NULL)
        return;
    kiln_presence_leave();
    kiln_live_close(trainer->telling.page);
    trainer->telling.page = NULL;
}

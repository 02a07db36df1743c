/* Lays out a simulated sweep: what it cost, and how good its best trial is. */
#include "cli/sweep/simulate_page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cli/screen/screen.h"
#include "kiln/tools/clock.h"

enum { LABEL = 14 };

double kiln_simulated_value(const KilnSimulatedSweep *sweep, double loss)
{
    return sweep->curves.objective.mode == KILN_MODE_MAX ? -loss : loss;
}

static void put_head(const KilnSimulatedSweep *sweep, const char *source, KilnPage *page)
{
    const KilnCurves *curves = &sweep->curves;

    kiln_text_printf(&page->text, "%zu recorded jobs of %s", curves->count, source);
    if (curves->left_out > 0)
        kiln_text_printf(&page->text, " (%zu more have no whole curve)", curves->left_out);
    kiln_text_printf(&page->text, ": %s%s%s, %zu at a time\n", sweep->sweeper,
                     sweep->pruner != NULL ? " with " : "",
                     sweep->pruner != NULL ? sweep->pruner : "", sweep->workers);
}

/* ---- One run --------------------------------------------------------------------------------- */

static void put_event(const KilnSimulatedSweep *sweep, const KilnSimulatedRun *run,
                      const KilnSimulatedEvent *event, KilnPage *page)
{
    const KilnTrial *trial = run->simulated->history.trials[event->trial];
    char time[KILN_UNIT_TEXT];

    kiln_text_printf(&page->text, "  %8s  #%zu ", kiln_clock_text(event->time, time), event->trial);
    switch (event->kind) {
    case KILN_SIMULATED_START:
        kiln_text_printf(&page->text, "starts: %s",
                         sweep->curves.curves[run->curves[event->trial]].name);
        if (trial->parent != KILN_NO_TRIAL)
            kiln_text_printf(&page->text, ", from #%zu", trial->parent);
        break;
    case KILN_SIMULATED_RESUME:
        kiln_text_printf(&page->text, "resumes after epoch %lld", (long long)event->epoch);
        break;
    case KILN_SIMULATED_STOP:
        kiln_text_printf(&page->text, "%.6g, stopped %s", event->value, event->reason);
        break;
    case KILN_SIMULATED_END:
        kiln_text_printf(&page->text, "%.6g, ends after epoch %lld", event->value,
                         (long long)event->epoch);
        break;
    }
    kiln_text_append(&page->text, "\n");
}

/* Share of `whole` as a percentage; whole may be 0. */
static double percent(double part, double whole)
{
    return whole > 0.0 ? 100.0 * part / whole : 0.0;
}

static void put_cost(const KilnSimulatedSweep *sweep, const KilnSimulatedRun *run, KilnPage *page)
{
    const KilnSimulated *simulated = run->simulated;
    const double workers = (double)sweep->workers, room = simulated->seconds * workers;
    char a[KILN_UNIT_TEXT], b[KILN_UNIT_TEXT];

    kiln_page_pair(page, LABEL, "jobs", "%zu: %zu stopped early, %zu ran to their end",
                   simulated->history.count, simulated->stopped,
                   simulated->history.count - simulated->stopped);
    if (simulated->resumed > 0)
        kiln_page_pair(page, LABEL, "resumed", "%zu times", simulated->resumed);
    kiln_page_pair(page, LABEL, "epochs", "%s of the %s of whole jobs, %.3g %%",
                   kiln_commas_text(simulated->epochs, a), kiln_commas_text(run->whole_epochs, b),
                   percent((double)simulated->epochs, (double)run->whole_epochs));
    kiln_page_pair(page, LABEL, "time", "%s; whole jobs would take %s; workers were idle %.2g %%",
                   kiln_seconds_text(simulated->seconds, a),
                   kiln_seconds_text(run->whole_seconds / workers, b),
                   percent(room - simulated->busy, room));
}

static void put_best(const KilnSimulatedSweep *sweep, const KilnSimulatedRun *run, KilnPage *page)
{
    const size_t best = run->simulated->best;

    if (best == KILN_NO_TRIAL) {
        kiln_page_pair(page, LABEL, "best", "no job ran to its end");
        return;
    }
    kiln_page_pair(page, LABEL, "best", "%.6g, #%zu (%s)", kiln_simulated_value(sweep, run->best),
                   best, sweep->curves.curves[run->curves[best]].name);
    kiln_page_pair(page, LABEL, "missed", "%.6g was the best of these jobs, %.6g of all recorded",
                   kiln_simulated_value(sweep, run->tried),
                   kiln_simulated_value(sweep, sweep->least));
}

static void put_run(const KilnSimulatedSweep *sweep, bool decisions, KilnPage *page)
{
    const KilnSimulatedRun *run = &sweep->runs[0];

    for (size_t i = 0; decisions && i < run->simulated->n_events; i++)
        put_event(sweep, run, &run->simulated->events[i], page);
    put_cost(sweep, run, page);
    put_best(sweep, run, page);
}

/* ---- Several runs ---------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Numbers of the runs, in ascending order. */
static double quantile(const double *sorted, size_t n, double q)
{
    const double at = q * (double)(n - 1);
    const size_t low = (size_t)at, high = low + 1 < n ? low + 1 : low;

    return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

static void put_quantiles(double *numbers, size_t n, const char *label, const char *unit,
                          KilnPage *page)
{
    qsort(numbers, n, sizeof(*numbers), compare);
    kiln_page_pair(page, LABEL, label, "%.4g%s (quartiles %.4g, %.4g)", quantile(numbers, n, 0.5),
                   unit, quantile(numbers, n, 0.25), quantile(numbers, n, 0.75));
}

static void put_runs(const KilnSimulatedSweep *sweep, double *numbers, KilnPage *page)
{
    const size_t n = sweep->n_runs;
    size_t found = 0;

    kiln_text_printf(&page->text, "medians of %zu runs with seeds from %lld on\n", n,
                     (long long)sweep->runs[0].seed);
    for (size_t i = 0; i < n; i++)
        numbers[i] = (double)sweep->runs[i].simulated->epochs;
    put_quantiles(numbers, n, "epochs", "", page);
    for (size_t i = 0; i < n; i++)
        numbers[i] = percent((double)sweep->runs[i].simulated->epochs,
                             (double)sweep->runs[i].whole_epochs);
    put_quantiles(numbers, n, "", " % of those of whole jobs", page);
    for (size_t i = 0; i < n; i++)
        numbers[i] = sweep->runs[i].simulated->seconds;
    put_quantiles(numbers, n, "time", " s", page);
    for (size_t i = 0; i < n; i++)
        numbers[i] = kiln_simulated_value(sweep, sweep->runs[i].best);
    put_quantiles(numbers, n, "best", "", page);
    for (size_t i = 0; i < n; i++)
        numbers[i] = sweep->runs[i].best - sweep->runs[i].tried;
    put_quantiles(numbers, n, "missed by", "", page);
    for (size_t i = 0; i < n; i++)
        found += sweep->runs[i].best <= sweep->runs[i].tried;
    kiln_page_pair(page, LABEL, "found",
                   "the best of the jobs that it tried in %.3g %% of the runs",
                   percent((double)found, (double)n));
}

KilnStatus kiln_simulated_print(const KilnSimulatedSweep *sweep, const char *source, bool decisions,
                                KilnError *err)
{
    KilnPage page = kiln_screen_page();
    double *numbers = calloc(sweep->n_runs, sizeof(*numbers));

    if (numbers == NULL)
        return kiln_error_nomem(err, sweep->n_runs);
    put_head(sweep, source, &page);
    if (sweep->n_runs > 1)
        put_runs(sweep, numbers, &page);
    else
        put_run(sweep, decisions, &page);
    free(numbers);
    return kiln_screen_print(&page) == 0 ? KILN_OK : kiln_error_nomem(err, 1);
}

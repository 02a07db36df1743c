/* What recording costs a sweep: the journal of 100 trials with 10 reports each, on disk when a
 * trial has ended, and a median pruner that is asked after each report.
 *
 *     build/release/bench/search/recording [FOLDER [ROUNDS]]
 *
 * The folder is made and removed again (default: ./recording.tmp); its disk decides how long a sync
 * takes. Prints milliseconds a trial, the median of the rounds; optuna_recording.py does the same
 * with Optuna's storages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/journal.h"
#include "kiln/tools/clock.h"
#include "sweep/records.h"
#include "tests/support/components/built_component.h"

enum { TRIALS = 100, REPORTS = 10, MOST_ROUNDS = 101 };

static void check(KilnStatus status, const KilnError *err)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

/* The jobs, and the same as trials. */
typedef struct Sweep {
    KilnJobs jobs;
    KilnTrial trials[TRIALS];
    const KilnTrial *list[TRIALS];
    KilnSpace space;
    KilnObjective objective;
    const KilnObjective *objectives[1];
    KilnHistory history;
} Sweep;

static void record_trial(Sweep *sweep, KilnJournal *journal, const KilnPrunerOps *ops,
                         KilnInstance *pruner)
{
    const size_t n = sweep->history.count++;
    char lr[32], reason[KILN_SWEEP_REASON];
    const char *const overrides[] = { lr, "model=mlp", NULL };
    const KilnMode modes[] = { KILN_MODE_MIN };
    KilnError err = { 0 };

    snprintf(lr, sizeof(lr), "lr=%.17g", 0.001 * (double)(n + 1));
    KilnJob *job = kiln_jobs_add(&sweep->jobs, overrides, 2, "0");
    sweep->trials[n] =
        (KilnTrial) { .job = n, .status = KILN_JOB_RUNNING, .parent = KILN_NO_TRIAL };
    sweep->list[n] = &sweep->trials[n];
    check(kiln_journal_append(journal, kiln_record_submitted(n, job), &err), &err);
    check(kiln_journal_append(journal, kiln_record_started(n, job, 1), &err), &err);
    for (int64_t epoch = 1; epoch <= REPORTS; epoch++) {
        const double value = 1.0 / (double)epoch + 0.01 * (double)(n * 37 % 100);
        const double values[KILN_MAX_OBJECTIVES] = { value };
        const KilnTrialReport *report = kiln_job_add_report(&sweep->jobs.arena, job, epoch,
                                                            100 * epoch, values);

        sweep->trials[n].reports = (const KilnTrialReport *const *)job->reports;
        sweep->trials[n].n_reports = job->n_reports;
        check(kiln_journal_append(journal, kiln_record_reported(n, report, modes, 1), &err), &err);
        (void)ops->prune(pruner, &sweep->history, n, reason);
    }
    job->status = sweep->trials[n].status = KILN_JOB_OK;
    check(kiln_journal_append(journal, kiln_record_ended(n, job, 1.0), &err), &err);
    check(kiln_journal_sync(journal, &err), &err);
}

static double run(const char *folder, KilnInstance *pruner)
{
    static Sweep sweep;
    const KilnPrunerOps *ops = kiln_instance_component(pruner)->ops.pruner;
    char path[4096];
    KilnJournal *journal = NULL;
    KilnError err = { 0 };

    memset(&sweep, 0, sizeof(sweep));
    sweep.objective = (KilnObjective) { .metric = "val/loss", .mode = KILN_MODE_MIN };
    sweep.objectives[0] = &sweep.objective;
    sweep.history = (KilnHistory) { .space = &sweep.space,
                                    .objectives = sweep.objectives,
                                    .n_objectives = 1,
                                    .trials = sweep.list };
    (void)mkdir(folder, 0777);
    check(kiln_journal_open(folder, &journal, &err), &err);
    const double start = kiln_clock();
    for (int i = 0; i < TRIALS; i++)
        record_trial(&sweep, journal, ops, pruner);
    const double seconds = kiln_clock() - start;
    kiln_journal_close(journal);
    kiln_jobs_release(&sweep.jobs);
    snprintf(path, sizeof(path), "%s/%s", folder, KILN_JOURNAL_FILE);
    (void)unlink(path);
    (void)rmdir(folder);
    return 1e3 * seconds / TRIALS;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "recording.tmp";
    const size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 11;
    double times[MOST_ROUNDS];
    Built pruner;
    KilnError err = { 0 };

    if (rounds < 1 || rounds > MOST_ROUNDS)
        return 1;
    check(build_words(&pruner, KILN_KIND_PRUNER, "percentile", NULL, 0, &err), &err);
    for (size_t i = 0; i < rounds; i++)
        times[i] = run(folder, pruner.instance);
    qsort(times, rounds, sizeof(*times), compare);
    printf("%d trials with %d reports: %.3f ms a trial (%.3f to %.3f)\n", TRIALS, REPORTS,
           times[rounds / 2], times[0], times[rounds - 1]);
    built_free(&pruner);
    return 0;
}

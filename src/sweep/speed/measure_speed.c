/* kiln.launcher.n_jobs=0: measures how many jobs at a time train fastest, with the first job, and
 * records it. A resumed sweep takes what was recorded, since the number of threads can change the
 * bytes of a job. */
#include <math.h>
#include <stdlib.h>

#include "base/parse.h"
#include "kiln/usage.h"
#include "sweep/launching.h"
#include "sweep/speed/speed_processes.h"

/* What the measured job needs. */
typedef struct Needs {
    size_t processors, threads; /* 0: its share */
    int64_t memory;             /* bytes; 0: not known */
} Needs;

/* The number of threads that the config gives a job; 0: its share. */
static size_t threads_of(const KilnConfig *config)
{
    char *text = NULL;
    int64_t threads = 0;

    if (kiln_config_text(config, "trainer.threads", &text, NULL) < 0 ||
        kiln_parse_i64(text, &threads, NULL) < 0 || threads < 0)
        threads = 0;
    free(text);
    return (size_t)threads;
}

/* More jobs than this will not run at a time: there are no more. Of a sweeper that learns its
 * option n_trials says so, if it has that. */
static size_t most_jobs(const KilnLaunching *launching)
{
    const KilnSweep *sweep = launching->sweep;
    char *text = NULL;
    int64_t n_trials = 0;
    size_t most = launching->display.to_run;

    if (sweep->learns) {
        const bool known = kiln_config_text(sweep->config, "kiln.sweeper.n_trials", &text, NULL) >=
                               0 &&
                           kiln_parse_i64(text, &n_trials, NULL) >= 0 && n_trials > 0;

        most = known ? (size_t)n_trials : SIZE_MAX;
        free(text);
    }
    return most <= SIZE_MAX / (size_t)sweep->options->repeats
               ? most * (size_t)sweep->options->repeats
               : most;
}

static void list(const KilnLaunching *launching, const Needs *needs, int64_t available,
                 KilnDivisions *ret)
{
    size_t most = most_jobs(launching);

    ret->all_jobs = most;
    if (needs->memory > 0 && available >= 0 && (size_t)(available / needs->memory) < most)
        most = (size_t)(available / needs->memory);
    kiln_divisions_list(launching->sweep->processors, needs->processors, most, ret);
    for (size_t i = 0; i < ret->count && needs->threads > 0; i++)
        ret->items[i].threads = needs->threads;
}

/* What one process took is what each of several will take. */
static void list_again(const KilnLaunching *launching, Needs needs, int64_t peak, int64_t available,
                       KilnDivisions *divisions)
{
    const KilnDivision first = divisions->items[0];

    if (needs.memory == 0)
        needs.memory = peak;
    list(launching, &needs, available, divisions);
    divisions->items[0] = first;
}

/* False: the user has stopped the sweep. */
static bool measure(KilnLaunching *launching, KilnConfig *config, size_t number,
                    KilnDivisions *divisions)
{
    KilnSweep *sweep = launching->sweep;
    const size_t threads = threads_of(config), cpus = (size_t)sweep->jobs.items[number].needs.cpus;
    const Needs each = { .processors = cpus > threads ? cpus : threads,
                         .threads = threads,
                         .memory = sweep->jobs.items[number].needs.memory };
    const int64_t available = kiln_usage_now().available;
    bool whole = true;

    list(launching, &each, available, divisions);
    if (divisions->count < 2)
        return true;
    kiln_display_print(&launching->display, "measuring how many jobs at a time train fastest");
    for (size_t i = 0; i < divisions->count && whole; i++) {
        int64_t peak = 0;

        whole = kiln_speed_measure(sweep, config, number, &divisions->items[i], &peak);
        if (i == 0)
            list_again(launching, each, peak, available, divisions);
    }
    return whole;
}

/* One job at a time, where nothing could be measured or there is nothing to choose. */
static const KilnDivision *choose(const KilnDivisions *divisions)
{
    const KilnDivision *fastest = kiln_divisions_fastest(divisions);

    return fastest != NULL ? fastest : &divisions->items[0];
}

static KilnStatus conclude(KilnLaunching *launching, const KilnDivisions *divisions, KilnError *err)
{
    KilnSweep *sweep = launching->sweep;
    const KilnDivision *chosen = choose(divisions);
    KilnText text = { 0 };

    sweep->division = *chosen;
    launching->display.at_once = kiln_sweep_at_once(sweep);
    if (chosen->failed[0] != '\0' || !isnan(chosen->steps_per_s))
        kiln_divisions_text(divisions, chosen, &text);
    if (text.length > 0)
        kiln_display_print(&launching->display, "%s", text.data);
    const bool failed = text.failed;
    kiln_text_release(&text);
    if (failed)
        return kiln_error_nomem(err, 1);
    const KilnStatus status = kiln_journal_append(sweep->journal,
                                                  kiln_record_measured(divisions, chosen), err);
    return status >= 0 ? kiln_journal_sync(sweep->journal, err) : status;
}

KilnStatus kiln_launching_divide(KilnLaunching *launching, KilnError *err)
{
    KilnSweep *sweep = launching->sweep;
    KilnDivisions divisions = { .all_jobs = SIZE_MAX };
    KilnConfig *config = NULL;
    KilnError wrong = { 0 };
    bool any = false, whole = true;
    size_t number;

    if (sweep->n_jobs > 0 || sweep->division.n_jobs > 0)
        return KILN_OK;
    KilnStatus status = kiln_launching_first(launching, &any, &number, err);
    if (status < 0 || !any)
        return status;
    if (kiln_sweep_config_of(sweep, number, &config, &wrong) >= 0 &&
        kiln_job_read_needs(&sweep->jobs.items[number], config, &wrong) >= 0)
        whole = measure(launching, config, number, &divisions);
    else
        kiln_divisions_list(sweep->processors, 0, 1, &divisions); /* the job says why */
    kiln_config_free(config);
    return whole ? conclude(launching, &divisions, err) : KILN_OK;
}

/* Records of a sweep's journal: how they are made, and how a replay restores the jobs. */
#ifndef KILN_SWEEP_RECORDS_H
#define KILN_SWEEP_RECORDS_H

#include <jansson.h>

#include "sweep/jobs/jobs.h"
#include "sweep/speed/division.h"

/* What a sweep was started with, enough to resume it from any folder. */
typedef struct KilnSweepStart {
    const char *cwd;         /* where jobs run, which relative paths of data refer to */
    const char *config_name; /* as in KilnComposeRequest */
    const char *const *config_dirs, *const *plugins, *const *arguments; /* NULL-terminated */
} KilnSweepStart;

/* A sweep that is restored from its journal. Texts live in jobs->arena. */
typedef struct KilnReplay {
    KilnJobs *jobs;
    KilnSweepStart start;
    bool started;           /* `start` is known */
    bool complete;          /* the sweeper had nothing more to suggest */
    const char **variables; /* of the environment; the array is allocated */
    size_t n_variables, variables_capacity;
    KilnDivision division; /* that was measured; zero: none */
} KilnReplay;

/* For kiln_journal_replay, with a KilnReplay as ctx. Unknown events are skipped. KILN_E_FORMAT: the
 * journal lacks jobs. */
KilnStatus kiln_replay_record(void *ctx, const json_t *line, KilnError *err);
/* Mark jobs that were running as interrupted. */
void kiln_replay_end(KilnReplay *history);

/* Records, for kiln_journal_append. NULL when memory is out. */
/* `plugins` (registry/plugin/plugin_record.h) is consumed. `objective`: what jobs are ranked by. */
json_t *kiln_record_begun(const KilnSweepStart *begin, json_t *plugins, const KilnSpace *space,
                          const KilnObjective *objective, bool extended);
json_t *kiln_record_submitted(size_t number, const KilnJob *job);
/* A frozen job waits for another machine; it has been taken out of the queue. */
json_t *kiln_record_queued(size_t number, const KilnJob *job, const char *launcher);
json_t *kiln_record_returned(size_t number, const KilnJob *job);
json_t *kiln_record_started(size_t number, const KilnJob *job, int64_t pid);
json_t *kiln_record_reported(size_t number, const KilnTrialReport *report, const KilnMode *modes,
                             size_t n_objectives);
json_t *kiln_record_stopping(size_t number, const KilnJob *job);
/* `variables`: NULL-terminated. */
json_t *kiln_record_environment(const char *const *variables);
/* `seconds`: of this start alone. */
json_t *kiln_record_ended(size_t number, const KilnJob *job, double seconds);
json_t *kiln_record_plain(const char *event);
/* A request that cannot be fulfilled. */
json_t *kiln_record_refused(const char *request, const char *reason);
/* How fast divisions of the processors were, and the one that the sweep uses. */
json_t *kiln_record_measured(const KilnDivisions *divisions, const KilnDivision *chosen);
/* The budget is used up. */
json_t *kiln_record_exhausted(const char *reason);

/* Put the values of the objectives, and the modes that they declare, into a record or a report, and
 * read them back: NaN and AUTO for those that it lacks. */
void kiln_values_put(json_t *record, const double *values, const KilnMode *modes, size_t n);
void kiln_values_read(const json_t *record, double ret_values[KILN_MAX_OBJECTIVES],
                      KilnMode ret_modes[KILN_MAX_OBJECTIVES]);

/* Read the metrics of a run's summary.json into `job`, if there is one. Texts live in the arena. */
KilnStatus kiln_job_read_summary(KilnArena *arena, const char *path, KilnJob *job, KilnError *err);
/* A list of texts (a JSON array) in the arena, NULL-terminated; NULL when memory is out. */
const char *const *kiln_texts_read(KilnArena *arena, const json_t *list);

#endif

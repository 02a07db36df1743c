/* What the journal says of a sweep: records made, and read back into jobs. */
#ifndef KILN_SWEEP_HISTORY_H
#define KILN_SWEEP_HISTORY_H

#include <jansson.h>

#include "sweep/jobs.h"

/* What a sweep was begun with, and can be gone on with from any place. */
typedef struct KilnSweepBegin {
    const char *cwd;         /* where jobs run: relative paths of data mean this */
    const char *config_name; /* as in KilnComposeRequest */
    const char *const *config_dirs, *const *plugins, *const *arguments; /* NULL-terminated */
} KilnSweepBegin;

/* A sweep as its journal tells it. Texts live in jobs->arena. */
typedef struct KilnHistory {
    KilnJobs *jobs;
    KilnSweepBegin begin;
    bool begun;
} KilnHistory;

/* For kiln_journal_replay, ctx being a KilnHistory. Jobs that were running come
 * back as interrupted by the end of the replay (kiln_history_close). Records of
 * unknown events are left out. KILN_E_FORMAT: the journal lacks jobs. */
KilnStatus kiln_history_record(void *ctx, const json_t *line, KilnError *err);
void kiln_history_close(KilnHistory *history);

/* Records, for kiln_journal_append. NULL when memory is out. */
json_t *kiln_record_begun(const KilnSweepBegin *begin, const KilnSpace *space, bool extended);
json_t *kiln_record_submitted(size_t number, const KilnJob *job);
json_t *kiln_record_started(size_t number, int64_t pid);
/* `seconds`: of this start alone. */
json_t *kiln_record_ended(size_t number, const KilnJob *job, double seconds);
json_t *kiln_record_plain(const char *event);

/* The metrics of a run's summary.json into `job`; none when the run left none. The
 * texts live in the arena. */
KilnStatus kiln_job_read_summary(KilnArena *arena, const char *path, KilnJob *job, KilnError *err);
/* A list of texts (a JSON array) in the arena, NULL-terminated; NULL when memory is out. */
const char *const *kiln_texts_read(KilnArena *arena, const json_t *list);

#endif

/* The points of a run at which `kiln verify-resume` kills it. */
#ifndef KILN_CLI_VERIFY_KILL_POINTS_H
#define KILN_CLI_VERIFY_KILL_POINTS_H

#include "kiln/rng.h"
#include "train/report/live_page.h"

typedef enum KilnKillPoint {
    KILN_KILL_ANY,        /* uniform over the time of the run */
    KILN_KILL_EPOCH,      /* in an epoch of training */
    KILN_KILL_VALIDATION, /* while it validates */
    KILN_KILL_SAVING,     /* while a checkpoint is written */
    KILN_KILL_GROUP,      /* between the batches of one optimizer step */
    KILN_KILL_FIRST,      /* before the first checkpoint */
    KILN_KILL_TEST,       /* in the final test */
    KILN_KILL_AGAIN,      /* anywhere, and again while it is resumed */
    KILN_KILL_COUNT
} KilnKillPoint;

/* "in an epoch", ... */
const char *kiln_kill_point_name(KilnKillPoint point);

/* An undisturbed run: its seconds, the seconds until its first checkpoint, its steps, and which
 * kill points it reaches. */
typedef struct KilnRunProfile {
    double seconds, saved;
    int64_t steps;
    bool has[KILN_KILL_COUNT];
} KilnRunProfile;

/* When to kill: after a time, or at a kill point from some step on. */
typedef struct KilnKillTarget {
    KilnKillPoint point;
    double after; /* seconds; < 0: at the kill point */
    int64_t step;
} KilnKillTarget;

/* Draw a random target. */
KilnKillTarget kiln_kill_target_draw(KilnKillPoint point, const KilnRunProfile *profile,
                                     KilnRng *rng);
/* Whether a run has reached its target, `seconds` after its start; `live` is its live status (NULL:
 * none yet). */
bool kiln_kill_target_reached(const KilnKillTarget *target, double seconds,
                              const KilnLiveSnapshot *live);
/* Record the live status of the undisturbed run. */
void kiln_run_profile_note(KilnRunProfile *profile, double seconds, const KilnLiveSnapshot *live);

#endif
